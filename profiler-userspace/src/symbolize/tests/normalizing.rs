//! Locating in pieces, while processes come and go.

use super::laws::profile;
use super::program::{Running, Workshop};
use super::*;
use crate::process::{FunctionEvent, FunctionLines, InlinedCall, RuntimeFunction};
use crate::profile::fold::{self, FoldStyle};
use crate::profile::normalized::{Location, LocationIndex, Sums};
use profiler_common::abi::FrameWord;
use profiler_common::runtime::RuntimeKind;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Folded stacks of all that was normalized.
fn text(normalized: &NormalizedProfile, objects: &Objects, processes: &Processes) -> String {
    let kernel = KernelNameCache::default().symbols(normalized, &mut KernelNames::listed());
    let normalized = normalized.clone();
    let unit = Unit::Samples;
    let named = symbolize(normalized, objects, unit, processes, &kernel, &usual());
    fold::text(&named.profile, FoldStyle::default())
}

/// All that was normalized, whatever its parts are numbered.
fn symbols(
    normalized: &NormalizedProfile,
    objects: &Objects,
    processes: &Processes,
) -> BTreeMap<(Label, Vec<String>), Sums> {
    let location = |index: &LocationIndex| match normalized.location_at(*index) {
        Location::At { object, offset } => {
            format!("{}+{offset:x}", objects.module(object, processes))
        }
        other => format!("{other:?}"),
    };
    let samples = normalized.samples().map(|(key, sums)| {
        let mut parts = vec![format!("{:?}", key.thread_state)];
        for index in [key.user, key.kernel] {
            let stack = index.map(|index| normalized.stack_at(index));
            parts.push(format!(
                "{:?}",
                stack.map(|stack| (stack.end, stack.fallbacks))
            ));
            parts.extend(
                stack
                    .into_iter()
                    .flat_map(|stack| &stack.locations)
                    .map(location),
            );
        }
        ((key.label, parts), sums)
    });
    samples.collect()
}

/// Has all processes looked at when their first samples come, those of an earlier program first.
fn meet(raw: &RawProfile) -> Processes {
    let mut processes = Processes::new();
    let all: BTreeSet<ProcessKey> = raw
        .samples
        .iter()
        .map(|sample| ProcessKey::from(&sample.who))
        .collect();
    for process_key in all {
        processes.see(process_key);
    }
    processes
}

