//! Builds the programs under `workloads/`.
//!
//! In: a source file and what is to be done to its executable. Out: a [`Program`], built at most once
//! and kept in a cache folder of this user's under the system's temporary folder, never in `target/`:
//! tests run as root must not leave files there that an ordinary user cannot remove.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workload::Workload;

/// How rustc spells symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mangling {
    /// The default of stable rustc.
    Default,
    /// The scheme that starts with `_R`.
    V0,
}

/// An executable made for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// Builds `workloads/c/<stem>.c` with frame pointers.
    pub fn c(stem: &str) -> Self {
        Self::compiled("gcc".as_ref(), &["-std=gnu11"], &format!("c/{stem}.c"))
    }

    /// Builds `workloads/c/<stem>.c` with frame pointers and debug information.
    pub fn c_with_debug_information(stem: &str) -> Self {
        Self::compiled(
            "gcc".as_ref(),
            &["-std=gnu11", "-g"],
            &format!("c/{stem}.c"),
        )
    }

    /// Builds `workloads/c/<stem>.c` without frame pointers. Shrink-wrapping stays off, so that
    /// functions are whole.
    pub fn c_without_frame_pointers(stem: &str) -> Self {
        let flags = [
            "-std=gnu11",
            "-O1",
            "-fno-shrink-wrap",
            "-fno-optimize-sibling-calls",
            "-pthread",
            "-fomit-frame-pointer",
        ];
        let relative = format!("c/{stem}.c");
        let source = source(&relative);
        let header = read(&self::source("c/workload.h"));
        cached(&(read(&source), header, flags), stem, |out| {
            run(Command::new("gcc")
                .args(flags)
                .arg("-o")
                .arg(out)
                .arg(&source));
        })
    }

    /// Builds `workloads/cpp/<stem>.cpp` with frame pointers.
    pub fn cpp(stem: &str) -> Self {
        Self::compiled(
            "g++".as_ref(),
            &["-std=gnu++17"],
            &format!("cpp/{stem}.cpp"),
        )
    }

    /// Builds `workloads/rust/<stem>.rs` with frame pointers.
    pub fn rust(stem: &str, mangling: Mangling) -> Self {
        let source = source(&format!("rust/{stem}.rs"));
        cached(&(read(&source), mangling), stem, |out| {
            let mut rustc = Command::new(rustc());
            rustc.args(["--edition", "2024", "-O", "-C", "force-frame-pointers=yes"]);
            if mangling == Mangling::V0 {
                rustc.args(["-C", "symbol-mangling-version=v0"]);
            }
            run(rustc.arg("-o").arg(out).arg(&source));
        })
    }

    /// Where the executable is. Its file name is the `comm` of the process.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same program under another file name, and so another `comm`.
    pub fn named(&self, name: &str) -> Self {
        self.derived("named", name, |out| {
            fs::copy(&self.path, out).expect("a program can be copied");
        })
    }

    /// The program without symbols, and nowhere to find them.
    pub fn stripped(&self) -> Self {
        self.derived("stripped", self.stem(), |out| {
            run(Command::new("strip").arg("-o").arg(out).arg(&self.path));
        })
    }

    /// The program without symbols, and a debug file beside it which it names in `.gnu_debuglink`.
    pub fn with_debug_file(&self) -> Self {
        self.derived("debug file", self.stem(), |out| {
            let debug = out.with_extension("debug");
            run(Command::new("objcopy")
                .arg("--only-keep-debug")
                .args([&self.path, &debug]));
            run(Command::new("strip").arg("-o").arg(out).arg(&self.path));
            // The link holds a bare file name, which objcopy takes from the path as it is given.
            let name = debug.file_name().expect("a debug file has a name");
            let mut link = OsString::from("--add-gnu-debuglink=");
            link.push(name);
            run(Command::new("objcopy")
                .current_dir(out.parent().expect("a program is in a folder"))
                .args([&link, out.as_os_str()]));
        })
    }

    /// The program with one of its symbols renamed to any bytes but NUL and `=`.
    pub fn with_symbol(&self, before: &str, after: &OsStr) -> Self {
        self.derived(&(before, after), self.stem(), |out| {
            let mut pair = OsString::from(format!("{before}="));
            pair.push(after);
            run(Command::new("objcopy")
                .arg("--redefine-sym")
                .arg(pair)
                .args([&self.path, out]));
        })
    }

    /// Starts the program; see [`Workload`].
    pub fn start(&self, arguments: &[&str]) -> Workload {
        Workload::start(Command::new(&self.path).args(arguments))
    }

    /// Starts the program on one CPU alone.
    pub fn start_on(&self, cpu: usize, arguments: &[&str]) -> Workload {
        Workload::start(
            Command::new("taskset")
                .args(["--cpu-list", &cpu.to_string()])
                .arg(&self.path)
                .args(arguments),
        )
    }

    fn compiled(compiler: &OsStr, flags: &[&str], relative: &str) -> Self {
        let source = source(relative);
        let header = read(&self::source("c/workload.h"));
        let stem = source.file_stem().expect("a source file has a name");
        let stem = stem.to_str().expect("our source files have plain names");
        // Sibling calls are jumps, which leave no frame behind; shrink-wrapping makes frames late.
        let common = [
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-shrink-wrap",
            "-fno-optimize-sibling-calls",
            "-pthread",
        ];
        cached(&(read(&source), header, common, flags), stem, |out| {
            run(Command::new(compiler)
                .args(flags)
                .args(common)
                .arg("-o")
                .arg(out)
                .arg(&source));
        })
    }

    fn derived(&self, change: &(impl Hash + ?Sized), name: &str, make: impl FnOnce(&Path)) -> Self {
        // The path carries the hash of everything that the original was made from.
        cached(&(&self.path, change), name, make)
    }

    fn stem(&self) -> &str {
        let name = self.path.file_name().expect("a program has a file name");
        name.to_str().expect("our programs have plain names")
    }
}

