use super::*;
use crate::profile::{
    Frame, FrameKind, FrameProfile, Profile, Sample, Unit, Window, WindowIndex, WindowTotals, fold,
};
use std::time::Duration;

/// A recording of so many windows of half a second, in each of which these stacks have these weights on average.
fn recording(stacks: &[(&str, f64)], windows: usize, unit: Unit, seed: u64) -> Profile {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut frames = FrameProfile::new(Profile::new(unit.clone(), Window::default()));
    let mut places = Vec::new();
    for (stack, weight) in stacks {
        let frame = |(depth, name): (usize, &str)| match depth {
            0 => Frame::new(name, FrameKind::Process),
            _ => Frame::new(name, FrameKind::User),
        };
        let stack: Vec<Frame> = stack.split(';').enumerate().map(frame).collect();
        for window in 0..windows {
            // As independent samples vary.
            let normal: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
            let weight = (weight + normal * weight.sqrt()).round().max(0.0) as u64;
            frames.group(window as u32);
            frames.push(&stack, weight, weight);
            places.push(window);
        }
    }
    let mut profile = frames.into_profile();
    profile.change_samples(|place, sample| {
        let window = WindowIndex(places[place] as u32);
        Some(Sample { window, ..sample })
    });
    let length = Duration::from_millis(500);
    profile.windows = (0..windows as u32)
        .map(|index| WindowTotals::nth(length, index))
        .collect();
    profile.origin.period_ns = Some(1_000_000);
    profile
}

fn samples(stacks: &[(&str, f64)], seed: u64) -> Profile {
    recording(stacks, 40, Unit::Samples, seed)
}

fn compared(before: Vec<Profile>, after: Vec<Profile>) -> Comparison {
    compare([before, after], DiffOptions::default()).expect("profiles that can be compared")
}

