//! System calls, I/O and locks: known numbers of calls and bytes, and times that programs measure themselves.

use flame_bpf_tests::{Balance, Folded, Invocation, Program, Run, Said, assert_near, kernel_test};

/// How far a function's time may be from what the program measured, which also counts its own way into the
/// kernel.
const TOLERANCE: f64 = 0.05;

/// Recording of a whole workload, which began when the probe was attached.
struct Recorded {
    run: Run,
    folded: Folded,
    balance: Balance,
    said: Said,
}

#[track_caller]
fn record(program: &Program, arguments: &[&str], flags: &str) -> Recorded {
    let invocation = Invocation::new("-v -f").args(flags);
    let (run, said) = invocation.run_while_working(program.start(arguments));
    let balance = run.balance();
    if flags.starts_with("--locks") {
        balance.assert_even();
        assert_few_ends_lost(&balance);
    } else {
        balance.assert_lossless();
    }
    Recorded {
        folded: run.folded(),
        said,
        run,
        balance,
    }
}

/// The kernel never runs a program within itself on one CPU: `__bpf_trace_run` in `kernel/trace/bpf_trace.c` leaves the
/// inner run out and counts it as a recursion miss. An interrupt may come while the program of ends is running, and wait for
/// a lock; then the end of that wait is left out, and its beginning is lost as one of a pair. How often depends on the
/// interrupts. For a beginning, the balance counts such a miss as reentered. No other reason is allowed.
#[track_caller]
fn assert_few_ends_lost(balance: &Balance) {
    let lost = |reason: &str| balance.lost.get(reason).copied().unwrap_or(0);
    let in_interrupts = lost("lost-pair") + lost("lost-reentered");
    assert_eq!(balance.lost_total(), in_interrupts, "{balance:?}");
    assert!(in_interrupts <= 1 + balance.fired / 1000, "{balance:?}");
}

/// Records `io`, which reads and writes a file of the name `known`.
#[track_caller]
fn record_io(program: &Program, flags: &str) -> Recorded {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("known");
    record(program, &[file.to_str().expect("a plain path")], flags)
}

impl Recorded {
    /// The weight of the stacks that lead from `main` through a function to this leaf.
    fn weight(&self, function: &str, leaf: &str) -> u64 {
        self.folded
            .weight(|stack| stack.has_chain(&["main", function]) && stack.leaf() == leaf)
    }

    #[track_caller]
    fn assert_weights(&self, expected: &[(&str, &str, u64)]) {
        for &(function, leaf, weight) in expected {
            assert_eq!(
                self.weight(function, leaf),
                weight,
                "{leaf} from {function}: {}",
                self.folded
            );
        }
    }

    /// Whether a function's time at this leaf, in microseconds, is what the program measured.
    #[track_caller]
    fn assert_true_time(&self, function: &str, leaf: &str) {
        let measured = self.said.seconds_of(function);
        // Shorter times would drown in what a firing costs.
        assert!(measured > 0.1, "{function}: {measured} s");
        let shown = self.weight(function, leaf) as f64 / 1e6;
        assert_near(
            function,
            shown,
            measured,
            TOLERANCE * measured,
            &self.folded,
        );
    }
}

const COUNTS: &[(&str, &str, u64)] = &[
    ("writes", "[write]", 50),
    ("reads", "[pread64]", 100),
    ("syncs", "[fsync]", 3),
    ("through_pipe", "[write]", 20),
    ("through_socket", "[sendto]", 10),
    ("sends_file", "[sendfile]", 5),
];

#[kernel_test]
fn every_system_call_is_counted_at_its_caller() {
    for program in [Program::c_without_frame_pointers("io"), Program::c("io")] {
        let recorded = record_io(&program, "--syscalls");
        recorded.assert_weights(COUNTS);
        assert_eq!(recorded.folded.total(), recorded.balance.recorded);
        recorded.run.expect_stderr("system calls: io (PID");
    }
    // Without user frames, a call is all that is left; without kernel frames, it is there all the same.
    let program = Program::c_without_frame_pointers("io");
    let recorded = record_io(&program, "--syscalls -K");
    let syncs = recorded
        .folded
        .weight(|stack| stack.frames == ["io", "[fsync]"]);
    assert_eq!(syncs, 3, "{}", recorded.folded);
    record_io(&program, "--syscalls -U").assert_weights(COUNTS);
}

#[kernel_test(timing)]
fn system_calls_are_shown_with_their_measured_latency() {
    let program = Program::c_without_frame_pointers("io");
    let recorded = record_io(&program, "--syscalls=latency");
    recorded.assert_true_time("sleeps", "[clock_nanosleep]");
    recorded.assert_true_time("waits_for_pipe", "[read]");
    assert!(
        recorded.weight("writes", "[write]") > 0,
        "{}",
        recorded.folded
    );
    recorded.run.expect_stderr(" s in all, ");
}

