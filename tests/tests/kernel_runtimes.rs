//! Interpreters that the recording meets after it has begun: what shows their frames is loaded then, and runs in place of the
//! programs that are attached.

use std::path::Path;

use flame_bpf_tests::{Folded, Invocation, Stack, kernel_test, python, require, source, tool};
use tempfile::tempdir;

/// Whether the process is called so, with or without a version.
fn is_of(stack: &Stack, comm: &str) -> bool {
    let first = stack.frames.first();
    first.is_some_and(|first| first.starts_with(comm))
}

/// Profile of a command of the shell's, all of it counted.
fn record(flags: &str, command: &str) -> Folded {
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("late.folded");
    let run = Invocation::new("-v")
        .args(flags)
        .path("-o", &path)
        .command(Path::new("/bin/sh"), &["-c", command])
        .run()
        .expect_code(0);
    run.lossless_balance();
    run.folded_file(&path)
}

#[kernel_test]
fn a_runtime_that_is_met_later_is_shown_by_every_probe() {
    let python = require!(python());
    let script = source("python/late.py");
    let command = format!(
        "sleep 0.3; exec {} -S {} 3",
        python.display(),
        script.display()
    );
    for probe in [
        "-F 499",
        "--wall -F 499",
        "--off-cpu",
        "--off-wake",
        "--syscalls",
        "--syscalls=latency",
        "--alloc",
        "-e sched:sched_switch",
        "-e uprobe:libc:malloc",
    ] {
        let folded = record(probe, &command);
        // Not of Python's own start and end.
        let runs_script = |stack: &Stack| {
            let mut frames = stack.frames.iter();
            frames.any(|frame| frame.contains("PyRun_SimpleFile"))
        };
        let share = folded.share_among(runs_script, |stack| stack.has_chain(&["main", "work"]));
        // Before the runtime is met, the script's stacks are native.
        assert!(share > 0.5, "{probe}: {share} in {folded}");
    }
}

#[kernel_test]
fn runtimes_that_are_met_one_after_another_are_all_shown() {
    let (python, perl) = (require!(python()), require!(tool("perl")));
    let [script, other] = ["python/late.py", "perl/late.pl"].map(source);
    let python = format!("{} -S {} 3", python.display(), script.display());
    let perl = format!("{} {} 3", perl.display(), other.display());
    let command = format!("sleep 0.3; {python}; {perl}; {python}");
    let folded = record("-F 499 --annotate", &command);
    for (comm, function) in [("python", "work_[py]"), ("perl", "main::work_[perl]")] {
        let share = folded.share_among(|stack| is_of(stack, comm), |stack| stack.has(function));
        assert!(share > 0.7, "{comm}: {share} in {folded}");
    }
}