fn function<'a>(comparison: &'a Comparison, name: &str) -> &'a Function {
    let mut all = comparison.functions.iter();
    all.find(|function| function.name == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn outcome(condition: &str, comparison: &Comparison) -> Outcome {
    Condition::parse(condition)
        .expect("a condition")
        .of(comparison)
        .outcome
}

const BEFORE: &[(&str, f64)] = &[
    ("p;main;parse", 50.0),
    ("p;main;copy", 200.0),
    ("p;main;send", 250.0),
];
const AFTER: &[(&str, f64)] = &[
    ("p;main;parse", 80.0),
    ("p;main;copy", 190.0),
    ("p;main;send", 230.0),
];

/// [`BEFORE`] at so many times the load.
fn before_times(load: f64) -> Vec<(&'static str, f64)> {
    let stacks = BEFORE.iter();
    stacks
        .map(|(stack, weight)| (*stack, weight * load))
        .collect()
}

/// Stacks beside those that do not change.
fn with_usual(stacks: &[(&'static str, f64)]) -> Vec<(&'static str, f64)> {
    [stacks, &BEFORE[1..]].concat()
}

/// Times are compared, and not shares.
fn absolute() -> DiffOptions {
    DiffOptions {
        absolute: true,
        ..DiffOptions::default()
    }
}

#[test]
fn a_real_change_is_found_and_what_calls_it_is_not() {
    let comparison = compared(vec![samples(BEFORE, 1)], vec![samples(AFTER, 2)]);
    let parse = function(&comparison, "parse");
    assert_eq!(parse.itself.verdict, Verdict::More);
    let [low, high] = parse.itself.interval().expect("windows");
    assert!(low > 0.0 && low < 0.06 && high > 0.06, "{low} {high}");
    assert_eq!(function(&comparison, "main").total.verdict, Verdict::Noise);
    assert_eq!(comparison.nodes.at(0).change.verdict, Verdict::Noise);
    // A function and the one node that is its only one, and the program and `main`, are one test each.
    assert_eq!(comparison.tests[2].tests, 4);
    let sight = comparison.sight.expect("functions");
    assert!(sight.least > 0.005 && sight.least < 0.02, "{sight:?}");
}

#[test]
fn the_same_program_at_another_rate_is_no_change() {
    let slow = before_times(0.1);
    let comparison = compared(vec![samples(&slow, 1)], vec![samples(BEFORE, 2)]);
    assert_eq!(comparison.changed(), 0);
    let share = function(&comparison, "copy").itself.estimate.values;
    assert!((share[0] - share[1]).abs() < 0.03);
}

#[test]
fn twice_the_load_is_a_change_of_times_and_not_of_shares() {
    let twice = before_times(2.0);
    let sides = [vec![samples(BEFORE, 1)], vec![samples(&twice, 2)]];
    let shares = compare(sides.clone(), DiffOptions::default()).expect("shares");
    assert_eq!(shares.changed(), 0);
    let times = compare(sides.clone(), absolute()).expect("times");
    assert_eq!(times.quantity, Quantity::Time);
    let copy = function(&times, "copy");
    assert_eq!(copy.itself.verdict, Verdict::More);
    // 200 samples of a millisecond in half a second.
    assert!((copy.itself.estimate.values[0] / 1e6 - 400.0).abs() < 20.0);
    assert_eq!(outcome("self(copy) > +300 ms", &times), Outcome::Met);
    assert_eq!(
        outcome("self(copy) > +1 point", &times),
        Outcome::CannotTell
    );
}

#[test]
fn losses_are_made_up_for_in_times() {
    let half = before_times(0.5);
    let mut after = samples(&half, 2);
    for window in &mut after.windows {
        (window.firings, window.lost) = (500, 250);
    }
    let sides = [vec![samples(BEFORE, 1)], vec![after]];
    let times = compare(sides.clone(), absolute()).expect("times");
    assert_eq!(times.changed(), 0);
}

#[test]
fn other_builds_have_nothing_new_or_gone() {
    let before = [
        ("old;main;parse.isra.0", 50.0),
        ("old;main;core::fmt::h0123456789abcdef", 200.0),
        ("old;[old+0x12]", 250.0),
    ];
    let after = [
        ("new;main;parse.constprop.0", 50.0),
        ("new;main;core::fmt::hfedcba9876543210", 200.0),
        ("new;[new+0x99]", 250.0),
    ];
    let comparison = compared(vec![samples(&before, 1)], vec![samples(&after, 2)]);
    let odd = |function: &&Function| matches!(function.total.verdict, Verdict::New | Verdict::Gone);
    let odd: Vec<_> = comparison
        .functions
        .iter()
        .filter(odd)
        .map(|function| &function.name)
        .collect();
    // Code without a name is known by its module, and a module with another name is a shift.
    assert_eq!(odd, Vec::<&String>::new());
    assert!((comparison.sides[0].loose - 0.5).abs() < 0.05);
    assert_eq!(
        comparison.programs,
        Some(["old".to_owned(), "new".to_owned()])
    );
}

#[test]
fn a_renamed_function_is_a_shift_of_cost() {
    let after = with_usual(&[("p;main;analyse;step", 50.0)]);
    let before = with_usual(&[("p;main;parse;step", 50.0)]);
    let comparison = compared(vec![samples(&before, 1)], vec![samples(&after, 2)]);
    for (name, partner) in [("parse", "analyse"), ("analyse", "parse")] {
        let change = &function(&comparison, name).total;
        assert_eq!(
            (change.verdict, change.partner.as_deref()),
            (Verdict::Shift, Some(partner))
        );
    }
    assert_eq!(function(&comparison, "step").itself.verdict, Verdict::Noise);
    let shifted = comparison
        .nodes
        .iter()
        .filter(|node| node.change.verdict == Verdict::Shift);
    assert_eq!(shifted.count(), 4);
    // Another name does not meet a condition on `any`; it meets one on this function.
    assert_eq!(outcome("any > +5 points", &comparison), Outcome::NotMet);
    let own = outcome("total(analyse) > +5 points", &comparison);
    assert_eq!(own, Outcome::Met);
}

#[test]
fn an_inlined_function_is_a_shift_and_a_new_one_is_not() {
    let after = with_usual(&[("p;main", 50.0)]);
    let comparison = compared(vec![samples(BEFORE, 1)], vec![samples(&after, 2)]);
    assert_eq!(function(&comparison, "parse").total.verdict, Verdict::Shift);
    assert_eq!(function(&comparison, "main").itself.verdict, Verdict::Shift);
    // Shares of everything else shrink by as much as a new function takes; that is no shift.
    let after = with_usual(&[("p;main;check", 100.0), ("p;main;parse", 50.0)]);
    let comparison = compared(vec![samples(BEFORE, 1)], vec![samples(&after, 2)]);
    assert_eq!(function(&comparison, "check").itself.verdict, Verdict::New);
}

#[test]
fn without_windows_nothing_is_claimed_unless_samples_are_taken_for_independent() {
    let text = |weights: [u64; 2]| {
        let text = format!("p;main;a {}\np;main;b {}\n", weights[0], weights[1]);
        fold::parse(text.as_bytes(), Unit::Samples).expect("folded text")
    };
    let sides = [vec![text([1000, 9000])], vec![text([2000, 8000])]];
    let comparison = compare(sides.clone(), DiffOptions::default()).expect("profiles");
    let a = function(&comparison, "a");
    assert_eq!(
        (a.itself.verdict, a.itself.interval()),
        (Verdict::NoClaim, None)
    );
    assert_eq!(outcome("any > +1 point", &comparison), Outcome::CannotTell);
    let assumed = DiffOptions {
        assume_independent: true,
        ..DiffOptions::default()
    };
    let comparison = compare(sides.clone(), assumed).expect("profiles");
    assert_eq!(outcome("any > +1 point", &comparison), Outcome::Met);
    assert_eq!(
        compare(sides.clone(), absolute()).err(),
        Some(CompareError::NoTimes)
    );
}

#[test]
fn conditions_are_met_not_met_or_beyond_what_can_be_told() {
    let comparison = compared(vec![samples(BEFORE, 1)], vec![samples(AFTER, 2)]);
    for (condition, expected) in [
        ("self(parse) > +3 points", Outcome::Met),
        ("total(p*e) > +20%", Outcome::Met),
        ("any > +3 points", Outcome::Met),
        ("self(parse) > +9 points", Outcome::NotMet),
        ("self(copy) > +5 points", Outcome::NotMet),
        ("self(parse) < -3 points", Outcome::NotMet),
        ("self(copy) > +0.1 points", Outcome::CannotTell),
        ("self(prase) > +1 point", Outcome::CannotTell),
    ] {
        assert_eq!(outcome(condition, &comparison), expected, "{condition}");
    }
    let same = compared(vec![samples(BEFORE, 1)], vec![samples(BEFORE, 2)]);
    assert_eq!(outcome("any > +5 points", &same), Outcome::NotMet);
    let shrunk = compared(vec![samples(AFTER, 1)], vec![samples(BEFORE, 2)]);
    assert_eq!(outcome("self(parse) < -3 points", &shrunk), Outcome::Met);
}

#[test]
fn waits_are_times_and_one_long_one_is_named() {
    let waits = |weight: f64, seed| {
        recording(
            &[("p;read", weight), ("p;poll", 5e8)],
            40,
            Unit::Nanoseconds,
            seed,
        )
    };
    let steady = compared(vec![waits(1e7, 1)], vec![waits(2e7, 2)]);
    assert_eq!(steady.quantity, Quantity::Time);
    assert_eq!(function(&steady, "read").itself.verdict, Verdict::More);
    assert_eq!(function(&steady, "poll").itself.verdict, Verdict::Noise);
    let mut lone = waits(1e7, 3);
    let sample = Sample {
        weight: 7_100_000_000,
        count: 1,
        ..lone.samples()[0]
    };
    lone.push(Sample {
        window: WindowIndex(7),
        ..sample
    });
    let burst = compared(vec![waits(1e7, 1)], vec![lone]);
    let read = function(&burst, "read");
    assert_eq!(read.itself.verdict, Verdict::Noise);
    assert_eq!(read.itself.weights[1] / 1_000_000_000, 7);
}

#[test]
fn five_against_five_are_compared_from_run_to_run() {
    let side =
        |stacks: &[(&str, f64)], seed| (0..5_u64).map(|run| samples(stacks, seed + run)).collect();
    let comparison = compared(side(BEFORE, 1), side(AFTER, 11));
    assert_eq!(comparison.clusters, stats::estimate::Clusters::Recordings);
    assert_eq!(function(&comparison, "parse").itself.verdict, Verdict::More);
    assert_eq!(function(&comparison, "main").total.verdict, Verdict::Noise);
}

#[test]
fn what_counts_other_things_is_refused() {
    let cycles = recording(BEFORE, 40, Unit::Events("cycles".to_owned()), 1);
    let error = compare(
        [vec![cycles], vec![samples(BEFORE, 1)]],
        DiffOptions::default(),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "one input counts cycles, another samples; compare recordings of one event"
    );
    let empty = Profile::new(Unit::Samples, Window::default());
    let error = compare(
        [vec![empty], vec![samples(BEFORE, 1)]],
        DiffOptions::default(),
    )
    .unwrap_err();
    assert!(matches!(error, CompareError::Empty("before")));
}

#[test]
fn no_weight_is_lost_or_made() {
    let comparison = compared(vec![samples(BEFORE, 1)], vec![samples(AFTER, 2)]);
    for side in [0, 1] {
        let own: u64 = comparison
            .nodes
            .iter()
            .map(|node| node.own_weights[side])
            .sum();
        let itself: u64 = comparison
            .functions
            .iter()
            .map(|function| function.itself.weights[side])
            .sum();
        assert_eq!(
            (own, itself),
            (comparison.sides[side].weight, comparison.sides[side].weight)
        );
        assert!((comparison.sides[side].total - 1.0).abs() < 1e-9);
    }
}
