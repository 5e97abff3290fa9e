//! What would bring the names that are missing.
//!
//! In: the gaps that were met, how many samples there are, and the distribution. Out: sentences for the
//! balance, each with a share, a cause and a remedy. Gaps that hardly show in a graph are not mentioned.

use crate::debuginfod::Fetched;
use crate::probe::Waits;
use crate::process::{Runtime, Shortage};
use crate::profile::fold::visible;
use crate::report::balance::{grouped, mebibytes, share};
use crate::report::distro::Distribution;
use crate::symbolize::{Gap, Reached, Unnamed};
use profiler_common::abi::{Class, Counter, Counters};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Gaps of fewer samples than one in so many are not worth a sentence.
const WORTH_ONE_IN: u64 = 100;

/// So many objects are named, the widest gaps first.
const MOST_OBJECTS: usize = 3;

/// So many PIDs are listed.
const MOST_PIDS: usize = 3;

/// The share of one CPU's time that looking at waits may take before there is something to say of it, in percent.
const DEAR_PERCENT: u128 = 5;

/// What to say where looking at every wait was dear, and the machine may feel it.
pub(crate) fn on_switches(waits: &Waits, counters: &Counters, elapsed: Duration) -> Option<String> {
    let spent = Duration::from_nanos(counters.get(Counter::RunTime));
    let is_dear = spent.as_nanos() * 100 > elapsed.as_nanos() * DEAR_PERCENT;
    let per_second = |number: u64| (number as f64 / elapsed.as_secs_f64().max(0.001)) as u64;
    (is_dear && waits.look_period.is_zero()).then(|| {
        format!(
            "Note: looking at {} waits a second took {} of the time of one CPU; --switch-sample 1ms looks at about \
             a thousand a second of each thread, and lets them stand for the others.",
            grouped(per_second(counters.sum(Class::Fired))),
            share(
                u64::try_from(spent.as_micros()).unwrap_or(u64::MAX),
                u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
            ),
        )
    })
}

/// What to say of debug files that were fetched, or should have been.
pub(crate) fn on_fetching(fetched: &Fetched) -> Option<String> {
    let mut text = match fetched.files {
        0 => String::new(),
        1 => format!("Fetched a debug file of {}.", mebibytes(fetched.bytes)),
        files => format!(
            "Fetched {files} debug files of {}.",
            mebibytes(fetched.bytes)
        ),
    };
    for (is_so, note) in [
        (
            fetched.failed,
            "Note: a debuginfod server did not answer as it should, and was not asked again.",
        ),
        (
            fetched.limited,
            "Note: fetching debug files met a limit; a larger DEBUGINFOD_MAXTIME (seconds) or DEBUGINFOD_MAXSIZE \
             (bytes) allows more.",
        ),
    ] {
        if is_so {
            let space = if text.is_empty() { "" } else { " " };
            text = text + space + note;
        }
    }
    (!text.is_empty()).then_some(text)
}

/// What to say of what processes have and was not kept: only where names may be missing for it.
pub(crate) fn on_shortage(shortage: &Shortage, cut_maps: usize) -> Vec<String> {
    let counted = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        many_of => format!("{} {many}", grouped(many_of as u64)),
    };
    let mut sentences = Vec::new();
    if shortage.files > 0 {
        sentences.push(format!(
            "Note: {} could not be kept open and had to be there at the end; a larger `ulimit -n` keeps them.",
            counted(shortage.files, "mapped file", "mapped files")
        ));
    }
    if shortage.code_maps > 0 {
        sentences.push(format!(
            "Note: the perf maps of {} were read only if these ran to the end; a larger `ulimit -n` keeps them.",
            counted(shortage.code_maps, "process", "processes")
        ));
    }
    if cut_maps > 0 {
        sentences.push(format!(
            "Note: {} told of more than is read (1 GiB, of a perf map the end, of a jitdump the beginning), so some of that code may have no name or an old one.",
            counted(cut_maps, "runtime", "runtimes")
        ));
    }
    if shortage.mappings > 0 || shortage.readings > 0 {
        sentences.push(format!(
            "Note: {} had more executable mappings than are kept, and {} made room for later ones, so some frames may be [unknown]; a shorter recording, or of fewer processes, keeps more.",
            counted(shortage.mappings, "reading", "readings"),
            counted(shortage.readings, "reading", "readings")
        ));
    }
    sentences
}

/// What to say of code without names, the widest gap first.
pub(crate) fn on_names(
    unnamed: &[Unnamed],
    samples: u64,
    distribution: &Distribution,
) -> Vec<String> {
    let worth = |count: u64| count > 0 && count.saturating_mul(WORTH_ONE_IN) >= samples;
    let mut sentences: Vec<(u64, String)> = Vec::new();
    for (makers, made) in makers(unnamed) {
        if worth(made.count) {
            sentences.push((made.count, made.sentence(makers, samples)));
        }
    }
    let objects = unnamed.iter().filter(|unnamed| worth(unnamed.count));
    let objects = objects.filter_map(|unnamed| {
        let sentence = on_object(&unnamed.gap, share(unnamed.count, samples), distribution)?;
        Some((unnamed.count, sentence))
    });
    sentences.extend(objects.take(MOST_OBJECTS));
    sentences.sort_by_key(|(count, _)| Reverse(*count));
    sentences
        .into_iter()
        .map(|(_, sentence)| sentence)
        .collect()
}

