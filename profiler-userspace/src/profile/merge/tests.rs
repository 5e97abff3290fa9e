use super::*;
use crate::profile::fold::{FoldStyle, fold, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

fn window(text: &str, start: u64, end: u64) -> Profile {
    let mut profile = parse(text.as_bytes(), Unit::Samples).expect("folded text");
    profile.window = Window {
        start: Duration::from_secs(start),
        end: Duration::from_secs(end),
    };
    profile
}

fn text(profile: &Profile) -> String {
    let mut bytes = Vec::new();
    fold(
        profile,
        FoldStyle {
            delimited: true,
            annotate: true,
        },
        &mut bytes,
    )
    .expect("a vector takes everything");
    String::from_utf8(bytes).expect("folded text is UTF-8")
}

#[test]
fn equal_stacks_are_summed_whatever_their_ids() {
    let windows = [
        window("a;b 1\nc;d_[k] 2\n", 3, 5),
        window("c;d_[k] 10\nc 4\na;b 20\na;b 1\n", 5, 7),
    ];
    let merged = merge(Unit::Samples, windows).unwrap();
    assert_eq!(merged.samples().len(), 3);
    assert_eq!(text(&merged), "a;b 22\nc 4\nc;d_[k] 12\n");
    assert_eq!(
        merged.window,
        Window {
            start: Duration::from_secs(3),
            end: Duration::from_secs(7)
        }
    );
}

#[test]
fn stacks_keep_the_order_in_which_they_came() {
    let merged = merge(
        Unit::Samples,
        [window("z 1\ny 1\n", 0, 1), window("a 1\nz 1\nx 1\n", 1, 2)],
    )
    .unwrap();
    let names: Vec<&str> = merged
        .samples()
        .iter()
        .map(|s| merged.frame(s.stack[0]).name.as_str())
        .collect();
    assert_eq!(names, ["z", "y", "a", "x"]);
}

#[test]
fn one_window_is_passed_on() {
    let merged = merge(Unit::Samples, [window("a;b 1\na 2\na;b 3\n", 3, 5)]).unwrap();
    assert_eq!(text(&merged), "a 2\na;b 4\n");
    assert_eq!(
        merged.window,
        Window {
            start: Duration::from_secs(3),
            end: Duration::from_secs(5)
        }
    );
}

#[test]
fn nothing_merges_to_nothing() {
    let merged = merge(Unit::Samples, []).unwrap();
    assert_eq!(
        (merged.samples().len(), merged.window),
        (0, Window::default())
    );
}

#[test]
fn different_units_do_not_add() {
    let cycles = parse(b"a 1", Unit::Events("cycles".to_owned())).unwrap();
    let error = merge(Unit::Samples, [cycles]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot add a profile of cycles to one of samples; merge only profiles of the same event"
    );
}

type Stacks = Vec<(Vec<u8>, u64, u64)>;

fn profile(samples: &Stacks) -> Profile {
    let mut profile = Profile::new(Unit::Samples, Window::default());
    for (stack, weight, count) in samples {
        let frame = |&byte: &u8| crate::profile::Frame {
            name: byte.to_string(),
            kind: if byte % 2 == 0 {
                crate::profile::FrameKind::User
            } else {
                crate::profile::FrameKind::Kernel
            },
        };
        let stack = stack
            .iter()
            .map(frame)
            .map(|frame| profile.intern(frame))
            .collect();
        profile.push(Sample {
            stack,
            weight: *weight,
            count: *count,
        });
    }
    profile
}

proptest! {
    #[test]
    fn merging_conserves_every_stacks_weight_and_count(
        windows in vec(vec((vec(0..6_u8, 0..4), 0..1000_u64, 0..1000_u64), 0..10), 0..5)
    ) {
        let mut wanted: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
        for (stack, weight, count) in windows.iter().flatten() {
            let sum = wanted.entry(stack.iter().map(u8::to_string).collect()).or_default();
            *sum = (sum.0 + weight, sum.1 + count);
        }
        let merged = merge(Unit::Samples, windows.iter().map(profile)).unwrap();
        let name = |id: &FrameId| merged.frame(*id).name.clone();
        let got: BTreeMap<Vec<String>, (u64, u64)> =
            merged.samples().iter().map(|s| (s.stack.iter().map(name).collect(), (s.weight, s.count))).collect();
        if windows.len() > 1 {
            prop_assert_eq!(merged.samples().len(), got.len(), "a stack came twice");
            prop_assert_eq!(got, wanted);
        }
        prop_assert_eq!(merged.total_weight(), windows.iter().flatten().map(|sample| sample.1).sum::<u64>());
        prop_assert_eq!(merged.total_count(), windows.iter().flatten().map(|sample| sample.2).sum::<u64>());
    }
}
