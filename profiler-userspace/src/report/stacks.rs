//! User stacks that do not reach their root, and unwind tables that are missing.
//!
//! In: how stacks ended, and what the loader of tables did. Out: findings with a share and a cause.

use super::findings::Finding;
use crate::plan::MemoryLimits;
use crate::text::number::{counted, mebibytes, share};
use crate::unwind::loader::Loaded;
use profiler_common::abi::{Fallbacks, StackEnd};
use std::collections::BTreeMap;

/// Stacks that are incomplete, by how they ended, and those that are complete thanks to something else than unwind instructions.
pub(super) fn incomplete(
    ends: &BTreeMap<StackEnd, u64>,
    fallbacks: [u64; Fallbacks::EACH.len()],
) -> Vec<Finding> {
    let all: u64 = ends.values().sum();
    let finding = |kind, count: u64, what: &str| {
        (count > 0).then(|| {
            let share = share(count as f64, all as f64);
            Finding::new(kind, format!("{share} of user stacks {what}"))
        })
    };
    let ended = StackEnd::ALL.into_iter().filter_map(|end| {
        let count = ends.get(&end).copied().unwrap_or(0);
        finding("incomplete", count, cause(end)?)
    });
    let used = Fallbacks::EACH.into_iter().zip(fallbacks);
    let used = used.filter_map(|(fallback, count)| {
        let (kind, what) = use_of(fallback);
        finding(kind, count, what)
    });
    ended.chain(used).collect()
}

/// Label and phrase for stacks that used a fallback instead of unwind instructions.
const fn use_of(fallback: Fallbacks) -> (&'static str, &'static str) {
    match fallback {
        Fallbacks::FRAME_POINTER => (
            "incomplete",
            "use frame pointers in code without unwind tables; a caller may be missing",
        ),
        Fallbacks::GUESS => (
            "walked",
            "pass code without unwind instructions by a caller looked for in the stack (marked [guessed caller])",
        ),
        _ => (
            "walked",
            "pass code without unwind instructions by what its instructions do",
        ),
    }
}

/// Why a stack ended; none if it is complete.
fn cause(end: StackEnd) -> Option<&'static str> {
    Some(match end {
        // The second is none.
        StackEnd::Root | StackEnd::Guess => return None,
        StackEnd::NoFramePointer => {
            "were walked by frame pointers only; callers in code built without them are missing"
        }
        StackEnd::Unreadable => "end at memory that could not be read",
        StackEnd::Truncated => "have more than 1,024 frames (marked [truncated])",
        StackEnd::Compat => "are of 32-bit programs, which are not walked",
        StackEnd::NoRow => "end in code without unwind instructions",
        StackEnd::BadRow => "end at unwind instructions that are not supported",
        StackEnd::Implausible => "end where unwind instructions led to no caller",
        StackEnd::NotLoaded => "end in objects whose unwind tables were not loaded, or not yet",
    })
}

/// Findings on unwind tables, which were limited so: only those that someone can do something about.
pub(crate) fn on_tables(loaded: &Loaded, memory: &MemoryLimits) -> Vec<Finding> {
    let mut findings = Vec::new();
    if loaded.evicted > 0 || loaded.refused > 0 {
        findings.push(Finding::note(format!(
            "unwind tables exceeded {}: {} evicted, {} not loaded; raise {}",
            mebibytes(loaded.bytes),
            loaded.evicted,
            loaded.refused,
            match memory.all_bytes {
                Some(_) => "--max-memory",
                None => "--max-unwind-memory",
            },
        )));
    }
    if loaded.too_large > 0 {
        findings.push(Finding::note(format!(
            "{} with implausibly large unwind sections walked by frame pointers; `flame-bpf inspect unwind FILE` checks a \
             file",
            counted(loaded.too_large as u64, "object"),
        )));
    }
    if loaded.left_out > 0 || loaded.rules_refused > 0 {
        findings.push(Finding::note(format!(
            "the index of unwind tables was full: {} and {} left out",
            counted(loaded.left_out as u64, "code segment"),
            counted(loaded.rules_refused as u64, "rule"),
        )));
    }
    if loaded.functions_left_out > 0 {
        findings.push(Finding::note(format!(
            "functions without unwind instructions were left unread {}, as reading {} had taken 1% of a CPU; \
             a longer recording reads more",
            counted(loaded.functions_left_out as u64, "time"),
            counted(loaded.functions as u64, "function"),
        )));
    }
    if loaded.put_off > 0 {
        findings.push(Finding::note(format!(
            "reading unwind tables waited {}, to keep to --max-overhead: samples came to their code before",
            counted(loaded.put_off as u64, "time"),
        )));
    }
    for (runtime, why) in &loaded.runtimes_left_out {
        findings.push(Finding::note(format!(
            "{runtime}: only native frames are shown, because {why}"
        )));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_stacks_that_used_a_fallback_is_said() {
        let ends = BTreeMap::from([(StackEnd::Root, 90), (StackEnd::NoRow, 10)]);
        let lines = |fallbacks| {
            let found = incomplete(&ends, fallbacks);
            let lines = found
                .iter()
                .map(|found| format!("{}: {}", found.label, found.text));
            lines.collect::<Vec<_>>()
        };
        let ended = "incomplete: 10.0% of user stacks end in code without unwind instructions";
        assert_eq!(lines([0, 0, 0]), [ended]);
        assert_eq!(
            lines([20, 50, 10]),
            [
                ended,
                "incomplete: 20.0% of user stacks use frame pointers in code without unwind tables; a caller may be missing",
                "walked: 50.0% of user stacks pass code without unwind instructions by what its instructions do",
                "walked: 10.0% of user stacks pass code without unwind instructions by a caller looked for in the stack (marked [guessed caller])",
            ]
        );
    }
}