/// Code that processes of one kind made.
#[derive(Default)]
struct Made {
    count: u64,
    pids: Vec<u32>,
}

/// What the makers have in common: what they seem to be, and whether they told of other code.
type Makers = (Option<Runtime>, bool);

fn makers(unnamed: &[Unnamed]) -> BTreeMap<Makers, Made> {
    let mut all: BTreeMap<Makers, Made> = BTreeMap::new();
    for unnamed in unnamed {
        if let Gap::Made {
            tgid,
            runtime,
            told,
        } = unnamed.gap
        {
            let made = all.entry((runtime, told)).or_default();
            made.count += unnamed.count;
            if !made.pids.contains(&tgid) {
                made.pids.push(tgid);
            }
        }
    }
    all
}

impl Made {
    fn sentence(&self, (runtime, told): Makers, samples: u64) -> String {
        let share = share(self.count, samples);
        let pids: Vec<String> = self
            .pids
            .iter()
            .take(MOST_PIDS)
            .map(u32::to_string)
            .collect();
        let more = match self.pids.len().saturating_sub(MOST_PIDS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let whose = format!(
            "{} (PID {}{more})",
            runtime.map_or("a program", name_of),
            pids.join(", ")
        );
        let what =
            format!("{share} of the samples have nameless frames, of code that {whose} made");
        let first = self.pids.first().copied().unwrap_or_default();
        match (runtime, told) {
            (Some(Runtime::Java), true) => format!(
                "{what} and its map does not tell of: `jcmd {first} Compiler.perfmap` writes a new one."
            ),
            (_, true) => format!("{what} and its map does not tell of."),
            (Some(runtime), false) => format!("{what}: {}.", remedy(runtime, first)),
            (None, false) => format!("{what} without a /tmp/perf-{first}.map that tells of it."),
        }
    }
}

fn name_of(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Node => "node",
        Runtime::Java => "java",
        Runtime::Python => "python",
        Runtime::DotNet => ".NET",
        Runtime::LuaJit => "LuaJIT",
        Runtime::Php => "PHP",
        Runtime::Ruby => "ruby",
        Runtime::Beam => "the BEAM",
    }
}

/// How a runtime is made to tell of its code.
fn remedy(runtime: Runtime, pid: u32) -> String {
    match runtime {
        Runtime::Node => "it tells their names if it is started with --perf-basic-prof".to_owned(),
        Runtime::Java => format!(
            "`jcmd {pid} Compiler.perfmap` while it runs brings the names (JDK 17 and later), or starting it with \
             -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
        ),
        Runtime::Python => {
            "it tells their names if it is started with -X perf (Python 3.12 and later)".to_owned()
        }
        Runtime::DotNet => {
            "it tells their names if it is started with DOTNET_PerfMapEnabled=1".to_owned()
        }
        Runtime::LuaJit => {
            "it tells their names if it was built with -DLUAJIT_USE_PERFTOOLS".to_owned()
        }
        Runtime::Php => {
            "it tells their names if it is started with -d opcache.jit_debug=16".to_owned()
        }
        Runtime::Ruby => {
            "it tells their names if it is started with --yjit-perf (Ruby 3.3 and later)".to_owned()
        }
        Runtime::Beam => "it tells their names if it is started with +JPperf true".to_owned(),
    }
}

