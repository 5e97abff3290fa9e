//! Everything that can be said about the workspace without running it.
//!
//! In: the workspace. Out: nothing, or what is wrong with it; every step runs, whatever the others found.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::source::Source;
use crate::workspace::{Rustc, Workspace, cargo, run};
use crate::{bpf, house, links, object_lint};

/// Runs every step.
pub(crate) fn check() -> Result<()> {
    let (workspace, rustc) = (Workspace::find()?, Rustc::find()?);
    let steps: [(&str, &dyn Fn() -> Result<()>); 6] = [
        ("format", &|| {
            run(cargo()
                .args(["fmt", "--all", "--check"])
                .current_dir(&workspace.root))
        }),
        ("clippy", &|| clippy(&workspace)),
        ("clippy of the kernel half", &|| {
            bpf::clippy(&workspace, &rustc)
        }),
        ("rules of the house", &|| rules(&workspace)),
        ("BPF object", &|| object(&workspace)),
        ("links", &|| none(links::broken(&workspace.root)?)),
    ];
    let mut failed = Vec::new();
    for (name, step) in steps {
        println!("check: {name}");
        if let Err(error) = step() {
            eprintln!("error: {error:#}");
            failed.push(name);
        }
    }
    ensure!(
        failed.is_empty(),
        "these checks failed: {}",
        failed.join(", ")
    );
    Ok(())
}

fn clippy(workspace: &Workspace) -> Result<()> {
    run(cargo()
        .args([
            "clippy",
            "--quiet",
            "--locked",
            "--workspace",
            "--exclude=profiler-ebpf",
            "--all-targets",
        ])
        .args(["--", "--deny=warnings"])
        .current_dir(&workspace.root))
}

fn rules(workspace: &Workspace) -> Result<()> {
    let sources = Source::all(&workspace.root)?;
    for warning in house::warnings(&sources) {
        println!("warning: {warning}");
    }
    none(house::violations(&sources))
}

fn object(workspace: &Workspace) -> Result<()> {
    let path = workspace.root.join(bpf::OBJECT);
    let bytes = fs::read(&path)
        .with_context(|| format!("cannot read {}; run `cargo xtask bpf`", path.display()))?;
    println!("{}", object_lint::lint(&bytes)?);
    Ok(())
}

fn none(wrong: Vec<String>) -> Result<()> {
    ensure!(wrong.is_empty(), "{}", wrong.join("\nerror: "));
    Ok(())
}
