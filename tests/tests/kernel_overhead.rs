//! The budgets of a recording, counted: they are kept, and weights add up through each change of the rate.

use std::thread::sleep;
use std::time::Duration;

use flame_bpf_tests::{Invocation, Program, Recipe, Run, Workload, assert_near, kernel_test};
use rustix::process::Signal;

/// The line of the summary about what the recording cost.
fn overhead(run: &Run) -> &str {
    let mut lines = run.stderr.lines();
    let line = lines.find_map(|line| line.strip_prefix("overhead: "));
    line.unwrap_or_else(|| panic!("no line about overhead:\n{}", run.stderr))
}

/// The cost and what was allowed, in percent of a CPU.
fn percents(run: &Run) -> (f64, f64) {
    let line = overhead(run);
    let mut numbers = line.split('%').map(|before| {
        let digits = before.rsplit(' ').next().unwrap_or_default();
        digits.parse().unwrap_or_else(|_| panic!("{line}"))
    });
    let mut next = || numbers.next().unwrap_or_else(|| panic!("{line}"));
    (next(), next())
}

/// Keeps to a budget where processes come and go and `others` are at work, for which it must take less.
#[track_caller]
fn assert_storm_is_survived(others: Workload, flags: &str, change: &str) {
    let _storm = [
        Program::c("forkstorm").start(&["200", "2000", "20"]),
        others,
    ];
    let run = Invocation::new("-a -d 20 -f -v").args(flags).run();
    let run = run.expect_code(0);
    run.lossless_balance();
    let (spent, allowed) = percents(&run);
    assert!(spent <= allowed * 1.1, "{}", overhead(&run));
    assert!(overhead(&run).contains(change), "{}", overhead(&run));
}

#[kernel_test(timing)]
fn the_budget_is_kept_under_a_storm_of_processes() {
    let others = Program::c("deep").start(&["500"]);
    assert_storm_is_survived(others, "-F 1999 --max-overhead 5%", "Hz from");
}

#[kernel_test(timing)]
fn the_budget_of_waits_is_kept_under_a_storm_of_processes() {
    let others = Program::c("waits").start(&["100", "200"]);
    let flags = "--off-cpu --max-overhead 5%";
    assert_storm_is_survived(others, flags, "a wait of each thread in");
}

// Beside a load the budget leaves too few to add up.
#[kernel_test(timing, alone)]
fn weights_add_up_to_the_time_through_each_change_of_the_rate() {
    let workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("-f -F 4999 --max-overhead 0.5%")
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    let begin = workload.cpu_ns();
    sleep(Duration::from_secs(5));
    // While nothing runs, nothing is spent, and the rate rises; then it falls again.
    workload.signal(Signal::STOP);
    sleep(Duration::from_secs(4));
    workload.signal(Signal::CONT);
    sleep(Duration::from_secs(5));
    running.signal(Signal::INT);
    let used = workload.cpu_ns() - begin;
    let run = running.finish().expect_code(0);
    let line = overhead(&run);
    assert!(line.matches(" Hz from ").count() >= 2, "{line}");
    // Folded times are microseconds.
    let weight = run.folded().total() as f64 * 1000.0;
    let share = weight / used as f64;
    assert!((0.9..1.1).contains(&share), "{share} of the time; {line}");
}

// Beside a load the budget leaves too few to add up.
#[kernel_test(timing, alone)]
fn waits_keep_to_the_budget_and_add_up_through_each_change() {
    let seconds = 20.0;
    let flags = "-v -f --off-cpu --max-overhead 5%";
    // Deep stacks: a wait that is looked at costs more than one that is not.
    let workload = Program::c("waits").start(&["150", "200"]);
    let (run, said) = Invocation::new(flags).run_accounted(workload, seconds);
    let balance = run.lossless_balance();
    let line = overhead(&run);
    let (spent, allowed) = percents(&run);
    assert!(spent <= allowed * 1.1, "{line}");
    // All waits at first, then some.
    let changes = line.matches("a wait of each thread in").count();
    assert!(line.contains("; every wait, ") && changes >= 2, "{line}");
    assert!(balance.filtered_total() > 0, "{balance:?}");
    let folded = run.folded();
    // Of each function only some dozen waits are looked at in the end; a chance that were forgotten would halve the sum, or double it.
    let truth = said.seconds();
    let measured: f64 = truth.iter().map(|(_, seconds)| seconds).sum();
    let shown = folded.seconds(|stack| truth.iter().any(|(function, _)| stack.has(function)));
    assert!(measured > seconds, "{truth:?}");
    assert_near("all waits", shown, measured, 0.4 * measured, &folded);
}

