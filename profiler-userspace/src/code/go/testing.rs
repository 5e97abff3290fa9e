//! Go programs for tests, by the toolchains of this machine.
//!
//! In: source and flags. Out: a program's path. Needs a toolchain.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The Go toolchains of this machine.
pub(crate) fn toolchains() -> Vec<PathBuf> {
    let known = [
        "/usr/local/go/bin/go",
        "/usr/bin/go",
        "/usr/lib/go-1.19/bin/go",
    ];
    let there = known.iter().map(PathBuf::from).filter(|path| path.exists());
    let mut there: Vec<PathBuf> = there.filter_map(|path| path.canonicalize().ok()).collect();
    there.dedup();
    assert!(!there.is_empty(), "these tests take a Go toolchain");
    there
}

/// Builds a program of one file, without C.
pub(crate) fn build(
    go: &Path,
    folder: &Path,
    program: &str,
    name: &str,
    flags: &[&str],
) -> PathBuf {
    std::fs::write(folder.join("main.go"), program).unwrap();
    std::fs::write(folder.join("go.mod"), "module example.com/hot\ngo 1.18\n").unwrap();
    let output = folder.join(name);
    let status = Command::new(go)
        .current_dir(folder)
        .envs([("CGO_ENABLED", "0"), ("GOTOOLCHAIN", "local")])
        .arg("build")
        .args(flags)
        .arg("-o")
        .arg(&output)
        .arg(".")
        .status()
        .unwrap();
    assert!(status.success(), "{} {flags:?}", go.display());
    output
}
