//! The functions that LuaJIT runs, in its interpreter and in machine code: whose truth is known, in every way in which they come to
//! run, deep ones.

use std::fs;
use std::process::Command;

use flame_bpf_tests::{
    Grammar, Invocation, NEARLY_ALL, Run, Stack, Workload, annotated, defined_functions,
    kernel_test, require, source, tool,
};

/// As in `kernel_on_cpu`: three standard deviations at 6,000 samples.
const TOLERANCE: f64 = 0.02;

/// Suffix of the names of LuaJIT's functions with `--annotate`.
const SUFFIX: &str = "_[luajit]";

fn start(mode: &str, name: &str, arguments: &[&str]) -> Workload {
    let script = source(&format!("lua/{name}"));
    Workload::start(Command::new("luajit").arg(mode).arg(script).args(arguments))
}

fn record(flags: &str, workload: &Workload) -> Run {
    Invocation::new(flags)
        .flag("-p", workload.pid())
        .run()
        .expect_no_panic()
        .expect_code(0)
}

/// Whether a frame is of a function, wherever that is defined.
fn is_of(frame: &str, function: &str) -> bool {
    frame
        .strip_prefix(function)
        .is_some_and(|rest| rest.starts_with(" ("))
}

/// The line on which `chains.lua` defines what all of its functions run.
fn burn_line() -> String {
    let text = fs::read_to_string(source("lua/chains.lua")).expect("it is there");
    let line = text.lines().position(|line| line == "function burn()");
    (line.expect("it is defined") + 1).to_string()
}

/// The functions of LuaJIT's in a stack, from the root, without where they are defined; those without a name with their line.
/// One that is first seen behind a tail call has the name of the function that made the call, and a line of its own.
fn functions(stack: &Stack) -> Vec<String> {
    let burn = burn_line();
    let functions = stack
        .frames
        .iter()
        .filter_map(|frame| frame.strip_suffix(SUFFIX));
    let names = functions.map(|frame| {
        let (name, place) = frame.rsplit_once(" (").unwrap_or((frame, ""));
        match place.rsplit_once(':') {
            Some((_, line)) if name == "<anonymous>" => {
                format!("{name}:{}", line.trim_end_matches(')'))
            }
            Some((_, line)) if name == "tail_called" && line.trim_end_matches(')') == burn => {
                "burn".to_owned()
            }
            _ => name.to_owned(),
        }
    });
    names.collect()
}

fn check_shares(mode: &str) {
    let workload = start(mode, "shares.lua", &["8"]);
    let folded = record("-f -F 997 -d 6", &workload).folded();
    let shares = workload.stop_by_itself().shares();
    let has = |stack: &Stack, phase: &str| stack.frames.iter().any(|frame| is_of(frame, phase));
    for (phase, truth) in &shares {
        let shown = folded.share_among(
            |stack| shares.iter().any(|(phase, _)| has(stack, phase)),
            |stack| has(stack, phase),
        );
        assert!(
            (shown - truth).abs() < TOLERANCE,
            "{phase}: {shown}, {truth} in {folded}"
        );
    }
}

#[kernel_test(timing)]
fn shares_of_interpreted_luajit_functions_are_as_measured() {
    require!(tool("luajit"));
    check_shares("-joff");
}

#[kernel_test(timing)]
fn shares_of_compiled_luajit_functions_are_as_measured() {
    require!(tool("luajit"));
    check_shares("-jon");
}

#[kernel_test]
fn every_stack_is_a_chain_that_the_luajit_program_allows() {
    require!(tool("luajit"));
    let workload = start("-joff", "chains.lua", &[]);
    let folded = annotated(&workload, 4.0);
    Grammar::of(&workload.stop()).check(&folded, functions);
}

#[kernel_test]
fn fifty_random_stops_are_as_luajit_says() {
    require!(tool("luajit"));
    // The places are said before anything has run often enough to be compiled.
    for mode in ["-joff", "-jon"] {
        let workload = start(mode, "stops.lua", &[]);
        let folded = annotated(&workload, 4.0);
        Grammar::of(&workload.stop()).check(&folded, |stack| defined_functions(stack, SUFFIX));
    }
}

#[kernel_test]
fn nine_hundred_luajit_functions_are_whole_and_five_thousand_are_marked() {
    require!(tool("luajit"));
    for (depth, is_whole) in [("900", true), ("5000", false)] {
        let workload = start("-joff", "deep.lua", &[depth]);
        let folded = record("-f -F 997 -d 1", &workload).folded();
        let stack = folded.heaviest();
        let calls = stack
            .frames
            .iter()
            .filter(|frame| is_of(frame, "descend"))
            .count();
        assert_eq!(stack.has("[truncated]"), !is_whole, "{stack:?}");
        if is_whole {
            assert_eq!(calls, 901, "{stack:?}");
        } else {
            assert!((1000..=1024).contains(&calls), "{calls} in {stack:?}");
        }
    }
}

#[kernel_test]
fn lines_are_those_that_run_in_luajit() {
    require!(tool("luajit"));
    let workload = start("-joff", "lines.lua", &[]);
    let folded = record("-f -F 997 -d 1 --lines", &workload).folded();
    for line in ["lines.lua:6", "lines.lua:12"] {
        let on_line = folded.share(|stack| stack.mentions(line));
        assert!(on_line > NEARLY_ALL, "{line}: {on_line} in {folded}");
    }
}

#[kernel_test]
fn machine_code_of_luajit_has_the_functions_that_it_runs() {
    require!(tool("luajit"));
    let workload = start("-jon", "lines.lua", &[]);
    let folded = record("-f -F 997 -d 1", &workload).folded();
    let share = folded.share(|stack| {
        let has = |function| stack.frames.iter().any(|frame| is_of(frame, function));
        has("<main>") && has("burn") && stack.has("main")
    });
    assert!(share > NEARLY_ALL, "{share} in {folded}");
}
