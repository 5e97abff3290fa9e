//! Requests for memory: known numbers of bytes, by each function that C libraries have.

use flame_bpf_tests::{Invocation, Program, Recipe, kernel_test, require, tool};

/// How many bytes each function of the workload asks for.
const TRUTH: [(&str, u64); 5] = [
    ("mallocs", 10 * 1000),
    ("callocs", 5 * 300),
    ("reallocs", 4 * (100 + 200)),
    ("arrays", 3 * 77),
    ("aligned", 2 * (500 + 640 + 96)),
];

#[track_caller]
fn assert_true_bytes(program: &Program, flags: &str) {
    let invocation = Invocation::new("-v -f --alloc").args(flags);
    let (run, _) = invocation.run_while_working(program.start(&[]));
    run.lossless_balance();
    let folded = run.folded();
    for (function, bytes) in TRUTH {
        let seen = folded.weight(|stack| stack.has_chain(&["main", function]));
        assert_eq!(seen, bytes, "{function}: {folded}");
    }
    run.expect_stderr("memory asked for: ");
}

#[kernel_test]
fn every_requested_byte_is_counted_once_at_its_caller() {
    assert_true_bytes(&Program::c("alloc"), "--call-graph fp");
    assert_true_bytes(&Program::c_without_frame_pointers("alloc"), "");
}

#[kernel_test]
fn requests_to_musl_are_counted() {
    let _compiler = require!(tool("musl-gcc"));
    let program = Recipe::c("alloc").named("musl_alloc").by("musl-gcc").make();
    assert_true_bytes(&program, "");
}

#[kernel_test]
fn requests_of_a_static_program_are_counted_unless_it_is_stripped() {
    let program = Recipe::c("alloc")
        .named("static_alloc")
        .linked("-static")
        .make();
    assert_true_bytes(&program, "");
    let workload = program.stripped().start(&[]);
    Invocation::new("--alloc -d 1")
        .flag("-p", workload.pid())
        .run()
        .expect_code(1)
        .expect_stderr("a stripped static program");
}

#[kernel_test]
fn requests_of_a_command_are_counted_from_its_start() {
    let run = Invocation::new("-v -f --alloc")
        .command(std::path::Path::new("/bin/sh"), &["-c", "sleep 0.3"])
        .run()
        .expect_code(0);
    run.balance().assert_lossless();
    assert!(
        run.folded().any(|stack| stack.leaf() == "malloc"),
        "{}",
        run.folded()
    );
}

#[kernel_test]
fn allocations_of_the_whole_machine_are_refused() {
    Invocation::new("--alloc -a -d 1")
        .run()
        .expect_code(1)
        .expect_stderr("slows the whole machine down too much");
}
