//! Raw recordings in windows: each is what it was, and all together are the sum.

use super::*;
use crate::profile::WindowTotals;
use crate::raw_recording::section::{self, Kind, SectionRead};
use crate::raw_recording::wire;
use prost::Message as _;
use std::ops::Range;

/// One after the other, of ten seconds each.
fn written(windows: &[RawRecording]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&facts(), &mut bytes).unwrap();
    let mut ends = Vec::new();
    for window in windows {
        writer
            .window(window, &totals(window, 3), &mut bytes)
            .unwrap();
        ends.push(bytes.len());
    }
    writer.end("All of it.".to_owned(), &mut bytes).unwrap();
    (bytes, ends)
}

/// Of the whole time of a window.
fn totals(window: &RawRecording, lost: u64) -> WindowTotals {
    WindowTotals {
        window: window.normalized.window,
        firings: window.normalized.total_count() + lost,
        lost,
        ..WindowTotals::default()
    }
}

fn begins(window: usize) -> SystemTime {
    facts().started + Duration::from_secs(10 * window as u64)
}

/// Windows of some of the same stacks.
fn several() -> Vec<RawRecording> {
    let stacks = |at: u64| [vec![2, 3, 4], vec![7, 3, 4], vec![at, 16, 0], vec![]];
    let window = |at: usize| {
        let at = at as u64;
        let samples = [
            (Some(0), None, 1, at + 1),
            (Some(2), Some(1), 3, 2),
            (None, Some(3), 4, 7 * at + 1),
        ];
        raw_recording(&stacks(at), &samples)
    };
    let mut windows: Vec<RawRecording> = (0..4).map(window).collect();
    // One in which nothing happened.
    windows.insert(2, raw_recording(&[], &[]));
    for (at, window) in windows.iter_mut().enumerate() {
        window.facts.started = begins(at);
        window.normalized.window.end = Duration::from_secs(10);
        window.closing = Some(format!("Window {at}."));
    }
    windows
}

/// The sum of the samples of several.
fn sum(windows: &[RawRecording]) -> Resolved {
    let mut all = Resolved::new();
    for (sample, (weight, count)) in windows.iter().flat_map(resolved) {
        let sums: &mut (u64, u64) = all.entry(sample).or_default();
        *sums = (sums.0 + weight, sums.1 + count);
    }
    all
}

#[test]
fn all_windows_together_are_their_sum() {
    let windows = several();
    let (bytes, _) = written(&windows);
    let read = read(&bytes).unwrap();
    assert_eq!(read.missing, None);
    assert_eq!(resolved(&read.raw_recording), sum(&windows));
    let seen = read.windows;
    assert_eq!((seen.taken, seen.all), (5, 5));
    assert_eq!(seen.time, begins(0)..begins(5));
    assert_eq!((seen.lost, seen.lost_in), (15, 5));
    assert_eq!(seen.recorded, read.recorded);
    assert_eq!(
        read.raw_recording.normalized.window.end,
        Duration::from_secs(50)
    );
}

#[test]
fn windows_that_overlap_the_wanted_time_are_taken() {
    let windows = several();
    let (bytes, _) = written(&windows);
    let second = Duration::from_secs(1);
    let cases: [(Range<SystemTime>, Range<usize>); 5] = [
        (begins(1)..begins(2), 1..2),
        (begins(1) - second..begins(2), 0..2),
        (begins(0)..begins(0) + second, 0..1),
        (begins(3) + second..begins(9), 3..5),
        (SystemTime::UNIX_EPOCH..begins(9), 0..5),
    ];
    for (time, taken) in cases {
        let read = super::super::read(
            &*bytes,
            Some(&|began| {
                assert_eq!(began, begins(0));
                time.clone()
            }),
            40,
        );
        let read = read.unwrap();
        let wanted = &windows[taken.clone()];
        assert_eq!(resolved(&read.raw_recording), sum(wanted), "{taken:?}");
        assert_eq!(read.windows.taken, taken.len());
        if let [one] = wanted {
            assert_eq!(read.raw_recording.closing, one.closing);
        }
        // Nothing is left of the others that could be asked a name.
        let in_use = (read.raw_recording.normalized)
            .part(|_| true)
            .locations()
            .len();
        assert_eq!(
            read.raw_recording.normalized.locations().len(),
            in_use,
            "{taken:?}"
        );
    }
    let time = begins(5)..begins(6);
    let error = super::super::read(&*bytes, Some(&|_| time.clone()), 40).unwrap_err();
    assert!(matches!(error, Error::OtherTime { .. }), "{error}");
}

