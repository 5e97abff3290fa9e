//! Programs that compile code and can write a map of it.
//!
//! In: the names of the files that a process has mapped. Out: a [`CodeMaker`], with how it is made to write its map. Used for
//! advice only: names prove nothing.

use super::backing::Backings;
use super::mappings::Process;
use std::os::unix::ffi::OsStrExt as _;

/// A program that compiles code and can write a map of it.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeMaker {
    /// Its name in messages.
    pub name: &'static str,
    /// Prefixes of its libraries' file names.
    libraries: &'static [&'static str],
    /// Prefixes of its programs' file names.
    programs: &'static [&'static str],
    /// How it is made to write a map; `{pid}` stands for its PID.
    pub remedy: &'static str,
    /// How it is made to write a map again that lacks code, if it can be.
    pub renewal: Option<&'static str>,
}

/// All of them.
const CODE_MAKERS: &[CodeMaker] = &[
    CodeMaker {
        name: "java",
        libraries: &["libjvm.so"],
        programs: &[],
        remedy: "run `jcmd {pid} Compiler.perfmap` while it runs (JDK 17 or later), or start it with \
                 -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
        renewal: Some("run `jcmd {pid} Compiler.perfmap`"),
    },
    CodeMaker {
        name: ".NET",
        libraries: &["libcoreclr.so"],
        programs: &[],
        remedy: "start it with DOTNET_PerfMapEnabled=1",
        renewal: None,
    },
    CodeMaker {
        name: "node",
        libraries: &["libnode.so"],
        programs: &["node"],
        remedy: "start it with --perf-basic-prof",
        renewal: None,
    },
    CodeMaker {
        name: "Deno",
        libraries: &[],
        programs: &["deno"],
        remedy: "start it with --v8-flags=--perf-basic-prof",
        renewal: None,
    },
    CodeMaker {
        name: "Chromium",
        libraries: &[],
        programs: &["chromium", "chrome"],
        remedy: "start it, for pages that you trust, with --js-flags=--perf-basic-prof and --no-sandbox, without which \
                 it may write no file",
        renewal: None,
    },
    CodeMaker {
        name: "LuaJIT",
        libraries: &["libluajit"],
        programs: &["luajit", "openresty"],
        remedy: "build it with -DLUAJIT_USE_PERFTOOLS",
        renewal: None,
    },
    CodeMaker {
        name: "ruby",
        libraries: &["libruby"],
        programs: &["ruby"],
        remedy: "start it with --yjit-perf (Ruby 3.3 or later)",
        renewal: None,
    },
    CodeMaker {
        name: "the BEAM",
        libraries: &[],
        programs: &["beam.smp"],
        remedy: "start it with +JPperf true",
        renewal: None,
    },
    CodeMaker {
        name: "PHP",
        libraries: &["opcache.so", "libphp"],
        programs: &["php"],
        remedy: "start it with -d opcache.jit_debug=16",
        renewal: None,
    },
    CodeMaker {
        name: "python",
        libraries: &[],
        programs: &["libpython3", "python3"],
        remedy: "start it with -X perf (Python 3.12 or later)",
        renewal: None,
    },
];

impl CodeMaker {
    /// The one among modules. Libraries come first: what a program links says more than its own name.
    fn among<'a>(modules: impl Iterator<Item = &'a [u8]> + Clone) -> Option<&'static Self> {
        let has = |sign: &&str| {
            modules
                .clone()
                .any(|module| module.starts_with(sign.as_bytes()))
        };
        let by = |signs: fn(&Self) -> &'static [&'static str]| {
            CODE_MAKERS
                .iter()
                .find(|maker| signs(maker).iter().any(has))
        };
        by(|maker| maker.libraries).or_else(|| by(|maker| maker.programs))
    }

    /// The one that a process seems to be.
    pub(super) fn of(process: &Process, backings: &Backings) -> Option<&'static Self> {
        let read = process.readings.iter();
        let mappings = read
            .flat_map(|reading| &reading.mappings)
            .chain(process.reported.mappings());
        let files = mappings.filter_map(|mapping| backings.get(mapping.backing).file());
        let modules = files.map(|file| file.module().as_bytes());
        Self::among(modules)
    }

    /// The one that a file of this name belongs to.
    #[cfg(test)]
    pub(crate) fn of_file(name: &str) -> Option<&'static Self> {
        Self::among([name.as_bytes()].into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ProcessKey, Processes};
    use super::*;

    #[test]
    fn a_maker_is_recognized_by_its_mappings() {
        for (modules, name) in [
            (vec!["java", "libc.so.6", "libjvm.so"], Some("java")),
            (vec!["node", "libc.so.6"], Some("node")),
            (vec!["postgres", "libLLVM.so.22"], None),
            (vec!["nginx", "libluajit-5.1.so.2"], Some("LuaJIT")),
            (vec!["node", "libpython3.12.so"], Some("node")),
            (vec!["python3.12", "libc.so.6"], Some("python")),
            (vec!["app", "libcoreclr.so"], Some(".NET")),
            (vec!["deno", "libc.so.6"], Some("Deno")),
            (vec!["chrome", "libc.so.6"], Some("Chromium")),
            (vec![], None),
        ] {
            let found = CodeMaker::among(modules.iter().map(|module| module.as_bytes()));
            assert_eq!(found.map(|maker| maker.name), name, "{modules:?}");
        }
    }

    #[test]
    fn a_test_program_makes_no_code() {
        let ourselves = ProcessKey::new(std::process::id(), 1);
        let mut processes = Processes::new();
        processes.see(ourselves);
        assert_eq!(processes.code_maker(ourselves), None);
    }
}