/// Brings some samples of a raw profile, as one drain does.
fn pour(raw: &RawProfile, samples: &[RawSample], into: &mut RawProfile) {
    for sample in samples {
        let mut again = |index: StackIndex| into.intern(raw.shared(index));
        let (user, kernel) = (sample.user.map(&mut again), sample.kernel.map(&mut again));
        into.add(RawSample {
            user,
            kernel,
            ..*sample
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However many drains there were, and whoever had ended before each of them.
    #[test]
    fn normalizing_in_parts_equals_normalizing_at_once(raw in profile(), cuts in proptest::collection::vec(0usize..20, 0..6)) {
        let mut processes = meet(&raw);
        let (whole, objects) = normalized(&mut processes, &raw);
        let at_once = symbols(&whole, &objects, &processes);

        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(raw.samples.len())).collect();
        cuts.extend([0, raw.samples.len()]);
        cuts.sort_unstable();
        let mut processes = meet(&raw);
        let mut normalizer = Normalizer::new();
        let mut left = RawProfile::default();
        for cut in cuts.windows(2) {
            let rest = &raw.samples[cut[1]..];
            let comes_again = |process_key: &ProcessKey| {
                rest.iter().any(|sample| ProcessKey::from(&sample.who) == *process_key)
            };
            let ended: Vec<ProcessKey> =
                processes.ended().into_iter().filter(|process_key| !comes_again(process_key)).collect();
            pour(&raw, &raw.samples[cut[0]..cut[1]], &mut left);
            normalizer.take(&mut left, &mut processes, &ended);
        }
        let (pieces, pieces_objects) = normalizer.finish(&mut left, &mut processes);
        prop_assert!(left.samples.is_empty());
        prop_assert_eq!(symbols(&pieces, &pieces_objects, &processes), at_once);
        prop_assert_eq!(pieces.stacks().len(), whole.stacks().len());
        prop_assert_eq!(pieces.samples().len(), whole.samples().len());
        prop_assert_eq!(pieces_objects.processes(Parts::ALL), objects.processes(Parts::ALL));
    }
}

/// Prints where it has code, and where it made some; then waits.
const MAKER: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
int main(void) {
    char *made = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%p %p\n", (void *)main, made + 5);
    fflush(stdout);
    getchar();
    return 0;
}
"#;

#[test]
fn processes_of_one_program_share_their_stacks() {
    let shop = Workshop::new();
    let program = shop.compile("gcc", "maker", MAKER, &[]);
    let mut processes = Processes::new();
    let mut normalizer = Normalizer::new();
    for _ in 0..3 {
        let mut running = Running::start(&program);
        let main = running.addresses()[0];
        let mut all = raw(running.process_key(), &[main]);
        normalizer.take(&mut all, &mut processes, &[]);
        assert!(all.samples.is_empty() && all.stacks.is_empty());
        running.end();
        let ended = processes.ended();
        assert_eq!(ended, [running.process_key()]);
        normalizer.take(&mut all, &mut processes, &ended);
        assert_eq!(processes.len(), 0);
    }
    let (normalized, objects) = normalizer.finish(&mut RawProfile::default(), &mut processes);
    assert_eq!(
        (normalized.stacks().len(), normalized.samples().len()),
        (1, 3)
    );
    assert_eq!(
        (normalized.total_count(), objects.processes(Parts::ALL)),
        (3, 3)
    );
    assert_eq!(text(&normalized, &objects, &processes), "maker;main 3\n");
}

#[test]
fn a_process_is_counted_in_each_part_that_sampled_it() {
    let mut processes = Processes::new();
    let mut normalizer = Normalizer::new();
    let of_event = Parts::of_event;
    let mut last = RawProfile::default();
    // Above all IDs that there are.
    let none = 1 << 30;
    for (tgid, both) in [
        (
            none + 1,
            [(ThreadState::Running, 0), (ThreadState::Running, 1)],
        ),
        (
            none + 2,
            [(ThreadState::Running, 1), (ThreadState::Blocked, 0)],
        ),
        (
            none + 3,
            [(ThreadState::Runnable, 0), (ThreadState::Blocked, 0)],
        ),
        (none + 4, [(ThreadState::Running, 7), (ThreadState::Ran, 7)]),
    ] {
        let process_key = ProcessKey::new(tgid, 1);
        let mut all = raw(process_key, &[8]);
        let sample = all.samples.remove(0);
        all.samples
            .extend(both.map(|(thread_state, event)| RawSample {
                thread_state,
                event,
                ..sample
            }));
        last = all;
        // The last one is there to the end.
        if tgid < none + 4 {
            normalizer.take(&mut last, &mut processes, &[process_key]);
            assert!(last.samples.is_empty());
        }
    }
    let (normalized, objects) = normalizer.finish(&mut last, &mut processes);
    for (parts, expected) in [
        (Parts::ALL, 4),
        (of_event(0), 1),
        (of_event(1), 2),
        (of_event(2), 0),
        (of_event(7), 1),
        (Parts::WAITS, 3),
    ] {
        assert_eq!(objects.processes(parts), expected, "{parts:?}");
    }
    assert_eq!(normalized.total_count(), 8);
}

#[test]
fn jit_code_is_normalized_when_its_process_ends() {
    let shop = Workshop::new();
    let program = shop.compile("gcc", "maker", MAKER, &[]);
    let mut running = Running::start(&program);
    let addresses = running.addresses();
    let mut processes = Processes::new();
    let mut normalizer = Normalizer::new();
    let mut all = raw(running.process_key(), &[addresses[1], addresses[0] + 1]);
    let as_before = all.stacks.clone();
    for _ in 0..2 {
        normalizer.take(&mut all, &mut processes, &[]);
        assert_eq!((all.samples.len(), &all.stacks), (1, &as_before));
    }
    // Names that the process lists in the meantime count.
    let map = format!("/tmp/perf-{}.map", running.process_key().tgid);
    std::fs::write(&map, format!("{:x} 10 made_late\n", addresses[1] - 5)).unwrap();
    processes.refresh(running.process_key());
    running.end();
    normalizer.take(&mut all, &mut processes, &[running.process_key()]);
    std::fs::remove_file(&map).unwrap();
    assert!(all.samples.is_empty());
    let (normalized, objects) = normalizer.finish(&mut all, &mut processes);
    assert_eq!(
        text(&normalized, &objects, &processes),
        "maker;main;made_late 1\n"
    );
}

#[test]
fn calls_that_were_compiled_into_a_function_are_levels_of_their_own() {
    let function = |name: &str, inlined| RuntimeFunction {
        kind: RuntimeKind::LuaJit,
        name: name.to_owned(),
        is_unnamed: false,
        is_nameless: false,
        is_in_part: name == "outer",
        file: Arc::from("f.lua"),
        first_line: 1,
        lines: FunctionLines::Position,
        inlined,
    };
    let call = |name: &str| InlinedCall {
        function: Arc::new(function(name, Box::default())),
        position: 3,
    };
    let inlined = [
        (8, Box::default()),
        (16, [call("innermost"), call("inner")].into()),
    ];
    let process_key = ProcessKey {
        // Above all IDs that there are.
        tgid: 1 << 30,
        incarnation: 1,
    };
    let word = FrameWord::function(RuntimeKind::LuaJit, 0x1000, 7);
    let mut processes = Processes::new();
    let event = FunctionEvent::of(process_key, word, 7);
    processes.add_function(&event, function("outer", inlined.into()));
    let mut raw = raw(process_key, &[]);
    Arc::make_mut(&mut raw.stacks[0]).frames = [4, 8, 16]
        .into_iter()
        .flat_map(|position| {
            let position = FrameWord::position(7, position);
            [RawFrame::Function(word), RawFrame::Position(position)]
        })
        .collect();
    let (normalized, objects) = normalized(&mut processes, &raw);
    assert_eq!(
        text(&normalized, &objects, &processes),
        "test;outer;outer;inner;innermost;outer 1\n"
    );
    assert_eq!(objects.functions_in_part(), 3);
}
