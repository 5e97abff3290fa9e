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

/// A program of which only the essentials differ from the others.
const fn plain(
    name: &'static str,
    packages: &'static [&'static str],
    script: &'static str,
) -> Program {
    Program {
        name,
        packages,
        needs: &[],
        shape: Shape::Worker,
        comms: &[],
        variables: &[],
        script,
        target: TARGET,
    }
}

/// All of them, in the order of the table.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        needs: &["perl"],
        ..plain("perl", &["perl"], include_str!("scripts/perl.sh"))
    },
    Program {
        needs: &["python3"],
        ..plain("python3", &["python3"], include_str!("scripts/python3.sh"))
    },
    Program {
        needs: &["git"],
        shape: Shape::Commands,
        comms: &["git"],
        ..plain("git", &["git"], include_str!("scripts/git.sh"))
    },
    Program {
        needs: &["gcc"],
        shape: Shape::Commands,
        comms: &["cc1"],
        ..plain("cc1", &["gcc"], include_str!("scripts/cc1.sh"))
    },
    Program {
        needs: &["ld.bfd", "g++"],
        shape: Shape::Commands,
        comms: &["ld.bfd"],
        ..plain("ld", &["binutils", "g++"], include_str!("scripts/ld.sh"))
    },
    Program {
        needs: &["openssl"],
        shape: Shape::Commands,
        comms: &["openssl"],
        ..plain("openssl", &["openssl"], include_str!("scripts/openssl.sh"))
    },
    Program {
        needs: &["xz"],
        comms: &["xz"],
        ..plain("xz", &["xz-utils"], include_str!("scripts/xz.sh"))
    },
    Program {
        needs: &["sort"],
        shape: Shape::Commands,
        comms: &["sort"],
        ..plain("sort", &["coreutils"], include_str!("scripts/sort.sh"))
    },
    Program {
        needs: &["gawk"],
        ..plain("gawk", &["gawk"], include_str!("scripts/gawk.sh"))
    },
    Program {
        needs: &["zstd"],
        comms: &["zstd"],
        ..plain("zstd", &["zstd"], include_str!("scripts/zstd.sh"))
    },
    Program {
        needs: &["go"],
        variables: &[("BUILD_FLAGS", "")],
        ..plain("go", &["golang-go"], include_str!("scripts/go.sh"))
    },
    Program {
        needs: &["go"],
        variables: &[("BUILD_FLAGS", "-ldflags=-s")],
        ..plain("go-stripped", &["golang-go"], include_str!("scripts/go.sh"))
    },
    Program {
        needs: &["go"],
        variables: &[("BUILD_FLAGS", "-buildmode=pie -ldflags=-s")],
        ..plain("go-pie", &["golang-go"], include_str!("scripts/go.sh"))
    },
    Program {
        needs: &["go"],
        shape: Shape::Commands,
        comms: &["go", "compile", "link", "asm"],
        ..plain(
            "go-compile",
            &["golang-go"],
            include_str!("scripts/go-compile.sh"),
        )
    },
    Program {
        needs: &["esbuild"],
        shape: Shape::Commands,
        comms: &["esbuild"],
        ..plain("esbuild", &["esbuild"], include_str!("scripts/esbuild.sh"))
    },
    Program {
        needs: &["sqlite3"],
        ..plain("sqlite3", &["sqlite3"], include_str!("scripts/sqlite3.sh"))
    },
    Program {
        needs: &["nginx", "ab"],
        shape: Shape::Server,
        ..plain(
            "nginx",
            &["nginx-light", "apache2-utils"],
            include_str!("scripts/nginx.sh"),
        )
    },
    Program {
        needs: &["redis-server", "redis-benchmark"],
        shape: Shape::Server,
        ..plain(
            "redis-server",
            &["redis-server", "redis-tools"],
            include_str!("scripts/redis-server.sh"),
        )
    },
    Program {
        // The server itself is in a folder of its version's, and this script comes with it.
        needs: &["pg_ctlcluster"],
        shape: Shape::Server,
        ..plain(
            "postgres",
            &["postgresql"],
            include_str!("scripts/postgres.sh"),
        )
    },
    Program {
        needs: &["node"],
        ..plain("node", &["nodejs"], include_str!("scripts/node.sh"))
    },
    Program {
        needs: &["java", "javac"],
        comms: &["C1 ", "C2 ", "G1 ", "GC ", "VM "],
        ..plain(
            "java-native",
            &["default-jdk-headless"],
            include_str!("scripts/java.sh"),
        )
    },
    Program {
        needs: &["java", "javac"],
        variables: &[("JAVA_FLAGS", "-XX:+PreserveFramePointer")],
        ..plain(
            "java-compiled",
            &["default-jdk-headless"],
            include_str!("scripts/java.sh"),
        )
    },
    Program {
        needs: &["ffmpeg"],
        ..plain("ffmpeg", &["ffmpeg"], include_str!("scripts/ffmpeg.sh"))
    },
    Program {
        needs: &["ffmpeg"],
        ..plain(
            "ffmpeg-mpeg4",
            &["ffmpeg"],
            include_str!("scripts/ffmpeg-mpeg4.sh"),
        )
    },
    Program {
        needs: &["qemu-img"],
        shape: Shape::Commands,
        comms: &["qemu-img"],
        ..plain(
            "qemu-img",
            &["qemu-utils"],
            include_str!("scripts/qemu-img.sh"),
        )
    },
    Program {
        needs: &["gnuplot"],
        ..plain(
            "gnuplot",
            &["gnuplot-nox"],
            include_str!("scripts/gnuplot.sh"),
        )
    },
    Program {
        needs: &["gs"],
        ..plain(
            "ghostscript",
            &["ghostscript"],
            include_str!("scripts/ghostscript.sh"),
        )
    },
    Program {
        needs: &["chromium"],
        ..plain(
            "chromium",
            &["chromium"],
            include_str!("scripts/chromium.sh"),
        )
    },
    Program {
        needs: &["guile"],
        target: TARGET_OF_MADE_CODE,
        ..plain("guile", &["guile-3.0"], include_str!("scripts/guile.sh"))
    },
    Program {
        needs: &["sbcl"],
        target: TARGET_OF_MADE_CODE,
        ..plain("sbcl", &["sbcl"], include_str!("scripts/sbcl.sh"))
    },
    Program {
        needs: &["convert-im6.q16"],
        shape: Shape::Commands,
        comms: &["convert"],
        ..plain(
            "imagemagick",
            &["imagemagick"],
            include_str!("scripts/imagemagick.sh"),
        )
    },
    Program {
        // Whichever builds this repository.
        shape: Shape::Commands,
        comms: &["rustc", "opt ", "coordinator"],
        ..plain("rustc", &["rustc"], include_str!("scripts/rustc.sh"))
    },
];
