//! Files that packages bring along: systemd and flame-bpf accept them as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{Invocation, binary, require, tool};
use tempfile::tempdir;

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../packaging")
        .join(name)
}

#[test]
fn systemd_accepts_the_unit() {
    require!(tool("systemd-analyze"));
    let unit = fs::read_to_string(packaged("flame-bpf.service")).expect("the unit is there");
    assert!(unit.contains("/usr/bin/flame-bpf "));
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("flame-bpf.service");
    // The program is not installed here.
    let unit = unit.replace("/usr/bin/flame-bpf ", &format!("{} ", binary().display()));
    fs::write(&path, unit).expect("the folder is ours");
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .output()
        .expect("systemd-analyze is there");
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("flame-bpf"))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
    assert!(verified.status.success(), "{said}");
}

#[test]
fn the_settings_of_the_unit_are_right() {
    let run = Invocation::new("service --check-config")
        .path("--config", &packaged("service.toml"))
        .run()
        .expect_code(0);
    assert_eq!(
        String::from_utf8_lossy(&run.stdout),
        "all options are right\n"
    );
}