#[test]
fn a_truncated_window_keeps_its_complete_parts() {
    let windows = several();
    let (bytes, ends) = written(&windows);
    for (count, end) in ends.iter().enumerate() {
        let whole = &windows[..=count];
        let read = read(&bytes[..*end]).unwrap();
        assert_eq!(read.missing, Some(Missing::CutOff));
        assert_eq!(resolved(&read.raw_recording), sum(whole));
        // It may be growing: nothing is missing of what is there.
        assert_eq!(read.recorded, read.raw_recording.normalized.total_count());
    }
    let read = read(&bytes[..ends[1] - 1]).unwrap();
    assert_eq!(resolved(&read.raw_recording), sum(&windows[..1]));
    let both = windows[..2]
        .iter()
        .map(|window| window.normalized.total_count());
    assert_eq!(read.recorded, both.sum::<u64>());
}

#[test]
fn parts_already_in_the_file_are_not_written_again() {
    let same = || {
        let mut windows = vec![large(); 3];
        for (at, window) in windows.iter_mut().enumerate() {
            window.facts.started = begins(at);
        }
        windows
    };
    let (bytes, ends) = written(&same());
    let sizes = [ends[0], ends[1] - ends[0], ends[2] - ends[1]];
    assert!(
        sizes[1] < sizes[0] / 3 && sizes[2] <= sizes[1] + 64,
        "{sizes:?}"
    );
    assert_eq!(resolved(&read(&bytes).unwrap().raw_recording), sum(&same()));
}

#[test]
fn stacks_that_extend_others_keep_their_order() {
    let of = |stacks: Vec<Vec<u64>>| {
        let samples: Vec<_> = (0..stacks.len()).map(|n| (Some(n), None, 1, 1)).collect();
        raw_recording(&stacks, &samples)
    };
    let callers = of((0..50).map(|n| vec![5 * n + 2, 3]).collect());
    let callees = of((0..50).rev().map(|n| vec![8, 5 * n + 2, 3]).collect());
    let (bytes, _) = written(&[callers, callees]);
    let (mut rest, mut batches) = (&bytes[MAGIC.len() + 1..], Vec::new());
    while let SectionRead::Section(section) = section::read(&mut rest).unwrap() {
        if section.kind == Kind::Batch as u8 {
            batches.push(wire::Batch::decode(&*section.unpack().unwrap()).unwrap());
        }
    }
    let [_, callees] = &batches[..] else {
        panic!("{} batches", batches.len())
    };
    assert_eq!(callees.stack_bases[0], 1);
    assert_eq!(callees.stack_bases[1..], [3; 49]);
    assert_eq!(callees.stack_shared, [2; 50]);
}

#[test]
fn many_windows_take_no_more_memory_than_their_stacks() {
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&facts(), &mut bytes).unwrap();
    let mut window = usual();
    for at in 0..1000 {
        window.facts.started = begins(at);
        writer
            .window(&window, &totals(&window, 0), &mut bytes)
            .unwrap();
    }
    writer.end(String::new(), &mut bytes).unwrap();
    for wanted in [begins(0)..begins(1000), begins(900)..begins(901)] {
        let read = read_within(&mut &*bytes, (Some(&|_| wanted.clone()), 1), 64 << 10).unwrap();
        assert_eq!(read.missing, None);
        let windows = read.windows;
        assert_eq!(windows.all, 1000);
        let each = window.normalized.total_count();
        assert_eq!(read.recorded, each * windows.taken as u64);
    }
}

