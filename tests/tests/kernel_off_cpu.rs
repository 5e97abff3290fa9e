//! Off-CPU: the waits of a program that measures them itself, what becomes of those that begin before the
//! recording or end after it, and what the flags leave out.

use std::thread;
use std::time::Duration;

use flame_bpf_tests::{Invocation, Program, Stack, assert_near, kernel_test, profile, require};
use rustix::process::Signal;

/// How long the waits are compared for.
const SECONDS: f64 = 4.0;

/// How far a function's time may be from what the program measured.
const TOLERANCE: f64 = 0.02;

/// The leaf of what could have run and had no CPU.
const RUNNABLE: &str = "[runnable]";

#[track_caller]
fn assert_true_times(program: &Program) {
    let (run, said) = Invocation::new("-v -f --off-cpu").run_accounted(program.start(&[]), SECONDS);
    let truth = said.seconds();
    let balance = run.lossless_balance();
    assert!(balance.recorded > 100, "{balance:?}");
    let folded = run.folded();
    assert_eq!(truth.len(), 5, "{truth:?}");
    for (function, measured) in truth {
        assert!(measured > SECONDS / 3.0, "{function}: {measured} s");
        let shown = folded.seconds(|stack| stack.has(&function));
        assert_near(&function, shown, measured, TOLERANCE * measured, &folded);
    }
    // A spinning thread is never blocked.
    let blocked = folded.weight(|stack| stack.has("spinner") && stack.leaf() != RUNNABLE);
    assert_eq!(blocked, 0, "{folded}");
}

#[kernel_test(timing)]
fn sampled_waits_add_up_to_all_waits() {
    // Some thousand waits a second, of which each thread has one looked at in 2 ms.
    let flags = "-v -f --off-cpu --switch-sample 2ms";
    let workload = Program::c("waits").start(&["200"]);
    let (run, said) = Invocation::new(flags).run_accounted(workload, SECONDS);
    let balance = run.lossless_balance();
    let left_out = balance.filtered_total();
    assert!(
        balance.recorded > 500 && left_out > 2 * balance.recorded,
        "{balance:?}"
    );
    assert!(run.stderr.contains("(--switch-sample)"), "{}", run.stderr);
    let folded = run.folded();
    for (function, measured) in said.seconds() {
        // Chance is of some percent where a thousand waits stand for all; one that lasts throughout is seen whole.
        let tolerance = if function == "wait_never" {
            TOLERANCE
        } else {
            10.0 * TOLERANCE
        };
        assert!(measured > SECONDS / 4.0, "{function}: {measured} s");
        let shown = folded.seconds(|stack| stack.has(&function));
        assert_near(&function, shown, measured, tolerance * measured, &folded);
    }
}

#[kernel_test(timing)]
fn waits_are_shown_with_their_measured_time() {
    assert_true_times(&Program::c("waits"));
}

#[kernel_test(timing)]
fn waits_are_shown_with_their_measured_time_without_frame_pointers() {
    assert_true_times(&Program::c_without_frame_pointers("waits"));
}

#[kernel_test]
fn off_cpu_stacks_end_at_the_caller_of_the_scheduler() {
    let workload = Program::c("waits").start(&[]);
    let folded = profile("-f --off-cpu -d 1", &workload).folded();
    for chain in [
        &["start_thread", "waiter", "wait_pipe", "read"][..],
        &["start_thread", "waiter", "wait_condition"],
        &["start_thread", "waiter", "wait_lock"],
        // Asleep all the time: seen from outside.
        &["start_thread", "waiter", "wait_never", "read"],
        &["main", "pause"],
    ] {
        assert!(
            folded.any(|stack| stack.has_chain(chain)),
            "{chain:?} in {folded}"
        );
    }
    for name in [
        "__schedule",
        "schedule",
        "bpf_trace_run",
        "bpf_prog_",
        "__traceiter",
    ] {
        assert!(
            !folded.any(|stack| stack.frames.iter().any(|frame| frame.starts_with(name))),
            "{name} in {folded}"
        );
    }
}

