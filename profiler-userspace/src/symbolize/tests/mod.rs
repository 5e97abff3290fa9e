//! Symbolizing as a whole.

mod inlined;
mod laws;
mod limits;
mod mappings;
mod normalizing;
pub(super) mod program;
mod programs;
mod sources;
mod split;

use super::*;
use crate::process::ProcessKey;
use crate::profile::raw::{Parts, RawFrame, RawProfile, RawSample, StackIndex, Who};
use crate::profile::{FrameKind, View};
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prints where two functions are.
const TWO_FUNCTIONS: &str = r#"
#include <stdio.h>
static __attribute__((noinline)) int inner(int x) { return x * 3 + 1; }
__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }
int main(void) {
    printf("%p %p\n", (void *)inner, (void *)outer);
    fflush(stdout);
    getchar();
    return outer(1);
}
"#;

/// Names of programs as they come unless told otherwise.
fn usual() -> Sources<'static> {
    Sources {
        naming: &DEFAULT,
        fetch: None,
        progress: None,
        names: None,
    }
}

const DEFAULT_MEMORY: SymbolMemory = SymbolMemory { bytes: 256 << 20 };

static DEFAULT: Naming = Naming {
    debug_directories: Vec::new(),
    demangling: Demangling::Full,
    inlined: false,
    lines: false,
    joins_lines: false,
    addresses: false,
    places: false,
    kernel_lines: false,
    interpreter_frames: false,
    memory: DEFAULT_MEMORY,
};

fn raw(process_key: ProcessKey, addresses: &[u64]) -> RawProfile {
    let mut raw = RawProfile::default();
    raw.stacks.push(Arc::new(RawStack {
        frames: RawFrame::of_addresses(addresses.iter().copied()),
        end: StackEnd::Root,
        fallbacks: Fallbacks::NONE,
        check: 0,
    }));
    raw.samples.push(RawSample {
        who: Who {
            tgid: process_key.tgid,
            incarnation: process_key.incarnation,
            comm: *b"test\0\0\0\0\0\0\0\0\0\0\0\0",
            ..Who::default()
        },
        user: Some(StackIndex(0)),
        weight: 1,
        count: 1,
        ..RawSample::default()
    });
    raw
}

/// All at once.
fn normalized(processes: &mut Processes, raw: &RawProfile) -> (NormalizedProfile, Objects) {
    Normalizer::new().finish(&mut raw.clone(), processes)
}

fn named_by(processes: &mut Processes, raw: &RawProfile) -> Vec<String> {
    named_from(&usual(), processes, raw)
}

fn named_from(sources: &Sources<'_>, processes: &mut Processes, raw: &RawProfile) -> Vec<String> {
    let (normalized, objects) = normalized(processes, raw);
    let kernel = KernelNameCache::default().symbols(&normalized, &mut KernelNames::listed());
    let unit = Unit::Samples;
    let symbolized = symbolize(normalized, &objects, unit, processes, &kernel, sources);
    let view = View::new(&symbolized.profile);
    let stack = view.tree().stack(view.tree().samples()[0].node);
    stack.into_iter().map(|frame| frame.name.clone()).collect()
}

/// Names of a stack, given and returned from leaf to root, without the process.
fn names(processes: &mut Processes, process_key: ProcessKey, addresses: &[u64]) -> Vec<String> {
    let mut names = named_by(processes, &raw(process_key, addresses));
    names.remove(0);
    names.reverse();
    names
}