#[test]
fn unwanted_windows_leave_memory_for_wanted_ones() {
    // Sixty windows, each with stacks of its own. What is known of them is forgotten after every fifth.
    let windows: Vec<RawRecording> = (0..60)
        .map(|at| {
            let stacks: Vec<Vec<u64>> = (0..100)
                .map(|n| vec![at * 1_000 + n, at * 1_000 + 200 + n / 3, n % 7, 3])
                .collect();
            let samples: Vec<_> = (0..100).map(|n| (Some(n), Some(n + 1), 1, 1)).collect();
            let mut window = raw_recording(&stacks, &samples);
            window.facts.started = begins(at as usize);
            window
        })
        .collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&facts(), &mut bytes).unwrap();
    for (at, window) in windows.iter().enumerate() {
        if at > 0 && at % 5 == 0 {
            writer.begin_anew();
        }
        writer
            .window(window, &totals(window, 0), &mut bytes)
            .unwrap();
    }
    writer.end(String::new(), &mut bytes).unwrap();
    let within = |wanted: Range<usize>, most| {
        let time = begins(wanted.start)..begins(wanted.end);
        read_within(&mut &*bytes, (Some(&|_| time.clone()), 1), most).unwrap()
    };
    for wanted in [0..1, 33..34, 58..60] {
        let read = within(wanted.clone(), 1 << 20);
        assert_eq!(read.missing, None, "{wanted:?}");
        assert_eq!(resolved(&read.raw_recording), sum(&windows[wanted]));
    }
    let limited = within(0..60, 1 << 20);
    assert_eq!(limited.missing, Some(Missing::TooLarge));
    // Firings that were not taken are counted, even those of windows that were left out whole.
    let all = windows.iter().map(|window| window.normalized.total_count());
    assert_eq!(limited.recorded, all.sum::<u64>());
    assert!((1..limited.recorded).contains(&limited.raw_recording.normalized.total_count()));
    assert_eq!(limited.windows.all, 60);
}

#[test]
fn parts_that_no_wanted_window_needs_are_not_unpacked() {
    let windows = several();
    let broken = |at: usize, bytes: &mut Vec<u8>| {
        let started_ns = begins(at).duration_since(SystemTime::UNIX_EPOCH);
        let window = wire::Window {
            started_ns: started_ns.unwrap().as_nanos() as u64,
            duration_ns: 1_000_000_000,
            ..wire::Window::default()
        };
        let batch = wire::Batch {
            stack_ends: vec![0],
            ..wire::Batch::default()
        };
        section::write(bytes, Kind::Window, &window).unwrap();
        section::write(bytes, Kind::Batch, &batch).unwrap();
    };
    let file = |is_anew: bool| {
        let mut bytes = Vec::new();
        let mut writer = Writer::begin(&facts(), &mut bytes).unwrap();
        broken(0, &mut bytes);
        if is_anew {
            writer.begin_anew();
        }
        writer
            .window(&windows[1], &totals(&windows[1], 0), &mut bytes)
            .unwrap();
        broken(2, &mut bytes);
        writer.end(String::new(), &mut bytes).unwrap();
        bytes
    };
    let part = |is_anew, wanted: Range<usize>| {
        let time = begins(wanted.start)..begins(wanted.end);
        super::super::read(&*file(is_anew), Some(&|_| time.clone()), 40)
    };
    let read = part(true, 1..2).unwrap();
    assert_eq!(read.missing, None);
    assert_eq!(resolved(&read.raw_recording), sum(&windows[1..2]));
    assert_eq!(read.windows.all, 3);
    for (is_anew, wanted) in [(false, 1..2), (true, 0..2), (true, 1..3)] {
        let refused = part(is_anew, wanted.clone());
        assert!(matches!(refused, Err(Error::Nonsense { .. })), "{wanted:?}");
    }
}

#[test]
fn numbering_may_restart() {
    let windows = several();
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&facts(), &mut bytes).unwrap();
    for window in &windows {
        writer.begin_anew();
        writer
            .window(window, &totals(window, 0), &mut bytes)
            .unwrap();
    }
    writer.end(String::new(), &mut bytes).unwrap();
    let read = read(&bytes).unwrap();
    assert_eq!(resolved(&read.raw_recording), sum(&windows));
    // Each object once.
    let mut objects = read.raw_recording.objects.clone();
    objects.dedup();
    assert_eq!(objects.len(), read.raw_recording.objects.len());
    assert!(objects.len() <= super::objects().len());
}

#[test]
fn impossible_window_orders_are_refused() {
    let head = || {
        let mut bytes = Vec::new();
        Writer::begin(&facts(), &mut bytes).unwrap();
        bytes
    };
    // Samples outside windows.
    let mut bytes = head();
    let batch = wire::Batch::default();
    section::write(&mut bytes, Kind::Batch, &batch).unwrap();
    let refused = read(&bytes).unwrap_err();
    assert!(matches!(refused, Error::Nonsense { .. }), "{refused}");
    // A window that claims more firings than it has.
    let mut bytes = head();
    let window = wire::Window {
        started_ns: u64::MAX,
        duration_ns: u64::MAX,
        count: 5,
        ..wire::Window::default()
    };
    section::write(&mut bytes, Kind::Window, &window).unwrap();
    let end = wire::End::default();
    section::write(&mut bytes, Kind::End, &end).unwrap();
    let refused = read(&bytes).unwrap_err();
    assert!(matches!(refused, Error::Nonsense { .. }), "{refused}");
}

