//! Everything that can be said about the workspace without running it.
//!
//! In: the workspace. Out: nothing, or what is wrong with it; every step runs, whatever the others found.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::files;
use crate::source::Source;
use crate::workspace::{Rustc, Workspace, cargo, run};
use crate::{arch, bpf, circles, layering, links, object_lint, words};

/// Which steps to run.
#[derive(Args)]
pub(crate) struct Choice {
    /// Only the steps with this in their name, such as `layers`
    step: Option<String>,
}

/// Runs every step chosen.
pub(crate) fn check(choice: &Choice) -> Result<()> {
    let (workspace, rustc) = (Workspace::find()?, Rustc::find()?);
    let steps: [(&str, &dyn Fn() -> Result<()>); 7] = [
        ("format", &|| {
            run(cargo()
                .args(["fmt", "--all", "--check"])
                .current_dir(&workspace.root))
        }),
        ("clippy", &|| clippy(&workspace)),
        ("clippy of the kernel half", &|| {
            bpf::clippy(&workspace, &rustc)
        }),
        ("layers", &|| layers(&workspace)),
        ("words", &|| words(&workspace)),
        ("BPF object", &|| object(&workspace)),
        ("links", &|| none(links::broken(&workspace.root)?)),
    ];
    let mut failed = Vec::new();
    let chosen = |name: &str| choice.step.as_ref().is_none_or(|part| name.contains(part));
    for (name, step) in steps.into_iter().filter(|(name, _)| chosen(name)) {
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

fn layers(workspace: &Workspace) -> Result<()> {
    let sources = Source::all(&workspace.root)?;
    let known = circles::known(&sources);
    for warning in layering::warnings(&sources).into_iter().chain(known) {
        println!("warning: {warning}");
    }
    let mut wrong = layering::violations(&sources);
    wrong.extend(circles::unknown(&sources));
    wrong.extend(arch::violations(&sources));
    none(wrong)
}

fn words(workspace: &Workspace) -> Result<()> {
    let sources = Source::all(&workspace.root)?;
    let mut wrong = words::in_code(&sources);
    wrong.extend(words::questions(&sources));
    for document in links::documents(&workspace.root)? {
        let text = files::read_text(&document)?;
        wrong.extend(words::in_document(&document, &text));
    }
    none(wrong)
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
