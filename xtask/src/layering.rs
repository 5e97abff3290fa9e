//! Rules that no compiler checks: who may use whom, and where `unsafe` may be.
//!
//! In: the workspace's Rust files. Out: what breaks a rule, and what is about to. The rules are `docs/internals/architecture.md`'s.

use std::path::Path;

use crate::imports;
use crate::source::Source;

/// Rows of a module of the userspace crate and the modules that it may use. Whatever has no row may use, and be used by, nobody.
const ARROWS: &str = "\
main: allocator cli inspect pipeline plan session
cli: raw_recording clock debuginfod diff output plan probe profile send store symbolize
session: allocator caller cgroups desktop kernel machine object output overhead pipeline plan probe process profile report \
    runtime symbolize targets text unwind usage
pipeline: allocator clock code debuginfod desktop diff input kernel live object output plan probe process profile \
    raw_recording report runtime send store symbolize targets text unwind usage
inspect: debuginfod object report symbolize unwind
report: debuginfod object plan probe process profile symbolize text unwind usage
targets: machine object overhead plan probe process profile symbolize
plan: clock debuginfod diff output probe profile send store symbolize
kernel: cgroups machine probe process profile targets unwind
symbolize: allocator code object process profile usage
parquet_schema:
input: allocator clock parquet_schema pprof profile text
live: output profile text
output: caller diff parquet_schema pprof profile text
unwind: code kernel object process profile runtime targets usage
runtime: object process profile
code: object
probe: output profile
debuginfod: object
process: object profile
raw_recording: clock object profile
send: clock output profile store text usage
store: clock profile
clock:
machine:
overhead:
usage:
cgroups: machine object profile
desktop: caller
allocator:
caller:
diff: profile
pprof:
object:
profile: text
text:";

/// Rows of a crate that has one door in userspace, and of the files or folders that may name it. The last of opentelemetry_proto
/// is a test.
const DOORS: &str = "\
aya: kernel
aya_log: kernel/logs
blazesym: symbolize
nix: session
base64: output/request output/web
iced_x86: code/x86_64 runtime/x86_64 unwind/x86_64
inferno: output/svg/classic
clap: cli
jiff: clock
opentelemetry_proto: output/otlp output/request process/context
parquet: input/parquet_file output/parquet_file
prost: input/pprof output pprof process/context raw_recording
ratatui: live
regex: output/text_style profile/select
statrs: diff/stats
tokio: session
toml: cli/service
prometheus_client: send/board
sd_notify: send/board
httparse: send/board
ureq: debuginfod send/client";

/// The files that may hold `unsafe`, each for the reason that its first lines give.
const UNSAFE: &[&str] = &[
    "profiler-common/src/abi/pod.rs",
    "profiler-ebpf/src/platform/config.rs",
    "profiler-ebpf/src/main.rs",
    "profiler-ebpf/src/platform/memory.rs",
    "profiler-ebpf/src/platform/subprog.rs",
    "profiler-ebpf/src/platform/replacement.rs",
    "profiler-ebpf/src/platform/loops.rs",
    "profiler-ebpf/src/store/threads.rs",
    "profiler-ebpf/src/symbol.rs",
    "profiler-ebpf/src/task/mod.rs",
    "profiler-ebpf/src/task/x86_64.rs",
    "profiler-ebpf/src/walk/kernel.rs",
    "profiler-ebpf/src/platform/word.rs",
    "profiler-userspace/src/kernel/config_map.rs",
    "profiler-userspace/src/kernel/perf_link.rs",
    "profiler-userspace/src/kernel/shared.rs",
    "profiler-userspace/src/runtime/scattered.rs",
    "profiler-userspace/src/session/sampling.rs",
    "profiler-userspace/src/session/launch.rs",
    "profiler-userspace/src/allocator.rs",
];

/// A file that is longer asks to be two.
const LONG: usize = 450;

const USERSPACE: &str = "profiler-userspace/src";

/// Everything that breaks a rule, one sentence each.
pub(crate) fn violations(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let shown = source.path.display();
        let tests = source
            .path
            .file_name()
            .is_some_and(|name| name == "tests.rs");
        if !tests && !source.text.starts_with("//!") {
            wrong.push(format!(
                "{shown} does not begin with a `//!` that says what comes in and what goes out"
            ));
        }
        let may = UNSAFE.iter().any(|path| Path::new(path) == source.path);
        if holds_unsafe(source) && !may {
            wrong.push(format!(
                "{shown} holds `unsafe` and is not one of the files that may"
            ));
        }
        if let Ok(path) = source.path.strip_prefix(USERSPACE) {
            let place = ModulePosition::new(path);
            wrong.extend(
                imports::paths(source)
                    .iter()
                    .filter_map(|used| place.objection(used))
                    .map(|said| format!("{shown} {said}")),
            );
        }
    }
    wrong.dedup();
    wrong
}

/// Warnings: everything that breaks no rule yet, one sentence each.
pub(crate) fn warnings(sources: &[Source]) -> Vec<String> {
    let mut warnings = Vec::new();
    for source in sources {
        let (shown, lines) = (source.path.display(), source.text.lines().count());
        if lines > LONG {
            warnings.push(format!("{shown} has {lines} lines: is it two files?"));
        }
    }
    for path in UNSAFE {
        let used = sources
            .iter()
            .any(|source| source.path == Path::new(path) && holds_unsafe(source));
        if !used {
            warnings.push(format!(
                "{path} may hold `unsafe` and need not: strike it from the list"
            ));
        }
    }
    warnings
}

