//! Frames without names, and what would bring the names.
//!
//! In: code without names, how many samples there are, and the distro. Out: findings, each with a share, a cause and a
//! remedy. What hardly shows in a graph is not mentioned.

use super::findings::Finding;
use crate::debuginfod::{Failure, Fetched};
use crate::probe::Waits;
use crate::process::{
    CONTEXT_VERSION, CodeMaker, MAX_CONTEXT_BYTES, Shortage, Unread, UnreadContexts,
};
use crate::profile::fold::visible;
use crate::report::distro::Distro;
use crate::symbolize::{AllUnsymbolized, FrameCounts, Reached, Unsymbolized, UnsymbolizedCode};
use crate::text::number::{counted, grouped, mebibytes, share};
use profiler_common::abi::{CGROUP_SLOTS, Class, Counter, Counters};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Code without names in fewer samples than one in so many is not worth a sentence.
const WORTH_ONE_IN: u64 = 100;

/// So many objects are named, those of most samples first.
const MAX_OBJECTS: usize = 3;

/// So many PIDs are listed.
const MAX_PIDS: usize = 3;

/// The share of one CPU's time that looking at waits may take before there is something to say of it, in percent.
const DEAR_PERCENT: u128 = 5;

/// The finding on waits, where recording every one was expensive.
pub(crate) fn on_switches(
    waits: &Waits,
    counters: &Counters,
    elapsed: Duration,
) -> Option<Finding> {
    let spent = Duration::from_nanos(counters.get(Counter::RunTime));
    let is_dear = spent.as_nanos() * 100 > elapsed.as_nanos() * DEAR_PERCENT;
    let per_second = |number: u64| (number as f64 / elapsed.as_secs_f64().max(0.001)) as u64;
    (is_dear && waits.wait_sample_period.is_zero()).then(|| {
        Finding::note(format!(
            "recording {} waits a second took {} of one CPU; --switch-sample 1ms records about a thousand a second of each \
             thread, weighted",
            grouped(per_second(counters.sum(Class::Fired))),
            share(spent.as_secs_f64(), elapsed.as_secs_f64()),
        ))
    })
}

/// The finding on firings in cgroups for which there was no room.
pub(crate) fn on_cgroups(firings: u64) -> Option<Finding> {
    (firings > 0).then(|| {
        Finding::note(format!(
            "{} in cgroups beyond the {} that are told apart have no label; shorter recordings meet fewer",
            counted(firings, "firing"),
            grouped(u64::from(CGROUP_SLOTS)),
        ))
    })
}

/// The finding on contexts that processes publish and that were not read.
pub(crate) fn on_contexts(unread: &UnreadContexts) -> Option<Finding> {
    let because = |reason| match reason {
        Unread::OtherVersion => format!("not of version {CONTEXT_VERSION}"),
        Unread::TooLarge => format!("of more than {} KiB", MAX_CONTEXT_BYTES >> 10),
        Unread::Broken => "broken".to_owned(),
        Unread::Silent => "in memory that does not answer".to_owned(),
        Unread::NotTried => "not tried, since others took too long".to_owned(),
    };
    let reasons = Unread::ALL.into_iter().filter_map(|reason| {
        let count = unread.get(reason);
        (count > 0).then(|| format!("{} {}", grouped(count as u64), because(reason)))
    });
    let reasons: Vec<String> = reasons.collect();
    (!reasons.is_empty()).then(|| {
        Finding::note(format!(
            "contexts (OTEL_CTX) of {} were not read: {}; use --service-name, or their containers, units or programs name \
             their services",
            counted(unread.total() as u64, "process"),
            reasons.join(", ")
        ))
    })
}

