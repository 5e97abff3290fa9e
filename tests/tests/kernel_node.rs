//! The functions that V8 runs in Node, without any flag of its: whose truth is known, in every way in which they come to run,
//! interpreted, compiled and compiled into one another, deep ones, short-lived ones, and in worker threads.

use std::path::Path;
use std::process::Command;

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Grammar, Interpreter, Invocation, NEARLY_ALL, Stack, Workload, annotated,
    kernel_test, nodes, profile, require, source,
};
use tempfile::tempdir;

/// A build of Node.
fn node(path: &Path) -> Interpreter {
    Interpreter {
        command: path.to_str().expect("the path is text").to_owned().leak(),
        arguments: &["--expose-gc"],
        folder: "js",
        suffix: "_[js]",
    }
}

/// The program's functions in a stack, from the root, without where those without a name are defined.
fn functions(stack: &Stack) -> Vec<String> {
    let frames = stack.frames.iter();
    let names = frames.filter_map(|frame| frame.strip_suffix("_[js]"));
    let names = names.map(|name| name.split_once(" (").map_or(name, |(name, _)| name));
    names
        .skip_while(|name| *name != "main")
        .map(str::to_owned)
        .collect()
}

#[kernel_test]
fn shares_of_javascript_functions_are_as_measured() {
    for path in require!(nodes()) {
        let folded = node(&path).check_shares("shares.js");
        let chain = ["short_phase", "Builtins_ArrayMap"];
        assert!(folded.any(|stack| stack.has_chain(&chain)), "{folded}");
        let without = folded.share(|stack| !stack.mentions("Builtins_InterpreterEntryTrampoline"));
        assert!(without > ALL_BUT_A_FEW, "{without} in {folded}");
    }
}

/// Checks all stacks that run the program; beside it, threads compile and collect.
#[track_caller]
fn check_stops(workload: Workload) {
    let mut folded = annotated(&workload, 6.0);
    folded.stacks.retain(|stack| !functions(stack).is_empty());
    Grammar::of(&workload.stop()).check(&folded, functions);
}

#[kernel_test]
fn sixty_random_stops_are_as_v8_says() {
    for path in require!(nodes()) {
        check_stops(node(&path).start("stops.js", &[]));
    }
}

#[kernel_test]
fn random_stops_in_a_worker_thread_are_as_v8_says() {
    for path in require!(nodes()) {
        check_stops(node(&path).start("stops.js", &["worker"]));
    }
}

#[kernel_test]
fn random_stops_while_objects_move_are_as_v8_says() {
    for path in require!(nodes()) {
        check_stops(node(&path).start("stops.js", &["collecting"]));
    }
}

#[kernel_test]
fn javascript_functions_that_are_made_and_dropped_never_have_each_other_s_names() {
    for path in require!(nodes()) {
        let workload = node(&path).start("dropped.js", &[]);
        let folded = annotated(&workload, 4.0);
        let mut told = 0;
        for stack in &folded.stacks {
            let number = |prefix: &str| {
                let frame = stack.frames.iter().find(|frame| frame.starts_with(prefix));
                frame.map(|frame| &frame[prefix.len()..])
            };
            if let (Some(made), Some(tells)) = (number("made_"), number("told_")) {
                assert_eq!(made, tells, "{stack:?}");
                told += stack.weight;
            }
        }
        assert!(told > folded.total() / 4, "{told} in {folded}");
    }
}

#[kernel_test]
fn nine_hundred_javascript_functions_are_whole_and_five_thousand_are_marked() {
    for path in require!(nodes()) {
        node(&path).check_depths("deep.js", "descend");
    }
}

#[kernel_test]
fn javascript_that_runs_for_20_ms_has_its_names() {
    for path in require!(nodes()) {
        let folded = node(&path).run(&path, "-f -F 1997", "short.js");
        assert!(folded.any(|stack| stack.has("brief_work")), "{folded}");
    }
}

#[kernel_test]
fn lines_are_those_that_run_in_javascript() {
    for path in require!(nodes()) {
        let workload = node(&path).start("lines.js", &[]);
        let folded = profile("-f -F 997 -d 1 --lines", &workload).folded();
        let within = folded.share(|stack| stack.mentions("work (lines.js:13)"));
        assert!(within > NEARLY_ALL, "{within} in {folded}");
        let on_line = folded.share(|stack| stack.mentions("burn (lines.js:7)"));
        assert!(on_line > 0.9, "{on_line} in {folded}");
    }
}

#[kernel_test]
fn a_regular_expression_is_one_frame() {
    for path in require!(nodes()) {
        let workload = node(&path).start("regexp.js", &[]);
        // It is compiled at first.
        let folded = Invocation::new("-f -F 997")
            .run_for_cpu_time(&workload, 1.0)
            .folded();
        let chain = ["match", "Builtins_RegExpPrototypeTest"];
        let within = folded.share(|stack| stack.has_chain(&chain));
        assert!(within > NEARLY_ALL, "{within} in {folded}");
        let shown = folded.share(|stack| stack.has("[regular expression]"));
        assert!(shown > NEARLY_ALL, "{shown} in {folded}");
    }
}

// As Java's, they come to ever new parts of a large program.
#[kernel_test(timing)]
fn stacks_of_javascript_are_whole() {
    for path in require!(nodes()) {
        let workload = node(&path).start("stops.js", &[]);
        let folded = profile("-f -F 1997 -d 3", &workload).folded();
        folded.assert_all_but_a_few(Stack::begins_a_thread);
    }
}

#[kernel_test]
fn v8_s_own_frames_are_shown_if_they_are_asked_for() {
    for path in require!(nodes()) {
        let workload = node(&path).start("lines.js", &[]);
        let all = profile("-f -F 997 -d 1 --interpreter-frames", &workload).folded();
        let shown = all.share(|stack| stack.has("Builtins_InterpreterEntryTrampoline"));
        assert!(shown > NEARLY_ALL, "{shown} in {all}");
    }
}

#[kernel_test]
fn names_of_a_perf_map_do_not_appear_beside_those_of_v8() {
    for path in require!(nodes()) {
        let script = source("js/lines.js");
        let script = script.to_str().expect("the path is text");
        // It leaves a log where it runs.
        let folder = tempdir().expect("a folder can be made");
        let workload = Workload::start(
            Command::new(&path)
                .args(["--perf-basic-prof", script])
                .current_dir(folder.path()),
        );
        let folded = Invocation::new("-f -F 997 -d 1")
            .flag("-p", workload.pid())
            .run()
            .expect_no_panic()
            .expect_code(0)
            .folded();
        let twice = folded.share(|stack| stack.mentions("JS:") || stack.mentions("~burn"));
        assert!(twice == 0.0, "{twice} in {folded}");
        let shown = folded.share(|stack| stack.has("burn"));
        assert!(shown > NEARLY_ALL, "{shown} in {folded}");
    }
}
