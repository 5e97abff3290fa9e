//! `--open`: who opens what, and what is said where nobody can.
//!
//! In: an opener of our own in place of xdg-open. Out: failures.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flame_bpf_tests::{binary, require};
use tempfile::{TempDir, tempdir};

/// The user whom nothing belongs to.
const NOBODY: &str = "65534";

/// A folder with a profile to be drawn, and an opener that writes down how it was called.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempdir().expect("a temporary folder can be made");
        // The opener, whoever runs it, may look around here.
        let open = Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open.clone()).expect("it is ours");
        let scene = Self { folder };
        fs::write(scene.path("a.folded"), "a;b 1\n").expect("it can be written");
        let script = format!(
            "#!/bin/sh\necho \"$(id -u) $(id -g) $1 $HOME $DISPLAY\" > {0}.part\nmv {0}.part {0}\n",
            scene.path("called").display()
        );
        fs::write(scene.path("xdg-open"), script).expect("it can be written");
        fs::set_permissions(scene.path("xdg-open"), open).expect("it is ours");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Draws, and opens what was drawn.
    fn run(&self, variables: &[(&str, &str)]) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new(binary())
            .current_dir(self.folder.path())
            .args(["render", "a.folded", "-o", "a.svg", "--open"])
            .env_clear()
            .env("PATH", format!("{}:{path}", self.folder.path().display()))
            .envs(variables.iter().copied())
            .output()
            .expect("it runs")
    }

    /// The line that the opener wrote, if it was called.
    fn called(&self) -> Option<String> {
        fs::read_to_string(self.path("called")).ok()
    }
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_root() -> Result<(), String> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err("needs root, to become somebody else".to_owned()),
    }
}

#[test]
fn a_browser_is_the_callers_and_not_roots() {
    require!(is_root());
    let scene = Scene::new();
    let sudo = [
        ("SUDO_UID", NOBODY),
        ("SUDO_GID", NOBODY),
        ("HOME", "/root"),
    ];
    let with_display = [&sudo[..], &[("DISPLAY", ":9")]].concat();
    let output = scene.run(&with_display);
    assert!(
        said(&output).ends_with("opened: a.svg\n"),
        "{}",
        said(&output)
    );
    let called = scene.called().expect("the opener was called");
    let file = fs::canonicalize(scene.path("a.svg")).expect("it was written");
    let expected = format!("{NOBODY} {NOBODY} {}  :9\n", file.display());
    assert_eq!(called, expected);
    assert_owner(&file);
}

/// Files made under sudo belong to who called sudo.
fn assert_owner(file: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(file).expect("it is there");
    assert_eq!(metadata.uid().to_string(), NOBODY);
    assert_eq!(metadata.gid().to_string(), NOBODY);
}

#[test]
fn nobody_is_asked_without_a_display_or_as_root() {
    require!(is_root());
    let scene = Scene::new();
    let without = scene.run(&[("SUDO_UID", NOBODY), ("SUDO_GID", NOBODY)]);
    assert!(
        said(&without).contains("a.svg is not opened: this session has no display"),
        "{}",
        said(&without)
    );
    let as_root = scene.run(&[("DISPLAY", ":9")]);
    assert!(
        said(&as_root).contains("a browser should not run as root"),
        "{}",
        said(&as_root)
    );
    assert_eq!(scene.called(), None);
    assert!(scene.path("a.svg").exists());
}

#[test]
fn an_opener_that_fails_is_told() {
    require!(is_root());
    let scene = Scene::new();
    fs::write(scene.path("xdg-open"), "#!/bin/sh\nexit 3\n").expect("it can be written");
    let output = scene.run(&[
        ("SUDO_UID", NOBODY),
        ("SUDO_GID", NOBODY),
        ("DISPLAY", ":9"),
    ]);
    assert!(
        said(&output).contains("xdg-open failed (exit status: 3)"),
        "{}",
        said(&output)
    );
}