#[test]
fn a_stack_runs_from_labels_to_user_to_kernel_frames() {
    let gone = ProcessKey::new(u32::MAX, 1);
    let mut raw = raw(gone, &[0x10, 0x20]);
    Arc::get_mut(&mut raw.stacks[0]).unwrap().end = StackEnd::Truncated;
    raw.stacks.push(Arc::new(RawStack {
        frames: RawFrame::of_addresses([0x1000, 0x2001]),
        end: StackEnd::Root,
        fallbacks: Fallbacks::NONE,
        check: 0,
    }));
    raw.samples[0].kernel = Some(StackIndex(1));
    raw.samples[0].who.cpu = Some(3);
    raw.samples[0].who.tid = Some(77);
    raw.samples[0].who.comm = *b"a;\xff\n\0rest\0\0\0\0\0\0\0";
    raw.samples[0].weight = 10;
    raw.samples[0].count = 2;
    let mut ask = |addresses: &[u64]| {
        assert_eq!(addresses, [0x1000, 0x2000]);
        Some(vec![Some("leaf".to_owned()), None])
    };
    let mut processes = Processes::new();
    let (normalized, objects) = normalized(&mut processes, &raw);
    let kernel = KernelNameCache::default().symbols(&normalized, &mut KernelNames::asked(&mut ask));
    assert_eq!(
        stack_ends(&normalized),
        BTreeMap::from([(StackEnd::Truncated, 2)])
    );
    assert_eq!(
        (objects.processes(Parts::ALL), normalized.stacks().len()),
        (1, 2)
    );
    let unit = Unit::Samples;
    let profile = symbolize(normalized, &objects, unit, &processes, &kernel, &usual()).profile;
    let labels = profile.labels_at(profile.samples()[0].labels);
    assert_eq!((labels.pid, labels.start), (Some(u32::MAX), 1));
    let view = View::new(&profile);
    let stack = view.tree().stack(view.tree().samples()[0].node).into_iter();
    let stack: Vec<(&str, FrameKind)> = stack
        .map(|frame| (frame.name.as_str(), frame.kind))
        .collect();
    assert_eq!(
        stack,
        [
            ("[cpu 3]", FrameKind::Label),
            ("a;\\xff\n", FrameKind::Process),
            ("[tid 77]", FrameKind::Label),
            ("[truncated]", FrameKind::Mark),
            ("[unknown]", FrameKind::User),
            ("[unknown]", FrameKind::User),
            ("[kernel+0x2000]", FrameKind::Kernel),
            ("leaf", FrameKind::Kernel),
        ],
    );
    assert_eq!((profile.total_weight(), profile.total_count()), (10, 2));
    assert_eq!(kernel.naming, KernelNaming::Asked);
}

#[test]
fn a_walk_that_was_cut_is_counted_where_an_interpreters_frames_are_behind_it() {
    let gone = ProcessKey::new(0, 0);
    let mut raw = raw(gone, &[]);
    let marks = [StackEnd::Guess, StackEnd::NotLoaded, StackEnd::NoRow];
    let marks = marks.map(|end| [RawFrame::Native(0x10), RawFrame::Mark(end)]);
    let frames = marks.into_iter().flatten().chain([RawFrame::Native(0x20)]);
    Arc::get_mut(&mut raw.stacks[0]).unwrap().frames = frames.collect();
    let processes = &mut Processes::new();
    let (normalized, objects) = normalized(processes, &raw);
    let count = normalized.total_count();
    assert_eq!(
        stack_ends(&normalized),
        BTreeMap::from([(StackEnd::NotLoaded, count)])
    );
    let place = (StackEnd::NotLoaded, "[unknown]".to_owned());
    assert_eq!(
        cut_short(&normalized, &objects, processes, false),
        BTreeMap::from([(place, count)])
    );
}

#[test]
fn a_thread_without_stacks_or_a_name_is_still_counted() {
    let gone = ProcessKey::new(0, 0);
    let mut raw = raw(gone, &[]);
    raw.samples[0].user = None;
    raw.samples[0].who.comm = [0; 16];
    assert_eq!(named_by(&mut Processes::new(), &raw), ["[nameless]"]);
    let (normalized, _) = normalized(&mut Processes::new(), &raw);
    assert_eq!(stack_ends(&normalized), BTreeMap::new());
}
