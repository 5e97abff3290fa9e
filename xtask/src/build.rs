//! Building the executables that a chore runs, as the user who asked for it.
//!
//! In: the workspace. Out: paths of executables, as Cargo reports them. It runs none of them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::workspace::{Workspace, cargo, output};

/// An executable that Cargo made.
pub(crate) struct Executable {
    /// The name of the crate or test file that it was made from.
    pub(crate) name: String,
    /// The package's folder, where its tests expect to run.
    pub(crate) folder: PathBuf,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The file that it was made from, and others that this names.
    pub(crate) source: PathBuf,
    /// Whether it runs tests; a package's programs are made for its tests, too.
    is_test: bool,
}

/// The optimized flame-bpf.
pub(crate) fn flame_bpf(workspace: &Workspace) -> Result<PathBuf> {
    let arguments = ["build", "--release", "--package=flame-bpf"];
    program("flame-bpf", cargo().args(arguments), workspace)
}

/// The optimized flame-bpf for another target, whose C compiler is musl's.
pub(crate) fn static_flame_bpf(workspace: &Workspace, target: &str) -> Result<PathBuf> {
    let arguments = ["build", "--release", "--package=flame-bpf", "--target"];
    let compiler = format!("CC_{}", target.replace('-', "_"));
    let mut build = cargo();
    build.args(arguments).arg(target).env(compiler, "musl-gcc");
    program("flame-bpf", &mut build, workspace)
}

/// blazesym as a program of its own, optimized, for `bench` to measure.
pub(crate) fn blazesym(workspace: &Workspace) -> Result<PathBuf> {
    const NAME: &str = "bench-blazesym";
    let arguments = ["build", "--release", "--package=xtask", "--features=peers"];
    program(
        NAME,
        cargo().args(arguments).args(["--bin", NAME]),
        workspace,
    )
}

/// The program that feeds broken input, optimized but with every check.
pub(crate) fn fuzz(workspace: &Workspace) -> Result<PathBuf> {
    of_tests("flame-bpf-fuzz", &["--profile=fuzz"], workspace)
}

/// The program that records interpreters' memory.
pub(crate) fn record_memory(workspace: &Workspace) -> Result<PathBuf> {
    of_tests("flame-bpf-record-memory", &[], workspace)
}

/// A program of the tests' package.
fn of_tests(name: &str, arguments: &[&str], workspace: &Workspace) -> Result<PathBuf> {
    let package = ["build", "--package=flame-bpf-tests", "--bin", name];
    program(name, cargo().args(package).args(arguments), workspace)
}

/// The program of that name that a command builds.
fn program(name: &str, command: &mut Command, workspace: &Workspace) -> Result<PathBuf> {
    let made = executables(command, workspace)?;
    let found = made.into_iter().find(|executable| executable.name == name);
    let found = found.with_context(|| format!("cargo made no {name}"))?;
    Ok(found.path)
}

/// Every test executable of the workspace's default members.
pub(crate) fn tests(workspace: &Workspace) -> Result<Vec<Executable>> {
    let mut made = executables(cargo().args(["test", "--no-run"]), workspace)?;
    made.retain(|executable| executable.is_test);
    // Cargo reports them as they get ready.
    made.sort_by(|one, other| (&one.folder, &one.name).cmp(&(&other.folder, &other.name)));
    Ok(made)
}

fn executables(command: &mut Command, workspace: &Workspace) -> Result<Vec<Executable>> {
    let command = command.args(["--locked", "--message-format=json-render-diagnostics"]);
    let messages = output(command.current_dir(&workspace.root))?;
    messages
        .lines()
        .filter_map(|line| executable(line).transpose())
        .collect()
}

/// Reads one of Cargo's messages; most are about something other than an executable.
fn executable(line: &str) -> Result<Option<Executable>> {
    let message: Value =
        serde_json::from_str(line).context("cargo printed something other than JSON")?;
    let (Some(path), Some(name)) = (
        message["executable"].as_str(),
        message["target"]["name"].as_str(),
    ) else {
        return Ok(None);
    };
    let manifest = PathBuf::from(
        message["manifest_path"]
            .as_str()
            .context("an executable of no package")?,
    );
    let source = message["target"]["src_path"]
        .as_str()
        .context("an executable of no source")?;
    Ok(Some(Executable {
        name: name.to_owned(),
        folder: manifest
            .parent()
            .context("a manifest lies in a folder")?
            .to_owned(),
        path: path.into(),
        source: source.into(),
        is_test: message["profile"]["test"] == true,
    }))
}