/// Makes `<cache>/<hash of key>/<name>`, unless it is there.
pub(crate) fn cached(key: &(impl Hash + ?Sized), name: &str, make: impl FnOnce(&Path)) -> Program {
    let mut hasher = DefaultHasher::new();
    (key, name).hash(&mut hasher);
    let folder = cache().join(format!("{:016x}", hasher.finish()));
    let path = folder.join(name);
    if !path.is_file() {
        let scratch = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(cache())
            .expect("the cache folder can be written");
        make(&scratch.path().join(name));
        let made = scratch.keep();
        // Another test may have been faster; what it made is the same.
        if fs::rename(&made, &folder).is_err() {
            fs::remove_dir_all(&made).expect("a folder just made can be removed");
        }
    }
    assert!(path.is_file(), "{} was not made", path.display());
    Program { path }
}

/// A folder that only this user can write and everybody can read.
pub(crate) fn cache() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let folder = env::temp_dir().join(format!("flame-bpf-tests-{user}"));
    if let Err(error) = fs::DirBuilder::new().mode(0o755).create(&folder) {
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::AlreadyExists,
            "{} cannot be made: {error}",
            folder.display()
        );
    }
    // The temporary folder is everybody's: somebody else may have made this one first.
    let found = fs::symlink_metadata(&folder).expect("the folder is there");
    assert!(
        found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0,
        "{} is not a folder of ours alone: remove it",
        folder.display()
    );
    folder
}

/// The path of a file under `workloads/`.
pub fn source(relative: &str) -> PathBuf {
    // Cargo's present answer comes first: the sources may have moved since this was compiled.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).join("workloads").join(relative)
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The compiler beside the cargo that built this: `sudo` may have taken it off the `PATH`.
fn rustc() -> PathBuf {
    let beside = Path::new(env!("CARGO")).with_file_name("rustc");
    if beside.is_file() {
        beside
    } else {
        PathBuf::from("rustc")
    }
}

#[track_caller]
pub(crate) fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