fn on_object(gap: &Gap, share: String, distribution: &Distribution) -> Option<String> {
    let Gap::Object {
        module,
        path,
        build_id,
        reached,
    } = gap
    else {
        return None;
    };
    let what = format!(
        "{share} of the samples have nameless frames in {}",
        visible(module)
    );
    Some(match reached {
        Reached::Gone => format!(
            "{what}, which was deleted or replaced before it could be read; record while its processes run."
        ),
        Reached::Absent => format!(
            "{what}, which is not here as it was recorded{}: {}.",
            build_id
                .as_ref()
                .map_or_else(String::new, |id| format!(" (build ID {id})")),
            distribution.anywhere()
        ),
        Reached::Here => {
            let remedy = distribution.symbols_of(path, build_id.as_ref());
            format!("{what}, which was stripped: {remedy}.")
        }
        Reached::Elsewhere => {
            format!(
                "{what}, which was stripped and lies in another mount namespace: {}.",
                distribution.anywhere()
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tgid: u32, runtime: Option<Runtime>, told: bool, count: u64) -> Unnamed {
        Unnamed {
            gap: Gap::Made {
                tgid,
                runtime,
                told,
            },
            count,
        }
    }

    fn object(module: &str, reached: Reached, count: u64) -> Unnamed {
        Unnamed {
            gap: Gap::Object {
                module: module.to_owned(),
                path: format!("/opt/{module}").into(),
                build_id: None,
                reached,
            },
            count,
        }
    }

    fn said(unnamed: &[Unnamed]) -> Vec<String> {
        on_names(unnamed, 1000, &Distribution::unknown())
    }

    #[test]
    fn whatever_was_left_out_is_told_with_a_number() {
        assert_eq!(on_shortage(&Shortage::default(), 0), [""; 0]);
        let shortage = Shortage {
            files: 1,
            code_maps: 1234,
            mappings: 5,
            readings: 1,
        };
        let told = on_shortage(&shortage, 2);
        assert_eq!(told.len(), 4);
        for (sentence, part) in told.iter().zip([
            "1 mapped file could",
            "1,234 processes",
            "2 runtimes told",
            "5 readings had",
        ]) {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(told[0].contains("ulimit -n") && told[1].contains("ulimit -n"));
    }

    #[test]
    fn every_runtime_has_a_remedy() {
        for (runtime, remedy) in [
            (Runtime::Node, "--perf-basic-prof"),
            (Runtime::Java, "`jcmd 7 Compiler.perfmap`"),
            (Runtime::Python, "-X perf"),
            (Runtime::DotNet, "DOTNET_PerfMapEnabled=1"),
            (Runtime::LuaJit, "LUAJIT_USE_PERFTOOLS"),
            (Runtime::Php, "opcache.jit_debug"),
            (Runtime::Ruby, "--yjit-perf"),
            (Runtime::Beam, "+JPperf true"),
        ] {
            let said = said(&[made(7, Some(runtime), false, 500)]);
            assert_eq!(said.len(), 1);
            assert!(
                said[0].starts_with("50.0% of the samples have nameless frames")
                    && said[0].contains("PID 7")
                    && said[0].contains(remedy),
                "{said:?}"
            );
        }
    }

    #[test]
    fn processes_of_one_kind_share_a_sentence() {
        let all: Vec<Unnamed> = (1..=5)
            .map(|pid| made(pid, Some(Runtime::Node), false, 4))
            .collect();
        let said = said(&all);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("2.0%") && said[0].contains("PID 1, 2, 3 and 2 more"),
            "{said:?}"
        );
    }

    #[test]
    fn a_map_with_gaps_is_not_called_missing() {
        let node = said(&[made(7, Some(Runtime::Node), true, 50)]);
        assert!(
            node[0].ends_with("and its map does not tell of."),
            "{node:?}"
        );
        let java = said(&[made(7, Some(Runtime::Java), true, 50)]);
        assert!(java[0].contains("jcmd 7"), "{java:?}");
        let other = said(&[made(7, None, false, 50)]);
        assert!(other[0].contains("/tmp/perf-7.map"), "{other:?}");
    }

    #[test]
    fn the_widest_gaps_come_first_and_narrow_ones_not_at_all() {
        let said = said(&[
            object("a", Reached::Here, 300),
            object("b", Reached::Gone, 200),
            object("c", Reached::Elsewhere, 100),
            object("d", Reached::Here, 90),
            object("e", Reached::Here, 9),
            made(7, None, false, 250),
            made(8, Some(Runtime::Php), false, 9),
        ]);
        let starts: Vec<&str> = said.iter().map(|said| &said[..5]).collect();
        assert_eq!(starts, ["30.0%", "25.0%", "20.0%", "10.0%"]);
        assert!(said[2].contains("deleted or replaced"), "{said:?}");
        assert!(said[3].contains("another mount namespace"), "{said:?}");
    }

    #[test]
    fn dear_switches_are_told_with_the_remedy_unless_it_is_used() {
        let (mut counters, second) = (Counters::EMPTY, Duration::from_secs(1));
        counters.counters[Counter::Fired as usize] = 44_000;
        let mut cost = |milliseconds: u64, waits: &Waits| {
            counters.counters[Counter::RunTime as usize] = milliseconds * 1_000_000;
            on_switches(waits, &counters, second)
        };
        let every = Waits::default();
        assert_eq!(cost(50, &every), None);
        let said = cost(160, &every).unwrap();
        assert!(said.contains("44,000 waits a second took 16.0%"), "{said}");
        assert!(said.contains("--switch-sample"), "{said}");
        let some = Waits {
            look_period: Duration::from_millis(1),
            ..every
        };
        assert_eq!(cost(160, &some), None);
    }

    #[test]
    fn fetching_is_told_with_its_failures() {
        assert_eq!(on_fetching(&Fetched::default()), None);
        let said = |files, limited, failed| {
            let fetched = Fetched {
                files,
                bytes: 3 << 19,
                limited,
                failed,
            };
            on_fetching(&fetched).unwrap()
        };
        assert_eq!(said(1, false, false), "Fetched a debug file of 1.5 MiB.");
        let all = said(2, true, true);
        assert!(
            all.starts_with("Fetched 2 debug files of 1.5 MiB. Note: a debuginfod server")
                && all.contains("DEBUGINFOD_MAXTIME"),
            "{all}"
        );
        assert!(said(0, true, false).starts_with("Note: fetching"));
    }

    #[test]
    fn without_gaps_nothing_is_said() {
        assert!(said(&[]).is_empty());
        assert!(on_names(&[], 0, &Distribution::unknown()).is_empty());
    }
}
