//! bpf-linker: having one, and being rustc's linker on its behalf.
//!
//! In: the compiler in use, or the linker arguments that rustc passes. Out: a bpf-linker that shares rustc's own LLVM, or a
//! linked BPF object. It never installs anything outside the target directory, and needs nothing but Cargo.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use object::{Object as _, ObjectSymbol as _};

use crate::files;
use crate::workspace::{Rustc, cargo, run};

/// The release that is provisioned.
pub(crate) const VERSION: &str = "0.13.0";

/// Set for the compilation of the BPF crate: the bpf-linker that the callback runs.
pub(crate) const REQUEST: &str = "FLAME_BPF_LINKER";

/// The bpf-linker to call, when rustc started this process as its linker.
pub(crate) fn requested() -> Option<OsString> {
    std::env::var_os(REQUEST)
}

/// A bpf-linker built for this very compiler, under `target`; built first if it is not there or does not run.
pub(crate) fn provision(target: &Path, rustc: &Rustc) -> Result<PathBuf> {
    // One folder per compiler: bitcode is only sure to be readable by the LLVM that wrote it.
    let commit = rustc.commit.get(..9).unwrap_or(&rustc.commit);
    let root = target.join(format!(
        "bpf-linker/{VERSION}-rustc-{}-{commit}-{}",
        rustc.release, rustc.host
    ));
    let linker = root.join("bin/bpf-linker");
    if runs(&linker) {
        return Ok(linker);
    }
    eprintln!(
        "provisioning bpf-linker {VERSION} for rustc {} (once; a minute or two)",
        rustc.release
    );
    let major = rustc.llvm.split('.').next().unwrap_or_default();
    let folder = root.join("llvm");
    point_at_llvm(&folder, rustc)?;
    let flags = [
        format!("-Lnative={}", folder.display()),
        format!(
            "-Clink-arg=-Wl,-rpath,{}",
            rustc.sysroot.join("lib").display()
        ),
    ];
    run(cargo()
        .args([
            "install",
            "--quiet",
            "--locked",
            "--force",
            "--no-default-features",
        ])
        .arg(format!("--features=llvm-{major}"))
        .arg("--root")
        .arg(&root)
        .arg("--target-dir")
        .arg(root.join("build"))
        .arg(format!("bpf-linker@{VERSION}"))
        // Installed for this chore only: the advice to extend PATH would be noise.
        .env("PATH", path_with(&root.join("bin")))
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env_remove("CARGO_BUILD_TARGET"))
    .with_context(|| {
        format!(
            "cannot build bpf-linker {VERSION} against LLVM {}",
            rustc.llvm
        )
    })?;
    if !runs(&linker) {
        bail!(
            "{} was built but does not run; remove {} and try again",
            linker.display(),
            root.display()
        );
    }
    fs::remove_dir_all(root.join("build")).context("cannot remove bpf-linker's build folder")?;
    Ok(linker)
}

fn runs(linker: &Path) -> bool {
    let mut command = Command::new(linker);
    let status = command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Fills `folder` with a `libLLVM.so` that is the library inside rustc's sysroot, so that no LLVM need be installed.
fn point_at_llvm(folder: &Path, rustc: &Rustc) -> Result<()> {
    let lib = rustc.sysroot.join("lib");
    let library = files::list(&lib)?.into_iter().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libLLVM") && name.contains(".so")
    });
    let library = library.with_context(|| {
        format!("no libLLVM in {}; this compiler has its LLVM built in: use the one that rustup installs", lib.display())
    })?;
    files::make_folder(folder)?;
    let link = folder.join("libLLVM.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link).with_context(|| format!("cannot replace {}", link.display()))?;
    }
    symlink(&library, &link).with_context(|| format!("cannot make {}", link.display()))
}

fn path_with(folder: &Path) -> OsString {
    let mut path = OsString::from(folder);
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}

/// Links what rustc handed over, with the bpf-linker at `linker`.
///
/// rustc believes that it links a host program; of its arguments only the inputs and the output mean something to BPF.
pub(crate) fn link(linker: &OsString) -> Result<()> {
    let job = Job::read(std::env::args_os().skip(1))?;
    run(Command::new(linker)
        .args([
            "--target", "bpfel", "--cpu", "v3", "--btf", "-O", "3", "--export",
        ])
        .arg(job.exports.join(","))
        .arg("-o")
        .arg(&job.out)
        .args(&job.inputs))
}

struct Job {
    inputs: Vec<PathBuf>,
    exports: Vec<String>,
    out: PathBuf,
}

impl Job {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Self> {
        let (mut inputs, mut exports, mut out) = (Vec::new(), Vec::new(), None);
        while let Some(argument) = arguments.next() {
            let path = PathBuf::from(&argument);
            if argument == "-o" {
                out = arguments.next().map(PathBuf::from);
            } else if path.file_name().is_some_and(|name| name == "symbols.o") {
                exports = exported(&path)?;
            } else if path
                .extension()
                .is_some_and(|extension| extension == "o" || extension == "rlib")
            {
                inputs.push(path);
            }
        }
        if exports.is_empty() {
            bail!(
                "rustc named no symbol to keep; the BPF crate has no program, or this rustc tells its linker differently"
            );
        }
        Ok(Self {
            inputs,
            exports,
            out: out.context("rustc named no output to link")?,
        })
    }
}

/// The symbols that must survive linking: programs, maps, constants and the license.
///
/// rustc lists every `#[no_mangle]` symbol as undefined in a small ELF object of its own, so that the linker keeps
/// them; that list is exactly what is wanted here. Mangled names in it are rustc's own (the panic entry), and the
/// memory intrinsics are kept by bpf-linker as far as they are called.
fn exported(symbols: &Path) -> Result<Vec<String>> {
    let bytes = files::read(symbols)?;
    let file = object::File::parse(&*bytes).context("rustc's list of symbols is no object file")?;
    let mut names = Vec::new();
    for symbol in file.symbols().filter(|symbol| symbol.is_undefined()) {
        let name = symbol
            .name()
            .context("rustc's list of symbols holds an unreadable name")?;
        let mangled = name.starts_with("_R") || name.starts_with("_ZN");
        if !(name.is_empty()
            || mangled
            || ["memcpy", "memmove", "memset", "memcmp", "bcmp"].contains(&name))
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}
