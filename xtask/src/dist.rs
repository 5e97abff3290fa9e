//! Makes what users install: a static binary, its man page and completions, a Debian package, and the recipes beside them.
//!
//! In: the workspace. Out: `target/dist`. It installs nothing outside of the target directory but Rust's library for musl.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::workspace::{Workspace, cargo, output, run};
use crate::{arch, build};

/// Where the results are, below the target directory.
const FOLDER: &str = "dist";

/// With musl, a program needs no library of the machine that it runs on.
const TARGET: &str = arch::STATIC_TARGET;

/// The version of cargo-deb that makes the package.
const CARGO_DEB: &str = "3.8.0";

/// Files that are passed on as they are.
const RECIPES: [&str; 2] = ["packaging/Containerfile", "packaging/daemonset.yaml"];

/// Makes all of it.
pub(crate) fn dist() -> Result<()> {
    let workspace = Workspace::find()?;
    let folder = workspace.target.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot empty target/dist")?;
    }
    fs::create_dir_all(&folder)?;
    provide_target()?;
    let built = build::static_flame_bpf(&workspace, TARGET)?;
    let binary = folder.join("flame-bpf");
    fs::copy(&built, &binary)?;
    generate(&binary, &folder)?;
    for recipe in RECIPES {
        let path = workspace.root.join(recipe);
        let name = path.file_name().context("a recipe has a name")?;
        fs::copy(&path, folder.join(name))?;
    }
    package(&workspace, &folder)?;
    list(&folder)
}

fn provide_target() -> Result<()> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET);
    if library.exists() {
        return Ok(());
    }
    run(Command::new("rustup").args(["target", "add", TARGET]))
        .with_context(|| format!("Rust's library for {TARGET} is missing"))
}

/// Has the binary print what it says of itself.
fn generate(binary: &Path, folder: &Path) -> Result<()> {
    for (arguments, name) in [
        (["man"].as_slice(), "flame-bpf.1"),
        (&["completions", "bash"], "flame-bpf.bash"),
        (&["completions", "zsh"], "_flame-bpf"),
        (&["completions", "fish"], "flame-bpf.fish"),
    ] {
        let text = output(Command::new(binary).args(arguments))?;
        ensure!(!text.is_empty(), "flame-bpf {arguments:?} printed nothing");
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// Makes the Debian package; its contents are listed in the manifest of flame-bpf.
fn package(workspace: &Workspace, folder: &Path) -> Result<()> {
    let root = workspace.target.join("cargo-deb");
    let cargo_deb = root.join("bin/cargo-deb");
    if !cargo_deb.exists() {
        let version = format!("cargo-deb@={CARGO_DEB}");
        let arguments = ["install", "--quiet", "--locked", &version, "--root"];
        run(cargo().args(arguments).arg(&root))?;
    }
    run(Command::new(cargo_deb)
        .args(["deb", "--no-build", "--no-strip", "--quiet"])
        .args(["--package=flame-bpf", "--target", TARGET])
        .arg("--output")
        .arg(folder)
        .current_dir(&workspace.root))
}

fn list(folder: &Path) -> Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    for file in files {
        let metadata = file.metadata()?;
        let runs = metadata.permissions().mode() & 0o111 != 0;
        let mark = if runs { "*" } else { "" };
        println!("{:>11} {}{mark}", metadata.len(), file.display());
    }
    Ok(())
}
