//! Makes the BPF object that ships, on stable Rust alone.
//!
//! In: the source of `profiler-ebpf`. Out: `profiler-ebpf/prebuilt/flame.bpf.o` and a note of the versions that made it, the
//! same bytes on every machine. It never needs nightly Rust, Rust's source, or an installed LLVM.
//!
//! The usual route compiles `core` for `bpfel-unknown-none`, which only nightly can. Here the crate is compiled for the
//! *host*, but every crate reaches the linker as LLVM bitcode (`-C linker-plugin-lto`; the `core` in the sysroot carries
//! bitcode too), and [`crate::bpf_linker`] turns the bitcode into BPF. The profile `bpf` in the root `Cargo.toml` holds
//! the settings that Cargo has a word for:
//!
//! - `lto = "off"`: rustc's own LTO would optimize for the host first, and its loops come out wrong for the verifier;
//! - `panic = "abort"`: BPF has no unwinding;
//! - `debug = 2`: BTF is made from debug sections, which are then dropped;
//! - `opt-level = "z"` for aya-ebpf: its `memset` would else be recognised as `memset` and call itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::bpf_linker;
use crate::bpf_object;
use crate::files;
use crate::object_lint;
use crate::workspace::{Rustc, Workspace, cargo, run};

/// Where the object that ships lies, from the workspace's root.
pub(crate) const OBJECT: &str = "profiler-ebpf/prebuilt/flame.bpf.o";

/// Where the versions that made it are noted.
const VERSIONS: &str = "profiler-ebpf/prebuilt/VERSIONS";

/// The folder with a file for each processor whose registers the kernel half can read.
const REGISTERS: &str = "profiler-ebpf/src/task";

/// Makes the object and the note of versions in place.
pub(crate) fn make() -> Result<()> {
    let (workspace, rustc) = (Workspace::find()?, Rustc::find()?);
    let object = build(&workspace, &rustc)?;
    let report = object_lint::lint(&object)?;
    files::write(&workspace.root.join(OBJECT), &object)?;
    let noted = versions(&workspace, &rustc)?;
    files::write(&workspace.root.join(VERSIONS), noted)?;
    println!("{OBJECT}\n{report}");
    Ok(())
}

/// Builds afresh; fails unless the committed object holds the same bytes and passes the lint.
pub(crate) fn check() -> Result<()> {
    let (workspace, rustc) = (Workspace::find()?, Rustc::find()?);
    let (wanted, noted) = (
        versions(&workspace, &rustc)?,
        files::read(&workspace.root.join(VERSIONS))?,
    );
    if wanted.as_bytes() != noted {
        bail!(
            "{OBJECT} was made by other versions than those at hand, so its bytes cannot be compared\n\
             noted in {VERSIONS}:\n{}at hand:\n{wanted}run `cargo xtask bpf`, or use the compiler noted",
            String::from_utf8_lossy(&noted)
        );
    }
    let fresh = build(&workspace, &rustc)?;
    let report = object_lint::lint(&fresh)?;
    if fresh != files::read(&workspace.root.join(OBJECT))? {
        let kept = workspace.target.join("bpf/flame.bpf.o");
        files::write(&kept, &fresh)?;
        bail!(
            "{OBJECT} is not what its source makes (that is in {}); run `cargo xtask bpf` and commit the result",
            kept.display()
        );
    }
    println!("{OBJECT} is what its source makes\n{report}");
    Ok(())
}

/// Lints the kernel half's source as it is compiled, but without linking.
pub(crate) fn clippy(workspace: &Workspace, rustc: &Rustc) -> Result<()> {
    run(cargo_for_bpf(workspace, rustc, "clippy")?.args(["--", "--deny=warnings"]))
}

/// Compiles, links and strips; returns the object's bytes.
fn build(workspace: &Workspace, rustc: &Rustc) -> Result<Vec<u8>> {
    let linker = bpf_linker::provision(&workspace.target, rustc)?;
    run(cargo_for_bpf(workspace, rustc, "build")?.env(bpf_linker::REQUEST, linker))?;
    let target = target(workspace).join(&rustc.host);
    bpf_object::strip(&files::read(&target.join("bpf/profiler-ebpf"))?)
}

/// A target directory of its own, so that neither kind of build makes the other's stale.
fn target(workspace: &Workspace) -> PathBuf {
    workspace.target.join("bpf")
}

fn cargo_for_bpf(workspace: &Workspace, rustc: &Rustc, verb: &str) -> Result<Command> {
    let itself = std::env::current_exe().context("cannot find this program's own path")?;
    let flags = flags(workspace, rustc, &itself)?;
    let mut command = cargo();
    command
        .args([verb, "--quiet", "--locked"])
        .args(["--package=profiler-ebpf", "--features=bpf", "--profile=bpf"])
        // Named, so that the flags are for the BPF crate alone and not for build scripts and procedural macros.
        .arg(format!("--target={}", rustc.host))
        .arg("--target-dir")
        .arg(target(workspace))
        .current_dir(&workspace.root)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("CARGO_INCREMENTAL", "0");
    Ok(command)
}

fn flags(workspace: &Workspace, rustc: &Rustc, linker: &Path) -> Result<Vec<String>> {
    let mut flags: Vec<String> = vec![
        format!(
            "--cfg=bpf_target_arch=\"{}\"",
            arch(workspace, &rustc.host)?
        ),
        format!("-Clinker={}", linker.display()),
        "-Clinker-plugin-lto".into(),
        "-Cpanic=abort".into(),
        // The host's idea of a fast loop is wrong for BPF, which has neither vectors nor cheap unrolled tails.
        "-Cllvm-args=-unroll-runtime=false".into(),
        "-Cno-vectorize-loops".into(),
        "-Cno-vectorize-slp".into(),
    ];
    // Paths reach the strings of BTF: without these, the bytes would tell, and depend on, where they were made.
    let foreign = workspace.packages.iter().filter(|package| package.foreign);
    let mut folders: Vec<&Path> = foreign
        .filter_map(|package| package.folder.parent())
        .collect();
    folders.sort();
    folders.dedup();
    for folder in folders {
        flags.push(format!("--remap-path-prefix={}=crates", folder.display()));
    }
    flags.push(format!("--remap-path-prefix={}=", workspace.root.display()));
    // Rust's own source goes by this name, unless rust-src is installed and shows where it is.
    let source = rustc.sysroot.join("lib/rustlib/src/rust");
    flags.push(format!(
        "--remap-path-prefix={}=/rustc/{}",
        source.display(),
        rustc.commit
    ));
    Ok(flags)
}

/// The kernel's name for the processor: the BPF crate reads its registers by this name.
fn arch<'host>(workspace: &Workspace, host: &'host str) -> Result<&'host str> {
    let arch = host.split('-').next().unwrap_or(host);
    let registers = workspace.root.join(REGISTERS).join(arch);
    ensure!(
        registers.with_extension("rs").is_file(),
        "the BPF object cannot be made on {host}: {REGISTERS} has no file for {arch}"
    );
    Ok(arch)
}

fn versions(workspace: &Workspace, rustc: &Rustc) -> Result<String> {
    Ok(format!(
        "rustc {} ({})\nLLVM {}\nbpf-linker {}\naya-ebpf {}\n",
        rustc.release,
        rustc.commit,
        rustc.llvm,
        bpf_linker::VERSION,
        workspace.version("aya-ebpf")?
    ))
}
