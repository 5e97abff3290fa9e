//! The programs, and what each does while it is profiled.
//!
//! In: nothing but this list and the scripts under `scripts/`. Out: [`PROGRAMS`].
//!
//! A script defines shell functions, which run in an empty folder. `prepare` makes what is worked on. `work` works until it is
//! killed. A server has `serve`, `ready` (fails until it serves) and `load` instead of `work`.

use std::path::Path;

/// Where Debian puts programs. Others of the same names may come first in the `PATH` of whoever asks.
pub(super) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// How a program is profiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Processes that go on working.
    Worker,
    /// Short processes, one after the other, which are started by flame-bpf.
    Commands,
    /// A server under load, with its children.
    Server,
}

/// A program of the distribution's.
pub(super) struct Program {
    /// As in the table.
    pub(super) name: &'static str,
    /// The packages that bring it and what its work needs.
    pub(super) packages: &'static [&'static str],
    /// The commands that must be there; shell patterns are allowed in none.
    needs: &'static [&'static str],
    /// How it is profiled.
    pub(super) shape: Shape,
    /// How the names of the threads begin that count; all do where there are none.
    pub(super) comms: &'static [&'static str],
    /// Variables for its script.
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Its script.
    pub(super) script: &'static str,
    /// The least share of its stacks that must go down to the root.
    pub(super) target: f64,
}

/// The target of most.
const TARGET: f64 = 0.995;

/// That of programs whose code is made while they run, by what no file explains.
const TARGET_OF_MADE_CODE: f64 = 0.95;

impl Program {
    /// The first thing that is not there, and what brings it.
    pub(super) fn missing(&self) -> Option<String> {
        let there = |name: &str| {
            let mut folders = PATH.split(':').map(Path::new);
            folders.any(|folder| folder.join(name).is_file())
        };
        let missing = self.needs.iter().find(|name| !there(name))?;
        Some(format!(
            "{missing} is not installed ({})",
            self.packages.join(", ")
        ))
    }
}

/// Rows of programs: name, how it is profiled, the threads that count, packages, commands that must be there, script, a
/// variable for it if there is one, and the target.
macro_rules! programs {
    ($($name:literal $shape:ident $comms:tt $packages:tt $needs:tt $script:literal
       $($variable:literal = $value:literal)? => $target:expr;)*) => {
        &[$(Program {
            name: $name,
            packages: &$packages,
            needs: &$needs,
            shape: Shape::$shape,
            comms: &$comms,
            variables: &[$(($variable, $value))?],
            script: include_str!(concat!("scripts/", $script, ".sh")),
            target: $target,
        }),*]
    };
}

/// All of them, in the order of the table.
pub(super) const PROGRAMS: &[Program] = programs! {
    "perl" Worker [] ["perl"] ["perl"] "perl" => TARGET;
    "python3" Worker [] ["python3"] ["python3"] "python3" => TARGET;
    "git" Commands ["git"] ["git"] ["git"] "git" => TARGET;
    "cc1" Commands ["cc1"] ["gcc"] ["gcc"] "cc1" => TARGET;
    "ld" Commands ["ld.bfd"] ["binutils", "g++"] ["ld.bfd", "g++"] "ld" => TARGET;
    "openssl" Commands ["openssl"] ["openssl"] ["openssl"] "openssl" => TARGET;
    "xz" Worker ["xz"] ["xz-utils"] ["xz"] "xz" => TARGET;
    "sort" Commands ["sort"] ["coreutils"] ["sort"] "sort" => TARGET;
    "gawk" Worker [] ["gawk"] ["gawk"] "gawk" => TARGET;
    "zstd" Worker ["zstd"] ["zstd"] ["zstd"] "zstd" => TARGET;
    "go" Worker [] ["golang-go"] ["go"] "go" "BUILD_FLAGS" = "" => TARGET;
    "go-stripped" Worker [] ["golang-go"] ["go"] "go" "BUILD_FLAGS" = "-ldflags=-s" => TARGET;
    "go-pie" Worker [] ["golang-go"] ["go"] "go" "BUILD_FLAGS" = "-buildmode=pie -ldflags=-s" => TARGET;
    "go-compile" Commands ["go", "compile", "link", "asm"] ["golang-go"] ["go"] "go-compile" => TARGET;
    "esbuild" Commands ["esbuild"] ["esbuild"] ["esbuild"] "esbuild" => TARGET;
    "sqlite3" Worker [] ["sqlite3"] ["sqlite3"] "sqlite3" => TARGET;
    "nginx" Server [] ["nginx-light", "apache2-utils"] ["nginx", "ab"] "nginx" => TARGET;
    "redis-server" Server [] ["redis-server", "redis-tools"] ["redis-server", "redis-benchmark"] "redis-server" => TARGET;
    // The server itself is in a folder of its version's, and this script comes with it.
    "postgres" Server [] ["postgresql"] ["pg_ctlcluster"] "postgres" => TARGET;
    "node" Worker [] ["nodejs"] ["node"] "node" => TARGET;
    "java-native" Worker ["C1 ", "C2 ", "G1 ", "GC ", "VM "] ["default-jdk-headless"] ["java", "javac"] "java" => TARGET;
    "java-compiled" Worker [] ["default-jdk-headless"] ["java", "javac"] "java" => TARGET;
    "ffmpeg" Worker [] ["ffmpeg"] ["ffmpeg"] "ffmpeg" => TARGET;
    "ffmpeg-mpeg4" Worker [] ["ffmpeg"] ["ffmpeg"] "ffmpeg-mpeg4" => TARGET;
    "qemu-img" Commands ["qemu-img"] ["qemu-utils"] ["qemu-img"] "qemu-img" => TARGET;
    "gnuplot" Worker [] ["gnuplot-nox"] ["gnuplot"] "gnuplot" => TARGET;
    "ghostscript" Worker [] ["ghostscript"] ["gs"] "ghostscript" => TARGET;
    "chromium" Worker [] ["chromium"] ["chromium"] "chromium" => TARGET;
    "guile" Worker [] ["guile-3.0"] ["guile"] "guile" => TARGET_OF_MADE_CODE;
    "sbcl" Worker [] ["sbcl"] ["sbcl"] "sbcl" => TARGET_OF_MADE_CODE;
    "imagemagick" Commands ["convert"] ["imagemagick"] ["convert-im6.q16"] "imagemagick" => TARGET;
    // Whichever builds this repository.
    "rustc" Commands ["rustc", "opt ", "coordinator"] ["rustc"] [] "rustc" => TARGET;
};