/// The rest of a table's row, word by word.
fn row<'table>(table: &'table str, name: &str) -> Option<Vec<&'table str>> {
    let mut rows = table.lines().filter_map(|line| line.split_once(':'));
    let (_, rest) = rows.find(|(first, _)| *first == name)?;
    Some(rest.split_whitespace().collect())
}

fn holds_unsafe(source: &Source) -> bool {
    source.names().iter().any(|name| name == "unsafe")
}

/// Where a file of the userspace crate stands among its modules.
struct ModulePosition {
    /// Its path without `.rs` and `mod`, such as `["output", "svg"]`.
    module: Vec<String>,
}

impl ModulePosition {
    fn new(path: &Path) -> Self {
        let path = path.with_extension("");
        let names = path.iter().map(|name| name.to_string_lossy().into_owned());
        Self {
            module: names.filter(|name| name != "mod").collect(),
        }
    }

    /// Objection to using the path `used` here, if there is one.
    fn objection(&self, used: &[String]) -> Option<String> {
        let (name, module) = (&used[0], self.module.join("/"));
        if let Some(folders) = row(DOORS, name).filter(|_| used.len() > 1) {
            let within =
                |folder: &&str| module == **folder || module.starts_with(&format!("{folder}/"));
            return (!folders.iter().any(within))
                .then(|| format!("names {name}, whose door is {}", folders.join(" and ")));
        }
        let here = self.module.first()?;
        let other = self.neighbour(used)?;
        row(ARROWS, other)?;
        let allowed = row(ARROWS, here).is_some_and(|allowed| allowed.contains(&other));
        (here != other && here != "lib" && !allowed)
            .then(|| format!("uses {other}, which {here} may not"))
    }

    /// The module directly under the crate's root that the path leads through.
    fn neighbour<'path>(&self, used: &'path [String]) -> Option<&'path str> {
        let ups = used.iter().take_while(|name| *name == "super").count();
        let next = match used.first()?.as_str() {
            "crate" | "flame_bpf" => used.get(1),
            "super" if ups >= self.module.len() => used.get(ups),
            _ => None,
        };
        next.map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        let text = format!("//! In, out, never.\n{text}");
        violations(&[Source::new(Path::new(path), text).expect("Rust")])
    }

    #[test]
    fn a_listed_dependency_is_allowed() {
        assert!(
            said(
                "profiler-userspace/src/kernel/store.rs",
                "use crate::profile::raw::Who; use super::load::map;"
            )
            .is_empty()
        );
        assert!(
            said(
                "profiler-userspace/src/main.rs",
                "use flame_bpf::{cli, session};"
            )
            .is_empty()
        );
    }

    #[test]
    fn an_unlisted_dependency_is_refused_however_it_is_written() {
        for text in [
            "use crate::kernel::Kernel;",
            "fn f() { crate::kernel::f() }",
            "use crate::{profile, kernel as k};",
        ] {
            assert_eq!(
                said("profiler-userspace/src/output/svg.rs", text),
                ["profiler-userspace/src/output/svg.rs uses kernel, which output may not"]
            );
        }
        assert_eq!(
            said(
                "profiler-userspace/src/output/svg.rs",
                "use super::super::kernel;"
            )
            .len(),
            1
        );
        assert_eq!(
            said("profiler-userspace/src/output/mod.rs", "use super::kernel;").len(),
            1
        );
        assert_eq!(
            said(
                "profiler-userspace/src/newcomer.rs",
                "use crate::profile::Profile;"
            )
            .len(),
            1
        );
    }

    #[test]
    fn a_crate_is_refused_outside_its_one_module() {
        assert!(said("profiler-userspace/src/kernel/load.rs", "use aya::Ebpf;").is_empty());
        assert!(
            said(
                "profiler-userspace/src/session/signals.rs",
                "use tokio::net::TcpStream;"
            )
            .is_empty()
        );
        assert_eq!(
            said("profiler-userspace/src/plan.rs", "use clap::ValueEnum;"),
            ["profiler-userspace/src/plan.rs names clap, whose door is cli"]
        );
        assert_eq!(
            said(
                "profiler-userspace/src/output/svgs.rs",
                "use base64::prelude;"
            )
            .len(),
            1
        );
    }

    #[test]
    fn unsafe_is_refused_outside_the_listed_files() {
        let text = "fn f() { unsafe { g() } }";
        assert!(said("profiler-common/src/abi/pod.rs", text).is_empty());
        assert_eq!(said("profiler-common/src/abi/sample.rs", text).len(), 1);
        assert!(
            said(
                "profiler-common/src/abi/sample.rs",
                "#![deny(unsafe_code)] // unsafe"
            )
            .is_empty()
        );
    }

    #[test]
    fn a_file_without_a_module_comment_is_refused() {
        let bare =
            Source::new(Path::new("xtask/src/x.rs"), "use std::fs;".to_owned()).expect("Rust");
        assert_eq!(violations(&[bare]).len(), 1);
    }

    #[test]
    fn long_files_and_unused_permissions_are_warned_of() {
        let long = Source::new(Path::new("x.rs"), "//!\n".repeat(LONG + 1)).expect("Rust");
        let warnings = warnings(&[long]);
        assert_eq!(warnings[0], "x.rs has 451 lines: is it two files?");
        assert_eq!(warnings.len(), 1 + UNSAFE.len());
    }
}
