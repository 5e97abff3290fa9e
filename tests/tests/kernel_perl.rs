//! The functions that perl runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, and short-lived ones.

use std::process::Command;

use flame_bpf_tests::{
    Grammar, Invocation, NEARLY_ALL, Run, Stack, Workload, kernel_test, require, source, tool,
};

/// As in `kernel_on_cpu`: three standard deviations at 6,000 samples.
const TOLERANCE: f64 = 0.02;

/// What ends the name of each function of perl's with `--annotate`.
const SUFFIX: &str = "_[perl]";

fn start(name: &str, arguments: &[&str]) -> Workload {
    let script = source(&format!("perl/{name}"));
    Workload::start(Command::new("perl").arg(script).args(arguments))
}

fn record(flags: &str, pid: u32) -> Run {
    Invocation::new(flags)
        .flag("-p", pid)
        .run()
        .expect_no_panic()
        .expect_code(0)
}

/// The functions of perl's in a stack, from the root, without where those without a name are defined, and without the
/// numbers of evals.
fn functions(stack: &Stack) -> Vec<String> {
    let functions = stack
        .frames
        .iter()
        .filter_map(|frame| frame.strip_suffix(SUFFIX));
    let names = functions.map(|frame| {
        if frame.starts_with("(eval ") {
            return "(eval)";
        }
        frame.split_once(" (").map_or(frame, |(name, _)| name)
    });
    names.map(str::to_owned).collect()
}

#[kernel_test(timing)]
fn shares_of_perl_subs_are_as_measured() {
    require!(tool("perl"));
    let workload = start("shares.pl", &[]);
    let folded = record("-f -F 997 -d 6", workload.pid()).folded();
    let shares = workload.stop().shares();
    for (phase, truth) in &shares {
        let shown = folded.share_among(
            |stack| shares.iter().any(|(phase, _)| stack.has(phase)),
            |stack| stack.has(phase),
        );
        assert!(
            (shown - truth).abs() < TOLERANCE,
            "{phase}: {shown}, {truth} in {folded}"
        );
    }
    // The interpreter's loop is shown only if it is asked for, or runs nothing but a block of `sort`, which has no name.
    let shows_loop =
        folded.any(|stack| stack.has("main::long_phase") && stack.has("Perl_runops_standard"));
    assert!(!shows_loop, "{folded}");
}

#[kernel_test]
fn every_stack_of_perl_is_a_chain_that_the_program_allows() {
    require!(tool("perl"));
    let workload = start("chains.pl", &[]);
    let folded = record("-f -F 1997 -d 4 --annotate", workload.pid()).folded();
    Grammar::of(&workload.stop()).check(&folded, functions);
}

#[kernel_test]
fn nine_hundred_perl_subs_are_whole_and_five_thousand_are_marked() {
    require!(tool("perl"));
    for (depth, is_whole) in [("900", true), ("5000", false)] {
        let workload = start("deep.pl", &[depth]);
        let folded = record("-f -F 997 -d 1", workload.pid()).folded();
        let stack = folded.heaviest();
        let frames = stack.frames.iter();
        let calls = frames.filter(|frame| *frame == "main::descend").count();
        assert_eq!(stack.has("[truncated]"), !is_whole, "{stack:?}");
        if is_whole {
            assert_eq!(calls, 901, "{stack:?}");
        } else {
            assert!((1000..=1024).contains(&calls), "{calls} in {stack:?}");
        }
    }
}

#[kernel_test]
fn perl_that_runs_for_20_ms_has_its_names() {
    let perl = require!(tool("perl"));
    let script = source("perl/short.pl");
    let script = script.to_str().expect("the path is text");
    let folded = Invocation::new("-f -F 1997")
        .command(&perl, &[script])
        .run()
        .expect_no_panic()
        .expect_code(0)
        .folded();
    assert!(
        folded.any(|stack| stack.has("main::brief_work")),
        "{folded}"
    );
}

#[kernel_test]
fn lines_are_those_that_run_in_perl() {
    require!(tool("perl"));
    let workload = start("lines.pl", &[]);
    let folded = record("-f -F 997 -d 1 --lines", workload.pid()).folded();
    let on_line = folded.share(|stack| stack.mentions("lines.pl:6"));
    assert!(on_line > NEARLY_ALL, "{on_line} in {folded}");
    let called = folded.share(|stack| stack.mentions("lines.pl:14"));
    assert!(called > NEARLY_ALL, "{called} in {folded}");
}