#[kernel_test]
fn a_call_that_has_not_returned_is_counted_up_to_the_end() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("out.folded");
    let run = Invocation::new("-v --syscalls=latency -d 1")
        .path("-o", &file)
        .command(std::path::Path::new("/bin/sleep"), &["2"])
        .run()
        .expect_code(0);
    run.balance().assert_lossless();
    let folded = run.folded_file(&file);
    let slept = folded.weight(|stack| stack.leaf() == "[clock_nanosleep]") as f64 / 1e6;
    // It sleeps throughout, but from when it has started, which may take half of a second on a busy machine.
    assert!((0.5..1.1).contains(&slept), "{folded}");
    run.expect_stderr("had not ended when the recording did");
}

#[kernel_test]
fn a_thread_that_ends_within_a_call_ends_the_call() {
    let run = Invocation::new("-v -f --syscalls=latency")
        .command(
            std::path::Path::new("/bin/sh"),
            &["-c", "/bin/true; /bin/true"],
        )
        .run()
        .expect_code(0);
    run.balance().assert_lossless();
    let folded = run.folded();
    assert!(
        folded.any(|stack| stack.leaf() == "[exit_group]"),
        "{folded}"
    );
    assert!(!run.stderr.contains("had not ended"), "{}", run.stderr);
}

#[kernel_test]
fn io_bytes_are_shown_under_their_file_names() {
    let program = Program::c_without_frame_pointers("io");
    let recorded = record_io(&program, "--io=bytes --io-files");
    recorded.assert_weights(&[
        ("writes", "[file: known]", 50 * 1000),
        ("reads", "[file: known]", 100 * 400),
        ("sends_file", "[file: known]", 5 * 100),
        ("through_pipe", "[write]", 0),
        ("through_socket", "[sendto]", 0),
    ]);
    // Syncs move no bytes, and are no firings; pipes and sockets were left out, as asked.
    assert!(
        !recorded.folded.any(|stack| stack.has("syncs")),
        "{}",
        recorded.folded
    );
    assert!(
        recorded.balance.filtered_total() >= 60,
        "{:?}",
        recorded.balance
    );
}

#[kernel_test]
fn other_kinds_of_files_are_shown_when_asked_for() {
    let program = Program::c_without_frame_pointers("io");
    record_io(&program, "--io=count").assert_weights(&[
        ("writes", "[write]", 50),
        ("syncs", "[fsync]", 3),
        ("sends_file", "[sendfile]", 5),
        ("through_pipe", "[write]", 0),
    ]);
    record_io(&program, "--io=count --io-kind sockets,pipes").assert_weights(&[
        ("writes", "[write]", 0),
        ("through_pipe", "[write]", 20),
        ("through_pipe", "[read]", 20),
        ("through_socket", "[recvfrom]", 10),
        ("sends_file", "[sendfile]", 5),
    ]);
    let recorded = record_io(&program, "--io --io-kind all");
    recorded.assert_true_time("waits_for_pipe", "[read]");
    assert!(
        !recorded.folded.any(|stack| stack.has("sleeps")),
        "{}",
        recorded.folded
    );
}

#[kernel_test(timing)]
fn lock_waits_are_shown_with_their_measured_time() {
    let program = Program::c_without_frame_pointers("locks");
    let recorded = record(&program, &[], "--locks");
    recorded.assert_true_time("contender", "[futex]");
    let of_kernel = |stack: &flame_bpf_tests::Stack| {
        stack.has("mapper") && stack.frames.iter().any(|frame| frame.starts_with("[rwsem"))
    };
    assert!(recorded.folded.any(of_kernel), "{}", recorded.folded);
    // The lock probe's own frames are cut off. A wait of another probe for a lock, to send a
    // kernel event, is a wait, too.
    let ours = |frame: &String| frame.starts_with("__traceiter_contention");
    assert!(
        !recorded.folded.any(|stack| stack.frames.iter().any(ours)),
        "{}",
        recorded.folded
    );
    let user = record(&program, &[], "--locks=user");
    user.assert_true_time("contender", "[futex]");
    assert!(!user.folded.any(of_kernel), "{}", user.folded);
    let kernel = record(&program, &[], "--locks=kernel");
    assert!(kernel.folded.any(of_kernel), "{}", kernel.folded);
    assert!(
        !kernel.folded.any(|stack| stack.leaf() == "[futex]"),
        "{}",
        kernel.folded
    );
}

#[test]
fn probes_that_exclude_each_other_are_refused() {
    for (flags, answer) in [
        ("--io --syscalls", "--syscalls does not go with --io"),
        ("--locks --off-cpu", "--locks does not go with --off-cpu"),
        ("--io -e cycles", "--io does not go with -e"),
        ("--io-files", "add --io"),
        ("--io -F 99", "leave out -F"),
    ] {
        Invocation::new(flags)
            .run()
            .expect_code(2)
            .expect_stderr(answer);
    }
}
