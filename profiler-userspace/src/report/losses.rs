//! Findings on firings that were lost or left out, and on how to keep them.
//!
//! In: the kernel half's counters. Out: a finding for each of them that is not zero.

use super::findings::{Finding, LOSS, LOST_NOTHING};
use crate::text::number::{counted, grouped};
use profiler_common::abi::{Class, Counter, Counters};

/// Findings on losses, or that there were none.
pub(super) fn lost(counters: &Counters, noun: &str) -> Vec<Finding> {
    let findings = each_loss(counters, noun);
    if findings.is_empty() {
        return vec![Finding::new(LOST_NOTHING, "nothing")];
    }
    findings
}

/// Findings on losses, one for each cause.
pub(super) fn each_loss(counters: &Counters, noun: &str) -> Vec<Finding> {
    nonzero(counters, Class::Lost)
        .map(|(counter, count)| {
            Finding::new(
                LOSS,
                format!("{}: {}", counted(count, noun), cause(counter)),
            )
        })
        .collect()
}

/// The finding on firings that were left out on request.
pub(super) fn left_out(counters: &Counters, idle_is_offered: bool) -> Option<Finding> {
    let phrases: Vec<String> = nonzero(counters, Class::Filtered)
        .map(|(counter, count)| format!("{} {}", grouped(count), filter(counter, idle_is_offered)))
        .collect();
    (!phrases.is_empty()).then(|| Finding::new("left out", phrases.join(", ")))
}

/// Waits of which the recording saw one end only, or none.
pub(super) fn open_waits(counters: &Counters, noun: &str) -> Vec<Finding> {
    [
        (
            Counter::WaitingBefore,
            "had begun before the recording; counted from its beginning",
        ),
        (
            Counter::EndReckoned,
            "had no end event; their end is taken from scheduler statistics",
        ),
        (
            Counter::StillWaiting,
            "had not ended when the recording did; counted up to its end",
        ),
    ]
    .into_iter()
    .filter_map(|(counter, what)| {
        let count = counters.get(counter);
        (count > 0).then(|| Finding::new("partly", format!("{} {what}", counted(count, noun))))
    })
    .collect()
}

/// Events that found the queue full. Most of them come again; those of a process that has ended do not.
pub(super) fn dropped_events(counters: &Counters) -> Option<Finding> {
    let count = [Counter::MappingEventsDropped, Counter::KernelEventsDropped];
    let count = count.map(|counter| counters.get(counter)).iter().sum();
    dropped(count, "mapping event", "[unknown]")
}

/// Events about functions of interpreters that found the queue full.
pub(super) fn dropped_functions(counters: &Counters) -> Option<Finding> {
    let count = counters.get(Counter::FunctionEventsDropped);
    dropped(count, "function event", "[function without a name]")
}

fn dropped(count: u64, noun: &str, frame: &str) -> Option<Finding> {
    let events = counted(count, noun);
    let said = format!("{events} dropped (queue full): some frames may be {frame}; lower -F");
    (count > 0).then(|| Finding::note(said))
}

fn nonzero(counters: &Counters, class: Class) -> impl Iterator<Item = (Counter, u64)> {
    let all = Counter::ALL.iter();
    all.map(|&counter| (counter, counters.get(counter)))
        .filter(move |(counter, count)| counter.class() == class && *count > 0)
}

/// Why a firing was lost, and which flag keeps it.
fn cause(counter: Counter) -> &'static str {
    match counter {
        Counter::LostStackStore => "the store of stacks was full; raise --map-memory or lower -F",
        Counter::LostTallyTable => "the table of samples was full; raise --map-memory or lower -F",
        Counter::LostThreadTable => "the table of waiting threads was full; raise --map-memory",
        Counter::LostCgroup => {
            "their cgroups could not be told: there are too many; name processes (-p)"
        }
        Counter::LostReentered => {
            "they interrupted another on the same CPU; record fewer threads (-t)"
        }
        Counter::LostPair => {
            "their ends were not seen; raise --map-memory or run no other recording"
        }
        other => other.name(),
    }
}

fn filter(counter: Counter, idle_is_offered: bool) -> &'static str {
    match counter {
        Counter::FilteredIdle if idle_is_offered => "while idle (-I keeps them)",
        Counter::FilteredIdle => "while idle",
        Counter::FilteredTarget => "of other tasks",
        Counter::FilteredNamespace => "outside this PID namespace",
        Counter::FilteredUserMode => "in user mode (-K)",
        Counter::FilteredNoUserStack => "without a user stack (-U)",
        Counter::FilteredThreadKind => "of the other kind of threads",
        Counter::FilteredState => "in other states",
        Counter::FilteredBlockTime => "shorter or longer (-m, -M)",
        Counter::FilteredSwitchSample => "represented by others (--switch-sample)",
        Counter::FilteredFileKind => "on other kinds of files (--io-kind)",
        other => other.name(),
    }
}