#[kernel_test]
fn reasons_name_the_object_of_each_wait() {
    let workload = Program::c("waits").start(&[]);
    for flags in [
        "-f --off-cpu --reasons -d 1",
        "-fU --off-cpu --reasons -d 1",
    ] {
        let folded = profile(flags, &workload).folded();
        for (function, reason) in [
            ("wait_sleep", "[sleep]"),
            ("wait_lock", "[futex]"),
            ("wait_pipe", "[read: pipe]"),
            ("wait_condition", "[futex]"),
            ("wait_never", "[read: pipe]"),
            ("pause", "[pause]"),
        ] {
            let of = |stack: &Stack| stack.has(function) && stack.leaf() != RUNNABLE;
            let with_reason = |stack: &Stack| of(stack) && stack.leaf() == reason;
            let (all, reasoned) = (folded.weight(of), folded.weight(with_reason));
            assert!(
                all > 0 && all == reasoned,
                "{function}: {reasoned} of {all} µs in {folded}"
            );
        }
    }
}

#[kernel_test]
fn cached_kernel_stacks_are_the_right_ones() {
    let workload = Program::c("reads").start(&[]);
    // Little memory, so that its sides are flipped, and what was stored on one is stored anew on the other.
    let run = profile("-v -f --off-cpu -d 3 --map-memory 8", &workload);
    let balance = run.lossless_balance();
    let recognized: u64 = run
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("counter: kernel-stacks-cached "))
        .and_then(|number| number.parse().ok())
        .expect("the counter is printed");
    assert!(
        balance.recorded > 3_000 && recognized > balance.recorded / 2,
        "{recognized} of {balance:?}"
    );
    let folded = run.folded();
    let functions = [
        ("read_pipe", "pipe_read"),
        ("read_event", "eventfd_read"),
        ("read_timer", "timerfd_read"),
    ];
    for (function, place) in functions {
        let of = |stack: &Stack| stack.has(function) && stack.leaf() != RUNNABLE;
        let with_place = |stack: &Stack| of(stack) && stack.mentions(place);
        let (all, there) = (folded.weight(of), folded.weight(with_place));
        assert!(
            all > 0 && all == there,
            "{function}: {there} of {all} µs in {place}: {folded}"
        );
    }
}

#[kernel_test(timing)]
fn a_thread_that_sleeps_throughout_is_shown_with_the_whole_duration() {
    let workload = Program::c("sleeper").start(&[]);
    let run = profile("-v -f --off-cpu -d 3", &workload);
    let balance = run.lossless_balance();
    assert_eq!(balance.recorded, 1, "{balance:?}");
    let total = run.folded().total();
    assert!((2_900_000..3_300_000).contains(&total), "{total} µs of 3 s");
    run.expect_stderr("had begun before")
        .expect_stderr("had not ended");
}

#[kernel_test(timing)]
fn off_cpu_filters_drop_the_right_waits() {
    let workload = Program::c("waits").start(&[]);
    for (flags, kept, left_out) in [
        ("-m 60000", &["wait_sleep"][..], &["giver"][..]),
        ("-M 60000", &["giver"], &["wait_sleep", "wait_never"]),
        (
            "--state R",
            &["spinner"],
            &["wait_sleep", "wait_pipe", "wait_never"],
        ),
        ("--state S", &["wait_sleep", "wait_never"], &["spinner"]),
        ("--user-threads-only", &["wait_sleep", "wait_never"], &[]),
    ] {
        let run = Invocation::new("-v -f --off-cpu -d 1")
            .flag("-p", workload.pid())
            .arg(flags.split(' ').next().expect("a flag"));
        let run = flags
            .split(' ')
            .skip(1)
            .fold(run, |run, value| run.arg(value));
        let run = run.run().expect_code(0);
        run.lossless_balance();
        let folded = run.folded();
        for function in kept {
            assert!(
                folded.any(|stack| stack.has(function)),
                "{flags}: no {function} in {folded}"
            );
        }
        for function in left_out {
            // The first and the last wait are cut short, and a busy machine makes others long.
            let rest = folded.seconds(|stack| stack.has(function));
            assert!(
                rest < 0.4,
                "{flags}: {function} for {rest} s of 1 in {folded}"
            );
        }
    }
}

