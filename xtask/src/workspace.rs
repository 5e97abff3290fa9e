//! Where things are: the workspace, its target directory, the packages that it uses, and the compiler.
//!
//! In: `cargo metadata` and `rustc -vV`. Out: paths and versions. It never builds anything.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The workspace as Cargo sees it.
pub(crate) struct Workspace {
    /// Its root folder.
    pub(crate) root: PathBuf,
    /// Cargo's target directory for it.
    pub(crate) target: PathBuf,
    /// Every package that takes part, its own and its dependencies.
    pub(crate) packages: Vec<Package>,
}

/// One package of the dependency graph.
pub(crate) struct Package {
    /// As in its Cargo.toml.
    pub(crate) name: String,
    /// As in its Cargo.toml.
    pub(crate) version: String,
    /// The folder of its Cargo.toml.
    pub(crate) folder: PathBuf,
    /// Whether it comes from a registry rather than from this repository.
    pub(crate) foreign: bool,
}

/// The compiler in use.
pub(crate) struct Rustc {
    /// For example `1.95.0`.
    pub(crate) release: String,
    /// Processor, vendor and system that it runs on, as it calls them.
    pub(crate) host: String,
    /// For example `22.1.2`.
    pub(crate) llvm: String,
    /// The commit that it was built from; `unknown` for some distributions' builds.
    pub(crate) commit: String,
    /// The folder of its libraries.
    pub(crate) sysroot: PathBuf,
}

impl Workspace {
    /// Asks Cargo.
    pub(crate) fn find() -> Result<Self> {
        // Asked when run, not when compiled: a target directory may be shared by several copies of the repository.
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let text = output(
            cargo()
                .args(["metadata", "--locked", "--all-features"])
                .args(["--format-version=1", "--manifest-path"])
                .arg(Path::new(&folder).join("Cargo.toml")),
        )?;
        let metadata: Value =
            serde_json::from_str(&text).context("cargo metadata printed no JSON")?;
        let packages = metadata["packages"]
            .as_array()
            .context("cargo metadata lists no packages")?;
        Ok(Self {
            root: string(&metadata["workspace_root"])?.into(),
            target: string(&metadata["target_directory"])?.into(),
            packages: packages.iter().map(Package::read).collect::<Result<_>>()?,
        })
    }

    /// The version of the package called `name`.
    pub(crate) fn version(&self, name: &str) -> Result<&str> {
        let package = self.packages.iter().find(|package| package.name == name);
        Ok(&package
            .with_context(|| format!("the workspace does not use {name}"))?
            .version)
    }
}

impl Package {
    fn read(package: &Value) -> Result<Self> {
        let manifest = PathBuf::from(string(&package["manifest_path"])?);
        Ok(Self {
            name: string(&package["name"])?,
            version: string(&package["version"])?,
            folder: manifest
                .parent()
                .context("a manifest lies in a folder")?
                .to_owned(),
            foreign: !package["source"].is_null(),
        })
    }
}

impl Rustc {
    /// Asks the compiler.
    pub(crate) fn find() -> Result<Self> {
        let about = output(rustc().arg("-vV"))?;
        let field = |name: &str| {
            let line = about
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(str::to_owned)
                .with_context(|| format!("rustc -vV says nothing about {name}"))
        };
        Ok(Self {
            release: field("release")?,
            host: field("host")?,
            llvm: field("LLVM version")?,
            commit: field("commit-hash")?,
            sysroot: output(rustc().args(["--print", "sysroot"]))?.trim().into(),
        })
    }
}

/// The Cargo that runs this chore.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Where a program is. Root's tools are often not on a user's `PATH`.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Runs a command to its end; an error says which command failed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed; its messages pass through.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let command = command.stderr(std::process::Stdio::inherit());
    let done = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !done.status.success() {
        bail!("{command:?} failed: {}", done.status);
    }
    String::from_utf8(done.stdout)
        .with_context(|| format!("{command:?} printed something other than UTF-8"))
}

fn string(value: &Value) -> Result<String> {
    Ok(value
        .as_str()
        .context("cargo metadata misses a field")?
        .to_owned())
}