/// The samples of each window.
fn by_window(raw_recording: &RawRecording) -> Vec<Resolved> {
    let normalized = &raw_recording.normalized;
    let of = |index| RawRecording {
        normalized: normalized.part(|key| key.window == WindowIndex(index)),
        ..raw_recording.clone()
    };
    let windows = normalized.windows.len() as u32;
    (0..windows).map(|index| resolved(&of(index))).collect()
}

#[test]
fn a_recording_at_once_keeps_its_windows() {
    let mut whole = usual();
    let third = whole.normalized.window.end / 3;
    let windows: Vec<WindowTotals> = (0..3)
        .map(|at| WindowTotals {
            firings: 100 + u64::from(at),
            filtered: 7,
            lost: u64::from(at),
            busy_ns: 5,
            ..WindowTotals::nth(third, at)
        })
        .collect();
    let mut number = 0;
    whole.normalized = whole.normalized.changed(|key, sums| {
        number += 1;
        // Nothing happens in the second.
        let window = WindowIndex(2 * (number % 2));
        Some((NormalizedKey { window, ..key }, sums))
    });
    whole.normalized.windows.clone_from(&windows);
    let read = read(&super::bytes(&whole)).unwrap();
    assert_eq!(read.raw_recording.normalized.windows, windows);
    assert_eq!(by_window(&read.raw_recording), by_window(&whole));
    assert_eq!(read.raw_recording.closing, whole.closing);
    assert!(!read.windows.is_continuous);
}

#[test]
fn more_windows_than_are_told_apart_become_fewer() {
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&facts(), &mut bytes).unwrap();
    let mut window = usual();
    for at in 0..100 {
        window.facts.started = begins(at);
        writer
            .window(&window, &totals(&window, 1), &mut bytes)
            .unwrap();
    }
    writer.end(String::new(), &mut bytes).unwrap();
    let read = read(&bytes).unwrap();
    let normalized = &read.raw_recording.normalized;
    // Four of a hundred are one.
    assert_eq!(normalized.windows.len(), 25);
    assert_eq!(normalized.windows[24].lost, 4);
    let each = 4 * window.normalized.total_count();
    for index in 0..25 {
        let part = normalized.part(|key| key.window == WindowIndex(index));
        assert_eq!(part.total_count(), each, "{index}");
    }
}

#[test]
fn a_context_that_a_process_publishes_later_is_that_of_all_its_windows() {
    let window = |at: usize| {
        let mut window = raw_recording(&[vec![2]], &[(Some(0), None, 0, 1)]);
        window.facts.started = begins(at);
        window
    };
    let mut windows = [0, 1, 2].map(window);
    let context = Arc::new(ProcessContext::of([("service.name", "shop")]).unwrap());
    for window in &mut windows[1..] {
        window.normalized.note_context(0, 0, &context);
    }
    let (bytes, _) = written(&windows);
    let normalized = read(&bytes).unwrap().raw_recording.normalized;
    assert!(normalized.samples().len() > 0);
    for (key, _) in normalized.samples() {
        assert_eq!(normalized.context_of(&key.label), Some(&context));
    }
}

proptest! {
    #[test]
    fn windows_are_read_back_as_written(
        windows in prop::collection::vec(
            (
                prop::collection::vec(prop::collection::vec(0u64..40, 0..6), 1..8),
                prop::collection::vec(
                    (any::<Option<usize>>(), any::<Option<usize>>(), any::<u8>(), 1u64..1000),
                    0..20,
                ),
            ),
            1..6,
        ),
    ) {
        let windows: Vec<RawRecording> = windows
            .iter()
            .enumerate()
            .map(|(at, (stacks, samples))| {
                let mut window = raw_recording(stacks, samples);
                window.facts.started = begins(at);
                window
            })
            .collect();
        let (bytes, _) = written(&windows);
        let read = read(&bytes);
        let count: u64 = windows.iter().map(|window| window.normalized.total_count()).sum();
        let read = read.unwrap();
        prop_assert_eq!(read.recorded, count);
        prop_assert_eq!(resolved(&read.raw_recording), sum(&windows));
    }
}
