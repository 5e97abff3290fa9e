//! Uprobes: every call of a function is counted once, at the stack that called it, with its caller.

use flame_bpf_tests::{Folded, Invocation, Program, kernel_test, require, tool};

/// The functions of `calls` that call, and how often.
const TRUTH: [(&str, u64); 2] = [("few", 100), ("many", 300)];

#[track_caller]
fn assert_true_counts(folded: &Folded, leaf: &str, chain: &[&str]) {
    for (caller, times) in TRUTH {
        let chain = [&["main", caller], chain].concat();
        let seen = folded.weight(|stack| stack.has_chain(&chain) && stack.leaf() == leaf);
        assert_eq!(seen, times, "{leaf} from {caller}: {folded}");
    }
}

/// Counts what `program` calls, from its beginning to its end.
fn count(program: &Program, flags: &str, function: &str) -> Folded {
    let run = Invocation::new(flags)
        .args("-v -f")
        .flag("-e", format_args!("uprobe:{function}"))
        .command(program.path(), &[])
        .run()
        .expect_code(0);
    let balance = run.balance();
    balance.assert_lossless();
    let folded = run.folded();
    assert_eq!(folded.total(), balance.recorded, "{folded}");
    folded
}

#[kernel_test]
fn every_function_call_is_counted_at_its_caller() {
    let pointers = Program::c("calls");
    let bare = Program::c_without_frame_pointers("calls");
    for (program, flags) in [
        (&pointers, "--call-graph auto"),
        (&pointers, "--call-graph fp"),
        (&pointers, "--call-graph fp -U"),
        (&bare, "--call-graph auto"),
        (&bare, "--call-graph dwarf"),
    ] {
        let folded = count(
            program,
            flags,
            &format!("{}:counted", program.path().display()),
        );
        assert_true_counts(&folded, "counted", &["counted"]);
        assert_eq!(folded.total(), 400, "{flags}: {folded}");
    }
}

#[kernel_test]
fn a_library_can_be_named_without_its_path() {
    let program = Program::c_without_frame_pointers("calls");
    let folded = count(&program, "", "libc:malloc");
    assert_true_counts(&folded, "malloc", &["counted", "malloc"]);
}

#[kernel_test]
fn a_uprobe_on_one_process_ignores_others() {
    let program = Program::c("calls");
    let workload = program.start(&["wait"]);
    let other = program.start(&["wait"]);
    let mut running = Invocation::new("-v -f -e uprobe:libc:malloc")
        .flag("-p", workload.pid())
        .start();
    running.wait_until_all_attached();
    workload.proceed();
    other.proceed();
    let run = running.finish().expect_code(0);
    let balance = run.balance();
    balance.assert_even();
    // Not even filtered: the other process is not stopped at all.
    assert_eq!(
        (balance.filtered_total(), balance.lost_total()),
        (0, 0),
        "{balance:?}"
    );
    assert_true_counts(&run.folded(), "malloc", &["counted", "malloc"]);
    run.expect_stderr("libc:malloc: calls (PID");
}

#[kernel_test]
fn a_uprobe_without_a_target_counts_every_process() {
    let program = Program::c("calls");
    let workload = program.start(&["wait"]);
    let mut running = Invocation::new("-v -f -a --call-graph fp -e")
        .arg(format_args!("uprobe:{}:counted", program.path().display()))
        .start();
    running.wait_until_all_attached();
    workload.proceed();
    workload.stop_by_itself();
    running.signal(rustix::process::Signal::INT);
    let folded = running.finish().expect_code(0).folded();
    assert_true_counts(&folded, "counted", &["counted"]);
}

#[kernel_test]
fn uprobes_work_on_musl() {
    let _compiler = require!(tool("musl-gcc"));
    let program = flame_bpf_tests::Recipe::c("calls")
        .named("musl_calls")
        .by("musl-gcc")
        .make();
    let folded = count(&program, "", "libc:malloc");
    assert_true_counts(&folded, "malloc", &["counted", "malloc"]);
}

#[kernel_test]
fn a_wrong_uprobe_is_answered_with_possible_ones() {
    let program = Program::c("calls");
    let workload = program.start(&["wait"]);
    for (function, answer) in [
        ("libc:maloc", "similar: malloc"),
        ("libc:memcpy", "chooses"),
        ("calls:malloc", "calls only calls malloc; name the library"),
        ("libz:inflate", "give the path of one"),
        ("/nowhere:f", "/nowhere cannot be opened"),
        ("/etc/passwd:f", "no ELF file"),
    ] {
        Invocation::new("-d 1 -e")
            .arg(format_args!("uprobe:{function}"))
            .flag("-p", workload.pid())
            .run()
            .expect_code(1)
            .expect_stderr(answer);
    }
}
