//! The functions that Ruby runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones.

use std::process::Command;

use flame_bpf_tests::{
    Grammar, Invocation, NEARLY_ALL, Run, Stack, Workload, kernel_test, require, source, tool,
};

/// As in `kernel_on_cpu`: three standard deviations at 6,000 samples.
const TOLERANCE: f64 = 0.02;

/// What ends the name of each function of Ruby's with `--annotate`.
const SUFFIX: &str = "_[rb]";

fn start(name: &str, arguments: &[&str]) -> Workload {
    let mut command = Command::new("ruby");
    // Without the machine's own packages.
    command.arg("--disable=gems");
    Workload::start(command.arg(source(&format!("ruby/{name}"))).args(arguments))
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

/// The functions of Ruby's in a stack, from the root, without where they are defined: `block (2 levels) in <main>`.
fn functions(stack: &Stack) -> Vec<String> {
    let functions = stack
        .frames
        .iter()
        .filter_map(|frame| frame.strip_suffix(SUFFIX));
    let names = functions.map(|frame| {
        // What is evaluated has `(eval)` for a file.
        let end = frame.find(" ((eval)").or_else(|| frame.rfind(" ("));
        frame[..end.unwrap_or(frame.len())].to_owned()
    });
    names.collect()
}

#[kernel_test(timing)]
fn shares_of_ruby_functions_are_as_measured() {
    require!(tool("ruby"));
    let workload = start("shares.rb", &[]);
    let folded = record("-f -F 997 -d 6", &workload).folded();
    let shares = workload.stop().shares();
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
    // The interpreter's loop is shown only if it is asked for.
    assert!(!folded.any(|stack| stack.has("rb_vm_exec")), "{folded}");
}

#[kernel_test]
fn every_stack_is_a_chain_that_a_ruby_program_allows() {
    require!(tool("ruby"));
    let workload = start("chains.rb", &[]);
    let folded = record("-f -F 1997 -d 4 --annotate", &workload).folded();
    Grammar::of(&workload.stop()).check(&folded, |stack| {
        let functions = functions(stack);
        // Threads and fibers have stacks of their own, which begin and end without Ruby.
        if functions.is_empty() && !stack.has("ruby_run_node") {
            return vec![String::new()];
        }
        functions
    });
}

#[kernel_test]
fn nine_hundred_ruby_functions_are_whole_and_five_thousand_are_marked() {
    require!(tool("ruby"));
    for (depth, is_whole) in [("900", true), ("5000", false)] {
        let workload = start("deep.rb", &[depth]);
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
fn lines_are_those_that_run_in_ruby() {
    require!(tool("ruby"));
    let workload = start("lines.rb", &[]);
    let folded = record("-f -F 997 -d 1 --lines", &workload).folded();
    let on_line = folded.share(|stack| stack.mentions("lines.rb:7"));
    assert!(on_line > NEARLY_ALL, "{on_line} in {folded}");
    assert!(
        folded.any(|stack| stack.mentions("lines.rb:13")),
        "{folded}"
    );
}
