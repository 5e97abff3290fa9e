//! Packages of Debian: the emulator, and kernels that are only booted, never installed.
//!
//! In: a kernel version. Out: its image in a folder, kept there for the next time. Only installing programs and refreshing
//! the package lists needs root; both are named where root is out of reach.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::arch;
use crate::files;
use crate::root::Root;
use crate::workspace::{in_path, output, run};

/// A program that is needed, and the package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    arch::EMULATOR,
    ("busybox", "busybox-static"),
    ("gcc", "gcc"),
    ("lua5.4", "lua5.4"),
    ("luajit", "luajit"),
    ("perl", "perl-base"),
    ("php", "php-cli"),
    ("ruby", "ruby"),
    ("/usr/bin/python3", "python3-minimal"),
];

/// How a kernel package is called around its version.
const PACKAGE: (&str, &str) = ("linux-image-", "-unsigned");

/// Small kernels for virtual machines, and the one kind that is asked for here.
const FLAVOUR: &str = arch::KERNELS;

/// How an image is called before its version.
const IMAGE: &str = "vmlinuz-";

/// Installs the programs that are missing.
///
/// # Errors
///
/// They cannot be installed here, or what they would emulate is not for this processor's programs.
pub(super) fn provide() -> Result<()> {
    ensure!(
        std::env::consts::ARCH == arch::NAME,
        "the kernels are for {}, and what is built here is not",
        arch::NAME
    );
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| in_path(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing)
}

/// Installs packages; what that prints is of no interest.
///
/// # Errors
///
/// They cannot be installed here.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let arguments = ["install", "-qq", "-y", "--no-install-recommends"];
    refresh()
        .and_then(|()| as_root("apt-get", &[&arguments, packages].concat()))
        .with_context(|| format!("{} cannot be installed", packages.join(" and ")))
}

/// The newest image of `version` in `folder`, fetched if there is none; `None` when Debian has none either.
pub(super) fn image(version: &str, folder: &Path) -> Result<Option<PathBuf>> {
    let images = files::list(folder)?;
    let names = images.iter().filter_map(|path| path.file_name()?.to_str());
    let kept: Vec<String> = { names.filter_map(|name| name.strip_prefix(IMAGE)) }
        .map(str::to_owned)
        .collect();
    if let Some(release) = newest(version, &kept) {
        return Ok(Some(folder.join(format!("{IMAGE}{release}"))));
    }
    let mut offered = offered()?;
    if newest(version, &offered).is_none() {
        refresh()?;
        offered = self::offered()?;
    }
    let release = newest(version, &offered);
    release.map(|release| fetch(release, folder)).transpose()
}

/// The kernels that the package lists know, as `uname -r` would print them.
fn offered() -> Result<Vec<String>> {
    let (prefix, suffix) = PACKAGE;
    let pattern = format!("^{prefix}.*{FLAVOUR}{suffix}$");
    let listed = output(Command::new("apt-cache").args(["search", "--names-only", &pattern]))
        .context("the kernels are Debian's packages")?;
    let releases = listed.lines().filter_map(|line| {
        let package = line.split_whitespace().next()?;
        package.strip_prefix(prefix)?.strip_suffix(suffix)
    });
    Ok(releases.map(str::to_owned).collect())
}

/// Downloads a package and takes the kernel out of it.
fn fetch(release: &str, folder: &Path) -> Result<PathBuf> {
    let (prefix, suffix) = PACKAGE;
    let package = format!("{prefix}{release}{suffix}");
    println!("vm: fetching {package}");
    let scratch = folder.join("package");
    // Files that an interrupted run left.
    if scratch.exists() {
        fs::remove_dir_all(&scratch).context("cannot remove an unpacked package")?;
    }
    files::make_folder(&scratch)?;
    // As whoever runs this: apt's own user may not reach the folder.
    run(Command::new("apt-get")
        .args(["download", "-qq", "-o", "APT::Sandbox::User=root"])
        .arg(&package)
        .current_dir(&scratch))?;
    let downloaded = files::list(&scratch)?;
    let file = downloaded.first().context("apt-get downloaded nothing")?;
    run(Command::new("dpkg").arg("-x").arg(file).arg(&scratch))?;
    let name = format!("{IMAGE}{release}");
    let image = folder.join(&name);
    fs::rename(scratch.join("boot").join(name), &image)
        .with_context(|| format!("{package} holds no kernel"))?;
    fs::remove_dir_all(&scratch).context("cannot remove an unpacked package")?;
    Ok(image)
}

fn refresh() -> Result<()> {
    as_root("apt-get", &["update", "-qq"])
}

fn as_root(program: &str, arguments: &[&str]) -> Result<()> {
    match Root::find() {
        Ok(root) => {
            let silent = [("DEBIAN_FRONTEND", OsStr::new("noninteractive"))];
            let mut command = root.command(Path::new(program), &silent);
            run(command.args(arguments).stdout(Stdio::null()))
        }
        Err(reason) => bail!("{reason}; run `{program} {}` as root", arguments.join(" ")),
    }
}

/// The newest release of a version such as `6.1`, which `6.12` is none of.
fn newest<'release>(version: &str, releases: &'release [String]) -> Option<&'release str> {
    let of_version = |release: &&String| {
        let rest = release.strip_prefix(version);
        release.ends_with(FLAVOUR)
            && rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    };
    let found = releases.iter().filter(of_version);
    found
        .max_by_key(|release| numbers(release))
        .map(String::as_str)
}

fn numbers(release: &str) -> Vec<u64> {
    release
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_chosen_by_version_number() {
        let releases = [
            "6.1.0-9-cloud-amd64",
            "6.1.0-56-cloud-amd64",
            "6.1.0-57-rt-amd64",
            "6.12.107+deb12-cloud-amd64",
            "6.12.9+deb12-cloud-amd64",
        ]
        .map(str::to_owned);
        assert_eq!(newest("6.1", &releases), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(newest("6.1.0-9", &releases), Some("6.1.0-9-cloud-amd64"));
        assert_eq!(
            newest("6.12", &releases),
            Some("6.12.107+deb12-cloud-amd64")
        );
        assert_eq!(newest("6.13", &releases), None);
    }
}