/// Findings on debug files that were fetched, or should have been.
pub(crate) fn on_fetching(fetched: &Fetched, failures: &[Failure]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if fetched.files > 0 {
        let files = counted(fetched.files, "debug file");
        let bytes = mebibytes(fetched.bytes);
        findings.push(Finding::new("fetched", format!("{files}, {bytes}")));
    }
    findings.extend(failures.iter().map(|Failure { server, reason }| {
        Finding::note(format!(
            "the debuginfod server {server} was not asked again: {reason}"
        ))
    }));
    if fetched.limited {
        findings.push(Finding::note(
            "fetching debug files hit a limit; raise DEBUGINFOD_MAXTIME (seconds) or DEBUGINFOD_MAXSIZE (bytes)",
        ));
    }
    findings
}

/// Findings on mappings and files that were not kept: only where names may be missing for it.
pub(crate) fn on_shortage(
    shortage: &Shortage,
    cut_maps: usize,
    nameless_functions: usize,
    functions_in_part: usize,
) -> Vec<Finding> {
    let counted = |count: usize, noun| counted(count as u64, noun);
    let mut findings = Vec::new();
    if shortage.files > 0 {
        findings.push(Finding::note(format!(
            "{} could not be kept open and had to exist at the end; raise `ulimit -n`",
            counted(shortage.files, "mapped file")
        )));
    }
    if shortage.code_maps > 0 {
        findings.push(Finding::note(format!(
            "the perf maps of {} were read only if they ran to the end; raise `ulimit -n`",
            counted(shortage.code_maps, "process")
        )));
    }
    if cut_maps > 0 {
        findings.push(Finding::note(format!(
            "{} larger than 1 GiB read in part: some of that code may have no name or an old one",
            counted(cut_maps, "perf map or jitdump")
        )));
    }
    if shortage.mappings > 0 || shortage.readings > 0 {
        findings.push(Finding::note(format!(
            "{} of mappings exceeded the limit and {} replaced by later ones: some frames may be [unknown]; record for less \
             time or fewer processes",
            counted(shortage.mappings, "reading"),
            counted(shortage.readings, "reading")
        )));
    }
    if shortage.functions > 0 {
        findings.push(Finding::note(format!(
            "no room for the names of {} of interpreters; record for less time or fewer processes",
            counted(shortage.functions, "function"),
        )));
    }
    if nameless_functions > 0 {
        findings.push(Finding::note(format!(
            "{} of interpreters without a name: it could not be read or not be reported",
            counted(nameless_functions, "frame"),
        )));
    }
    if functions_in_part > 0 {
        findings.push(Finding::note(format!(
            "{} of code that its runtime moved or replaced before it was read: inlined calls or lines may be missing there; \
             record again once the program has warmed up",
            counted(functions_in_part, "frame"),
        )));
    }
    findings
}

/// Findings on code without names, that of most frames first.
pub(crate) fn on_names(unsymbolized: &AllUnsymbolized, distro: &Distro) -> Vec<Finding> {
    let AllUnsymbolized { code, all } = unsymbolized;
    let worth = |counts: FrameCounts| {
        let worth = |part: u64, all: u64| part > 0 && part.saturating_mul(WORTH_ONE_IN) >= all;
        worth(counts.frames, all.frames) || worth(counts.leaves, all.leaves)
    };
    let mut sentences: Vec<(u64, String)> = Vec::new();
    for (makers, made) in makers(code) {
        if worth(made.counts) {
            sentences.push((made.counts.frames, made.sentence(makers, *all)));
        }
    }
    let objects = code
        .iter()
        .filter(|unsymbolized| worth(unsymbolized.counts));
    let objects = objects.filter_map(|Unsymbolized { code, counts }| {
        let sentence = on_object(code, shares(*counts, *all), distro)?;
        Some((counts.frames, sentence))
    });
    sentences.extend(objects.take(MAX_OBJECTS));
    sentences.sort_by_key(|(count, _)| Reverse(*count));
    sentences
        .into_iter()
        .map(|(_, sentence)| Finding::new("unnamed", sentence))
        .collect()
}

