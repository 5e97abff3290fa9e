//! Tracepoints: every firing is counted once, at the stack that passed it.

use std::path::Path;

use flame_bpf_tests::{Invocation, Program, kernel_test};

#[kernel_test]
fn every_tracepoint_hit_is_counted_once() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("forks.folded");
    // The shell makes two children, and these none.
    let script = "/bin/true & /bin/true & wait";
    let run = Invocation::new("-v -e tracepoint:sched:sched_process_fork")
        .path("-o", &file)
        .command(Path::new("/bin/sh"), &["-c", script])
        .run()
        .expect_code(0);
    let balance = run.balance();
    balance.assert_even();
    assert_eq!(
        (balance.recorded, balance.lost_total()),
        (2, 0),
        "{balance:?}"
    );
    let folded = run.folded_file(&file);
    assert_eq!(folded.total(), 2, "{folded}");
    for stack in &folded.stacks {
        assert_eq!(
            (stack.root(), stack.leaf()),
            ("sh", "kernel_clone"),
            "{folded}"
        );
    }
    run.expect_stderr("sched:sched_process_fork: /bin/sh");
}

#[kernel_test]
fn tracepoint_hits_of_other_processes_are_left_out() {
    let pipe = Program::c("pipe").start(&[]);
    let _other = Program::c("sleeper").start(&[]);
    for (flags, frame) in [("-f", "main"), ("-fU", "main"), ("-fK", "__schedule")] {
        let run = Invocation::new(flags)
            .arg("-v")
            .flag("-e", "sched:sched_switch")
            .flag("-p", pipe.pid())
            .flag("-d", 1)
            .run()
            .expect_code(0);
        let balance = run.balance();
        balance.assert_lossless();
        let folded = run.folded();
        assert_eq!(folded.total(), balance.recorded, "{folded}");
        assert!(folded.any(|stack| stack.has(frame)), "{flags}: {folded}");
        let ours = |frame: &String| frame.starts_with("bpf_") || frame.starts_with("__traceiter");
        assert!(
            !folded.any(|stack| stack.frames.iter().any(ours)),
            "{folded}"
        );
    }
}

#[kernel_test]
fn an_unknown_tracepoint_lists_similar_ones() {
    Invocation::new("-e sched:sched_wekup -a -d 1")
        .run()
        .expect_code(1)
        .expect_stderr("no tracepoint sched_wekup")
        .expect_stderr("sched_wakeup");
}