#[kernel_test]
fn waits_of_kernel_threads_are_recorded_on_the_whole_machine() {
    let _workload = Program::c("waits").start(&[]);
    let run = Invocation::new("-v -f --off-cpu -a -d 2")
        .run()
        .expect_code(0);
    run.lossless_balance();
    let folded = run.folded();
    assert!(folded.any(|stack| stack.has("wait_sleep")), "{folded}");
    assert!(
        folded.any(|stack| stack.root().starts_with("kworker")),
        "{folded}"
    );
    let run = Invocation::new("-v -f --off-cpu --kernel-threads-only -a -d 2")
        .run()
        .expect_code(0);
    run.lossless_balance();
    let folded = run.folded();
    assert!(!folded.any(|stack| stack.has("main")), "{folded}");
    assert!(
        folded.any(|stack| stack.root().starts_with("kworker")),
        "{folded}"
    );
}

#[kernel_test]
fn waits_of_a_command_begin_with_its_own_start() {
    let run = Invocation::new("-v -o -")
        .arg("--off-cpu")
        .command(Program::c("pipe").path(), &[]);
    let mut running = run.start();
    running.wait_until_attached();
    thread::sleep(Duration::from_secs(1));
    running.signal(Signal::INT);
    let run = running.finish();
    run.lossless_balance();
    let folded = run.folded();
    assert!(
        folded.any(|stack| stack.root() == "pipe" && stack.has("main")),
        "{folded}"
    );
    // Being held is no wait of the command's. What it does until its own first instruction may be.
    let held = folded.weight(|stack| stack.root() == "flame-bpf");
    assert!(held < 100_000, "{folded}");
}

#[kernel_test(timing)]
fn waits_that_outlast_a_stack_epoch_are_not_lost() {
    // So little memory that its sides are flipped many times while `wait_never` sleeps.
    let _storm = [
        Program::c("execstorm").start(&["200", "2000", "300"]),
        Program::c("forkstorm").start(&["200", "1500", "300"]),
    ];
    // Other tests have programs of its usual name.
    let waits = Program::c("waits").named("outlasting").start(&[]);
    let run = Invocation::new("-v -f --off-cpu -a -d 3 --map-memory 8")
        .run()
        .expect_code(0);
    let balance = run.balance();
    balance.assert_even();
    let folded = run.folded();
    let slept = folded.seconds(|stack| stack.root() == "outlasting" && stack.has("wait_never"));
    // On a busy machine, where there are many sleepers to look at, it takes longer than it was asked to.
    let took = run.stderr.split_once(" s, host").and_then(|(before, _)| {
        let (_, seconds) = before.rsplit_once(' ')?;
        seconds.parse::<f64>().ok()
    });
    let took = took.expect("the closing paragraph says how long it took");
    assert!(
        (took - 0.3..took + 0.3).contains(&slept) && took >= 3.0,
        "{slept} s of {took}: {balance:?}"
    );
    drop(waits);
}

/// The worker's registers are a copy of those of the thread that made it, with both pointers cleared.
#[kernel_test]
fn threads_without_a_user_mode_have_no_callers_in_it() {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    require!(match disabled.as_deref().map(str::trim) {
        Ok("0") => Ok(()),
        _ => Err("this kernel has io_uring disabled, or has none"),
    });
    let workload = Program::c("uring").start(&[]);
    for flags in ["-f --off-cpu --per-thread", "-f --wall --per-thread"] {
        let run = Invocation::new(flags)
            .flag("-d", "1")
            .flag("-p", workload.pid())
            .run()
            .expect_code(0);
        let folded = run.folded();
        let is_worker = |stack: &Stack| stack.thread().starts_with("iou-wrk");
        assert!(folded.weight(is_worker) > 0, "{folded}");
        let callers = folded.share_among(is_worker, |stack| {
            stack.mark().is_none() && stack.frames[2].starts_with("ret_from_fork")
        });
        assert_near("workers", callers, 1.0, 0.0, &folded);
    }
}