/// `12.3% of frames and 4.5% of leaves`.
fn shares(part: FrameCounts, all: FrameCounts) -> String {
    format!(
        "{} of frames and {} of leaves",
        share(part.frames as f64, all.frames as f64),
        share(part.leaves as f64, all.leaves as f64)
    )
}

/// Code that processes of one kind made.
#[derive(Default)]
struct Made {
    counts: FrameCounts,
    pids: Vec<u32>,
}

/// Common properties of processes that made code: the maker they seem to be, and whether their perf maps have other code.
type Makers = (Option<&'static CodeMaker>, bool);

fn makers(unsymbolized: &[Unsymbolized]) -> BTreeMap<Makers, Made> {
    let mut all: BTreeMap<Makers, Made> = BTreeMap::new();
    for unsymbolized in unsymbolized {
        if let UnsymbolizedCode::Made {
            tgid,
            maker,
            has_code_map,
        } = unsymbolized.code
        {
            let made = all.entry((maker, has_code_map)).or_default();
            made.counts.frames += unsymbolized.counts.frames;
            made.counts.leaves += unsymbolized.counts.leaves;
            if !made.pids.contains(&tgid) {
                made.pids.push(tgid);
            }
        }
    }
    all
}

impl Made {
    fn sentence(&self, (maker, has_code_map): Makers, all: FrameCounts) -> String {
        let share = shares(self.counts, all);
        let pids: Vec<String> = self
            .pids
            .iter()
            .take(MAX_PIDS)
            .map(u32::to_string)
            .collect();
        let more = match self.pids.len().saturating_sub(MAX_PIDS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let whose = format!(
            "{} (PID{} {}{more})",
            maker.map_or("a program", |maker| maker.name),
            if self.pids.len() > 1 { "s" } else { "" },
            pids.join(", ")
        );
        let what = format!("{share}, in code that {whose} generated");
        let first = self.pids.first().copied().unwrap_or_default();
        let advice = |text: &str| text.replace("{pid}", &first.to_string());
        match (maker, has_code_map) {
            (Some(maker), false) => format!("{what}; {}", advice(maker.remedy)),
            (None, false) => format!("{what}; there is no /tmp/perf-{first}.map"),
            (_, true) => match maker.and_then(|maker| maker.renewal) {
                Some(renewal) => format!("{what} and its perf map lacks; {}", advice(renewal)),
                None => format!("{what} and its perf map lacks"),
            },
        }
    }
}

fn on_object(code: &UnsymbolizedCode, share: String, distro: &Distro) -> Option<String> {
    let UnsymbolizedCode::Object {
        module,
        path,
        build_id,
        reached,
    } = code
    else {
        return None;
    };
    let what = format!("{share}, in {}", visible(module));
    Some(match reached {
        Reached::Gone => {
            format!("{what}, which was deleted or replaced; record while its processes run")
        }
        Reached::Denied => format!(
            "{what}, which may not be read (permission denied); {}",
            permission()
        ),
        Reached::Absent => format!(
            "{what}, whose recorded version is not here{}; {}",
            build_id
                .as_ref()
                .map_or_else(String::new, |id| format!(" (build ID {id})")),
            distro.anywhere()
        ),
        Reached::Here => {
            let remedy = distro.symbols_of(path, build_id.as_ref());
            format!("{what} (stripped); {remedy}")
        }
        Reached::Elsewhere => {
            format!(
                "{what} (stripped, in another mount namespace); {}",
                distro.anywhere()
            )
        }
    })
}

/// Advice on a file that may not be read.
fn permission() -> &'static str {
    match rustix::process::geteuid().is_root() {
        // FUSE, by default: AppImages, rootless containers, sshfs.
        true => {
            "its file system lets only its owner in, not even root; mount it with -o allow_root"
        }
        false => {
            "record with sudo, or with the capabilities cap_sys_ptrace and cap_dac_read_search"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `file`: what the maker has mapped.
    fn made(tgid: u32, file: &str, has_code_map: bool, count: u64) -> Unsymbolized {
        Unsymbolized {
            code: UnsymbolizedCode::Made {
                tgid,
                maker: CodeMaker::of_file(file),
                has_code_map,
            },
            counts: counts(count),
        }
    }

    /// So many frames, as many of which are innermost.
    fn counts(count: u64) -> FrameCounts {
        FrameCounts {
            frames: count,
            leaves: count,
        }
    }

    fn of_thousand(code: &[Unsymbolized]) -> AllUnsymbolized {
        AllUnsymbolized {
            code: code.to_vec(),
            all: counts(1000),
        }
    }

    fn object(module: &str, reached: Reached, count: u64) -> Unsymbolized {
        Unsymbolized {
            code: UnsymbolizedCode::Object {
                module: module.to_owned(),
                path: format!("/opt/{module}").into(),
                build_id: None,
                reached,
            },
            counts: counts(count),
        }
    }

    fn said(unsymbolized: &[Unsymbolized]) -> Vec<String> {
        let findings = on_names(&of_thousand(unsymbolized), &Distro::unknown());
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn everything_left_out_is_reported_with_a_number() {
        assert!(on_shortage(&Shortage::default(), 0, 0, 0).is_empty());
        let shortage = Shortage {
            files: 1,
            code_maps: 1234,
            mappings: 5,
            readings: 1,
            functions: 7,
        };
        let findings = on_shortage(&shortage, 2, 3, 4);
        let sentences: Vec<String> = findings.into_iter().map(|finding| finding.text).collect();
        assert_eq!(sentences.len(), 7);
        for (sentence, part) in sentences.iter().zip([
            "1 mapped file could",
            "1,234 processes",
            "2 perf map or jitdumps",
            "5 readings of",
            "names of 7 functions",
            "3 frames of interpreters without a name",
            "4 frames of code that its runtime moved",
        ]) {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(sentences[0].contains("ulimit -n") && sentences[1].contains("ulimit -n"));
    }

    #[test]
    fn contexts_that_were_not_read_have_their_reasons() {
        let mut unread = UnreadContexts::default();
        assert_eq!(on_contexts(&unread), None);
        unread.add(Unread::OtherVersion);
        unread.add(Unread::NotTried);
        unread.add(Unread::NotTried);
        let text = on_contexts(&unread).unwrap().text;
        let said = "of 3 processes were not read: 1 not of version 2, 2 not tried";
        assert!(text.contains(said), "{text}");
        for reason in Unread::ALL {
            unread.add(reason);
        }
        let text = on_contexts(&unread).unwrap().text;
        for part in ["64 KiB", "1 broken", "1 in memory", "3 not tried"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn every_maker_of_code_has_a_remedy() {
        for (file, remedy) in [
            ("node", "--perf-basic-prof"),
            ("libjvm.so", "`jcmd 7 Compiler.perfmap`"),
            ("python3", "-X perf"),
            ("libcoreclr.so", "DOTNET_PerfMapEnabled=1"),
            ("luajit", "LUAJIT_USE_PERFTOOLS"),
            ("php", "opcache.jit_debug"),
            ("ruby", "--yjit-perf"),
            ("beam.smp", "+JPperf true"),
        ] {
            let said = said(&[made(7, file, false, 500)]);
            assert_eq!(said.len(), 1);
            assert!(
                said[0].starts_with("50.0% of frames and 50.0% of leaves, in code that")
                    && said[0].contains("PID 7")
                    && said[0].contains(remedy),
                "{said:?}"
            );
        }
    }

    #[test]
    fn processes_of_one_maker_share_a_sentence() {
        let all: Vec<Unsymbolized> = (1..=5).map(|pid| made(pid, "node", false, 4)).collect();
        let said = said(&all);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("2.0%") && said[0].contains("PIDs 1, 2, 3 and 2 more"),
            "{said:?}"
        );
    }

    #[test]
    fn an_incomplete_perf_map_is_not_called_missing() {
        let node = said(&[made(7, "node", true, 50)]);
        assert!(node[0].ends_with("and its perf map lacks"), "{node:?}");
        let java = said(&[made(7, "libjvm.so", true, 50)]);
        assert!(java[0].contains("jcmd 7"), "{java:?}");
        let other = said(&[made(7, "a.out", false, 50)]);
        assert!(other[0].contains("/tmp/perf-7.map"), "{other:?}");
    }

    #[test]
    fn the_widest_unsymbolized_modules_come_first() {
        let said = said(&[
            object("a", Reached::Here, 300),
            object("b", Reached::Gone, 200),
            object("c", Reached::Elsewhere, 100),
            object("d", Reached::Denied, 90),
            object("e", Reached::Here, 9),
            made(7, "a.out", false, 250),
            made(8, "php", false, 9),
        ]);
        let starts: Vec<&str> = said.iter().map(|said| &said[..5]).collect();
        assert_eq!(starts, ["30.0%", "25.0%", "20.0%", "10.0%"]);
        assert!(said[2].contains("deleted or replaced"), "{said:?}");
        let denied = super::on_names(
            &of_thousand(&[object("d", Reached::Denied, 900)]),
            &Distro::unknown(),
        );
        assert!(
            denied[0]
                .text
                .contains("may not be read (permission denied); "),
            "{denied:?}"
        );
        assert!(said[3].contains("another mount namespace"), "{said:?}");
    }

    #[test]
    fn costly_switches_are_reported_unless_sampling_is_on() {
        let (mut counters, second) = (Counters::EMPTY, Duration::from_secs(1));
        counters.counters[Counter::Fired as usize] = 44_000;
        let mut cost = |milliseconds: u64, waits: &Waits| {
            counters.counters[Counter::RunTime as usize] = milliseconds * 1_000_000;
            on_switches(waits, &counters, second)
        };
        let every = Waits::default();
        assert_eq!(cost(50, &every), None);
        let said = cost(160, &every).unwrap().text;
        assert!(said.contains("44,000 waits a second took 16.0%"), "{said}");
        assert!(said.contains("--switch-sample"), "{said}");
        let some = Waits {
            wait_sample_period: Duration::from_millis(1),
            ..every
        };
        assert_eq!(cost(160, &some), None);
    }

    #[test]
    fn downloads_are_reported_with_their_failures() {
        assert!(on_fetching(&Fetched::default(), &[]).is_empty());
        let said = |files, limited, failed: bool| {
            let fetched = Fetched {
                files,
                bytes: 3 << 19,
                limited,
            };
            let failure = Failure {
                server: "http://x".to_owned(),
                reason: "it answered 500".to_owned(),
            };
            on_fetching(&fetched, &[failure][..usize::from(failed)])
        };
        let one = Finding::new("fetched", "1 debug file, 1.5 MiB");
        assert_eq!(said(1, false, false), [one]);
        let all = said(2, true, true);
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].text, "2 debug files, 1.5 MiB");
        assert!(
            all[1]
                .text
                .ends_with("http://x was not asked again: it answered 500"),
            "{all:?}"
        );
        assert!(all[2].text.contains("DEBUGINFOD_MAXTIME"), "{all:?}");
        assert_eq!(said(0, true, false).len(), 1);
    }

    #[test]
    fn cgroups_without_room_are_counted() {
        assert_eq!(on_cgroups(0), None);
        let text = on_cgroups(258).unwrap().text;
        assert!(
            text.starts_with("258 firings")
                && text.contains("16,384")
                && text.ends_with("shorter recordings meet fewer"),
            "{text}"
        );
    }

    #[test]
    fn a_fully_symbolized_profile_has_no_advice() {
        assert!(said(&[]).is_empty());
        assert!(on_names(&AllUnsymbolized::default(), &Distro::unknown()).is_empty());
    }
}