#[kernel_test(timing)]
fn samples_and_waits_beside_them_keep_to_one_budget() {
    let _others = [
        Program::c("waits").start(&["100", "200"]),
        Program::c("deep").start(&["500"]),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let flags = "-a -F 999 --max-overhead 8% -d 20 -f --off-cpu-output waits.folded";
    let run = Invocation::new(flags).within(folder.path()).run();
    let run = run.expect_code(0);
    let line = overhead(&run);
    let (spent, allowed) = percents(&run);
    assert!(spent <= allowed * 1.1, "{line}");
    assert!(line.contains(" Hz and a wait of each thread in "), "{line}");
}

#[kernel_test(timing)]
fn no_sample_is_given_up_for_waits_and_new_programs() {
    let _others = [
        Program::c("waits").start(&["100", "200"]),
        Program::c("forkstorm").start(&["200", "2000", "20"]),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let flags = "-a -F 19 --max-overhead 2% -d 15 -f -v --off-cpu-output waits.folded";
    let run = Invocation::new(flags).within(folder.path()).run();
    let run = run.expect_code(0);
    let line = overhead(&run);
    // Whatever waits had to give up, samples cost less than their part.
    let rates: Vec<&str> = line.split(" Hz").collect();
    let (_, before) = rates.split_last().expect("there is one");
    assert!(before.len() > 2, "{line}");
    assert!(
        before.iter().all(|before| before.ends_with(" 19.0")),
        "{line}"
    );
    run.balance().assert_lossless();
    run.balance_of("off-CPU").assert_lossless();
}

#[kernel_test]
fn a_limit_of_memory_is_kept_and_costs_no_samples() {
    let _others = Program::c("deep").start(&["500"]);
    let folder = tempfile::tempdir().expect("a folder");
    let run = Invocation::new("-a -F 997 --max-memory 96 --window 1s -d 4 -o x.fbpf -v")
        .within(folder.path())
        .run();
    let run = run.expect_code(0);
    run.lossless_balance();
    let lines = || run.stderr.lines();
    let line = { lines() }.find_map(|line| line.strip_prefix("memory: "));
    let line = line.unwrap_or_else(|| panic!("no line about memory:\n{}", run.stderr));
    let mut numbers = line.split(" MiB").map(|before| {
        let digits = before.rsplit(' ').next().unwrap_or_default();
        digits.parse::<f64>().unwrap_or_else(|_| panic!("{line}"))
    });
    let taken = numbers.next().unwrap_or(f64::MAX);
    assert_eq!(numbers.next(), Some(96.0), "{line}");
    assert!((1.0..=96.0).contains(&taken), "{line}");
}

#[kernel_test(timing)]
fn where_memory_gets_scarce_it_is_said_what_was_given_up_and_no_sample_is_lost() {
    let ballast = Recipe::c("ballast")
        .named("ballast.so")
        .compiled("-DMEBIBYTES=64")
        .shared()
        .make();
    let _others = Program::c("deep").start(&["500"]);
    let folder = tempfile::tempdir().expect("a folder");
    let run = Invocation::new("-a -F 997 --max-memory 100 --window 1s -d 7 -o x.fbpf -v")
        .wrapped(&format!("env LD_PRELOAD={}", ballast.path().display()))
        .within(folder.path())
        .run();
    let run = run.expect_code(0);
    run.lossless_balance();
    let mut lines = run.stderr.lines();
    let line = lines.find_map(|line| line.strip_prefix("memory: "));
    let line = line.unwrap_or_else(|| panic!("no line about memory:\n{}", run.stderr));
    // How many names there were just then depends on the machine.
    let is_said = line.contains("; from ") && line.contains(" given up for others");
    assert!(is_said, "{line}");
}
