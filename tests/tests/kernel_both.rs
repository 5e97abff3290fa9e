//! On-CPU and off-CPU in one run: both profiles are right, and each has a balance of its own.

use std::time::Duration;

use flame_bpf_tests::{Invocation, Program, kernel_test};

/// How long the workload keeps its accounts for.
const SECONDS: f64 = 4.0;

/// How far a function's time off the CPU may be from what the kernel's accounts say.
const OFF_TOLERANCE: f64 = 0.03;

/// How far a function's share of samples may be from its share of CPU time: many times the spread of so few samples.
const ON_TOLERANCE: f64 = 0.06;

/// Function, and seconds on the CPU and off it.
fn truth(said: &[String]) -> Vec<(String, f64, f64)> {
    let lines = said.iter().filter_map(|line| {
        let words: Vec<&str> = line.strip_prefix("truth ")?.split(' ').collect();
        let [function, _, ran, _, passed] = words[..] else {
            return None;
        };
        let (ran, passed): (f64, f64) = (ran.parse().ok()?, passed.parse().ok()?);
        Some((function.to_owned(), ran / 1e9, (passed - ran) / 1e9))
    });
    lines.collect()
}

#[kernel_test(timing)]
fn one_run_shows_where_threads_run_and_where_they_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let (on, off) = (
        folder.path().join("on.folded"),
        folder.path().join("off.folded"),
    );
    let workload = Program::c("wall").start(&[]);
    let run = Invocation::new("-v -F 997")
        .flag("-p", workload.pid())
        .path("-o", &on)
        .path("--off-cpu-output", &off)
        .run_accounted(&workload, Duration::from_secs_f64(SECONDS));
    for balance in [run.balance(), run.balance_of("off-CPU")] {
        balance.assert_even();
        assert_eq!(balance.lost_total(), 0, "{balance:?}");
        assert!(balance.recorded > 50, "{balance:?}");
    }
    let (on, off) = (run.folded_file(&on), run.folded_file(&off));
    let truth = truth(&workload.stop());
    let ran_together: f64 = truth.iter().map(|(_, ran, _)| ran).sum();
    for function in [
        "spin_only",
        "half_and_half",
        "contend",
        "sleep_only",
        "sleep_through",
    ] {
        let of = |(name, ..): &&(String, f64, f64)| name == function;
        let (ran, waited) = truth
            .iter()
            .filter(of)
            .fold((0.0, 0.0), |(ran, waited), (_, r, w)| (ran + r, waited + w));
        assert!(
            waited + ran > 0.9 * SECONDS,
            "{function}: {ran} s and {waited} s"
        );
        let share = on.share(|stack| stack.has(function));
        let expected = ran / ran_together;
        assert!(
            (share - expected).abs() < ON_TOLERANCE,
            "{function} ran for {expected:.3} of all and is shown with {share:.3} in {on}"
        );
        let seen = off.weight(|stack| stack.has(function)) as f64 / 1e6;
        assert!(
            (seen - waited).abs() < OFF_TOLERANCE * waited + 0.02,
            "{function} was off the CPU for {waited:.3} s and is shown with {seen:.3} s in {off}"
        );
    }
    assert!(
        !off.any(|stack| stack.has("spin_half") && stack.leaf() != "[runnable]"),
        "{off}"
    );
}

#[kernel_test]
fn each_profile_says_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (on, off) = (folder.path().join("on.svg"), folder.path().join("off.svg"));
    let workload = Program::c("wall").start(&[]);
    Invocation::new("-d 1 -F 499")
        .flag("-p", workload.pid())
        .path("-o", &on)
        .path("--off-cpu-output", &off)
        .run()
        .expect_code(0)
        .expect_stderr("off-CPU: ")
        .expect_stderr("on-CPU: ")
        .expect_stderr("on.svg, ");
    for (path, subject, unit, strange) in [
        (&on, "on-CPU: wall", "samples", "sleep_through"),
        (&off, "off-CPU: wall", "µs", "no such function"),
    ] {
        let svg = std::fs::read_to_string(path).expect("the graph is there");
        assert!(
            svg.contains(subject) && svg.contains(unit),
            "{}",
            path.display()
        );
        assert!(!svg.contains(strange), "{strange} in {}", path.display());
    }
}
