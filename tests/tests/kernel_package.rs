//! The Debian package in a root directory that holds nothing else: it needs nothing of the machine but its kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{kernel_test, require, svg_titles, tool};
use tempfile::tempdir;

/// The package that `cargo xtask dist` made.
fn package() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/dist");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = files.map(|file| file.path());
    paths
        .find(|path| path.extension().is_some_and(|kind| kind == "deb"))
        .ok_or_else(|| "there is no package; `cargo xtask dist` makes it".to_owned())
}

#[kernel_test]
fn the_package_draws_its_first_graph_in_an_empty_root() {
    require!(tool("dpkg"));
    require!(tool("unshare"));
    let package = require!(package());
    let root = tempdir().expect("a temporary folder can be made");
    for folder in [
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
        "proc",
        "sys",
        "tmp",
    ] {
        fs::create_dir_all(root.path().join(folder)).expect("the folder is ours");
    }
    fs::write(root.path().join("var/lib/dpkg/status"), "").expect("the folder is ours");
    let installed = Command::new("dpkg")
        .arg(format!("--root={}", root.path().display()))
        .args(["--force-script-chrootless", "--install"])
        .arg(&package)
        .output()
        .expect("dpkg is there");
    let said = String::from_utf8_lossy(&installed.stderr);
    assert!(installed.status.success(), "{said}");
    for file in [
        "usr/bin/flame-bpf",
        "usr/lib/systemd/system/flame-bpf.service",
        "etc/flame-bpf/service.toml",
        "usr/share/man/man1/flame-bpf.1.gz",
        "usr/share/bash-completion/completions/flame-bpf",
        "usr/share/zsh/vendor-completions/_flame-bpf",
        "usr/share/fish/vendor_completions.d/flame-bpf.fish",
    ] {
        assert!(root.path().join(file).is_file(), "{file} is not installed");
    }
    let script = "mount -t proc proc $0/proc && mount --rbind /sys $0/sys || exit 99
         chroot $0 /usr/bin/flame-bpf doctor && cd $0/tmp &&
         exec chroot $0 /usr/bin/flame-bpf -d 0.5 -F 997 -o /tmp/first.svg";
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(root.path())
        .output()
        .expect("unshare is there");
    let stderr = String::from_utf8_lossy(&output.stderr);
    require!(match output.status.code() {
        Some(99) => Err(format!("nothing can be mounted: {}", stderr.trim())),
        _ => Ok(()),
    });
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(!svg_titles(&root.path().join("tmp/first.svg")).is_empty());
}
