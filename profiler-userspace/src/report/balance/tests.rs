use super::*;
use crate::plan::MemoryLimits;
use crate::report::stacks;
use crate::unwind::loader::Loaded;
use profiler_common::abi::{Counter, StackEnd};

fn counters(counts: &[(Counter, u64)]) -> Counters {
    let mut counters = Counters::EMPTY;
    for &(counter, count) in counts {
        counters.counters[counter as usize] = count;
    }
    counters
}

fn balance(counts: &[(Counter, u64)], ends: &[(StackEnd, u64)]) -> String {
    let stacks = StackCounts {
        ends: ends.iter().copied().collect(),
        ..StackCounts::default()
    };
    Balance {
        subject: "on-CPU: nginx",
        noun: "sample",
        period_ns: None,
        is_of_machine: false,
        is_time: false,
        counters: &counters(counts),
        extent: "1 distinct stack in 2 processes",
        stacks: &stacks,
        idle_is_offered: true,
        remarks: &[Finding::note("one thing more")],
    }
    .summary()
    .lines()
}

#[test]
fn says_what_was_recorded_and_that_nothing_was_lost() {
    assert_eq!(
        balance(&[(Counter::Fired, 1980), (Counter::Recorded, 1980)], &[]),
        "on-CPU: nginx\nrecorded: 1,980 samples, 1 distinct stack in 2 processes\nlost: nothing\nnote: one thing more"
    );
}

#[test]
fn every_loss_is_named_with_the_flag_that_avoids_it() {
    for &counter in Counter::ALL
        .iter()
        .filter(|counter| counter.class() == Class::Lost)
    {
        let text = balance(&[(counter, 3)], &[]);
        let remedy = match counter {
            Counter::LostReentered => "-t",
            Counter::LostCgroup => "-p",
            _ => "--map-memory",
        };
        assert!(
            text.contains("LOST: 3 samples") && text.contains(remedy),
            "{text}"
        );
        assert!(!text.contains("lost: nothing"), "{text}");
    }
}

#[test]
fn every_filter_has_a_phrase_of_its_own() {
    for &counter in Counter::ALL
        .iter()
        .filter(|counter| counter.class() == Class::Filtered)
    {
        let text = balance(&[(counter, 1_234_567)], &[]);
        assert!(
            text.contains("1,234,567 ") && !text.contains(counter.name()),
            "{text}"
        );
    }
}

#[test]
fn every_end_short_of_the_root_has_a_sentence() {
    for end in StackEnd::ALL {
        let text = balance(&[], &[(end, 1)]);
        let is_short = !matches!(end, StackEnd::Root | StackEnd::Guess);
        assert_eq!(text.contains("100.0%"), is_short, "{text}");
    }
}

#[test]
fn incomplete_stacks_are_reported_by_share() {
    let text = balance(&[], &[(StackEnd::Root, 3), (StackEnd::NoFramePointer, 1)]);
    assert!(
        text.contains("incomplete: 25.0% of user stacks were walked by frame pointers only"),
        "{text}"
    );
    assert!(!text.contains("1,024"), "{text}");
}

#[test]
fn missing_unwind_tables_are_reported_with_a_remedy() {
    let of = |loaded: &Loaded, all_bytes| {
        let memory = MemoryLimits::default().within(all_bytes);
        let findings = stacks::on_tables(loaded, &memory);
        findings
            .into_iter()
            .map(|finding| finding.text)
            .collect::<String>()
    };
    let said = |loaded| of(&loaded, None);
    assert_eq!(said(Loaded::default()), "");
    let with = |change: fn(&mut Loaded)| {
        let mut loaded = Loaded::default();
        change(&mut loaded);
        said(loaded)
    };
    assert!(with(|loaded| loaded.evicted = 2).contains("--max-unwind-memory"));
    assert!(with(|loaded| loaded.refused = 2).contains("--max-unwind-memory"));
    let scarce = Loaded {
        evicted: 2,
        ..Loaded::default()
    };
    assert!(of(&scarce, Some(96 << 20)).ends_with("raise --max-memory"));
    assert!(with(|loaded| loaded.too_large = 2).contains("2 objects with"));
    assert!(with(|loaded| loaded.left_out = 1).contains("1 code segment"));
    assert!(with(|loaded| loaded.rules_refused = 2).contains("2 rules left out"));
    assert!(with(|loaded| loaded.functions_left_out = 2).contains("left unread 2 times"));
    let unknown = with(|loaded| {
        let why = "its version is not known";
        loaded.runtimes_left_out.insert("CPython 3.99".into(), why);
    });
    assert_eq!(
        unknown,
        "CPython 3.99: only native frames are shown, because its version is not known"
    );
}

#[test]
fn dropped_mapping_events_are_counted() {
    let text = balance(
        &[
            (Counter::MappingEventsDropped, 1200),
            (Counter::KernelEventsDropped, 34),
        ],
        &[],
    );
    assert!(text.contains("1,234 mapping events dropped"), "{text}");
    let text = balance(&[(Counter::FunctionEventsDropped, 7)], &[]);
    assert!(text.contains("7 function events dropped"), "{text}");
}
