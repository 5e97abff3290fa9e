//! User stacks that do not reach their root, and unwind tables that are missing.
//!
//! In: how stacks ended, and what the loader of tables did. Out: findings with a share and a cause.

use super::findings::Finding;
use super::text::{counted, mebibytes, share};
use crate::unwind::loader::Loaded;
use profiler_common::abi::StackEnd;
use std::collections::BTreeMap;

/// Stacks that are incomplete, by how they ended.
pub(super) fn incomplete(ends: &BTreeMap<StackEnd, u64>, fp_fallback: u64) -> Vec<Finding> {
    let all: u64 = ends.values().sum();
    let finding = |count: u64, cause: &str| {
        (count > 0).then(|| {
            let share = share(count, all);
            Finding::new("incomplete", format!("{share} of user stacks {cause}"))
        })
    };
    let mut findings: Vec<Finding> = StackEnd::ALL
        .into_iter()
        .filter_map(|end| finding(ends.get(&end).copied().unwrap_or(0), cause(end)?))
        .collect();
    findings.extend(finding(
        fp_fallback,
        "use frame pointers in code without unwind tables; a caller may be missing",
    ));
    findings
}

/// Why a stack ended; none if it is complete.
fn cause(end: StackEnd) -> Option<&'static str> {
    Some(match end {
        StackEnd::Root => return None,
        StackEnd::NoFramePointer => {
            "were walked by frame pointers only; callers in code built without them are missing"
        }
        StackEnd::Unreadable => "end at memory that could not be read",
        StackEnd::Truncated => "have more than 1,024 frames (marked [truncated])",
        StackEnd::Compat => "are of 32-bit programs, which are not walked",
        StackEnd::NoRow => "end in code without unwind instructions",
        StackEnd::BadRow => "end at unwind instructions that are not supported",
        StackEnd::Implausible => "end where unwind instructions led to no caller",
        StackEnd::NotLoaded => "end in objects whose unwind tables were not loaded yet",
    })
}

/// What there is to say of unwind tables: only what someone can do something about.
pub(crate) fn on_tables(loaded: &Loaded) -> Vec<Finding> {
    let mut findings = Vec::new();
    if loaded.evicted > 0 || loaded.refused > 0 {
        findings.push(Finding::note(format!(
            "unwind tables exceeded {}: {} evicted, {} not loaded; raise --max-unwind-memory",
            mebibytes(loaded.bytes),
            loaded.evicted,
            loaded.refused,
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
    for (runtime, why) in &loaded.runtimes_left_out {
        findings.push(Finding::note(format!(
            "{runtime}: only native frames are shown, because {why}"
        )));
    }
    findings
}
