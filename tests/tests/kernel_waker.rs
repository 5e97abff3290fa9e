//! Wakers: programs in which it is known which thread ends which wait.

use flame_bpf_tests::{Invocation, Program, Run, Stack, kernel_test, profile};

/// How long the waits are compared for.
const SECONDS: f64 = 4.0;

/// Separator between a wait and its end.
const WOKEN_BY: &str = "--";

/// Waits that only `giver` ends.
const GIVEN: [&str; 3] = ["wait_pipe", "wait_condition", "wait_lock"];

/// Whether a time may be what was measured as `waited`. A function measures more, namely what it waited for a CPU after it had
/// been woken, which is much on a busy machine; and the recording begins a little before the measuring, and ends after it.
fn is_close(seen: f64, waited: f64) -> bool {
    seen < 1.15 * waited + 0.2 && seen > 0.4 * waited
}

/// Records the workload `waits`; with how long each function waited, as it measured.
fn record(program: &Program, flags: &str) -> (Run, Vec<(String, f64)>) {
    let (run, said) = Invocation::new(flags).run_accounted(program.start(&[]), SECONDS);
    run.lossless_balance();
    (run, said.seconds())
}

/// How long the waits that only `giver` ends were, as the program measured.
fn given(truth: &[(String, f64)]) -> f64 {
    truth
        .iter()
        .filter(|(name, _)| GIVEN.contains(&name.as_str()))
        .map(|(_, waited)| waited)
        .sum()
}

/// Frame in place of a waker that the kernel did not report.
const UNSEEN: &str = "[waker not seen]";

/// The frames before and behind the separator, both from root to leaf.
#[track_caller]
fn halves(stack: &Stack) -> (&[String], &[String]) {
    let separator = stack.position(WOKEN_BY).expect("every wait has an end");
    (&stack.frames[..separator], &stack.frames[separator + 1..])
}

fn has(half: &[String], name: &str) -> bool {
    half.iter().any(|frame| frame == name)
}

#[track_caller]
fn assert_true_ends(program: &Program) {
    let (run, truth) = record(program, "-v -f --off-wake");
    let folded = run.folded();
    assert_eq!(truth.len(), 5, "{truth:?}");
    for (function, waited) in &truth {
        let seen = folded.seconds(|stack| stack.has(function));
        assert!(
            is_close(seen, *waited),
            "{function} waited {waited:.3} s and is shown with {seen:.3} s in {folded}"
        );
    }
    for stack in &folded.stacks {
        let (wait, end) = halves(stack);
        assert!(wait[0] == "waits" && !end.is_empty(), "{stack:?}");
        assert!(!stack.mentions("bpf_prog_"), "{stack:?}");
        let outermost = end.last().map_or("", String::as_str);
        if outermost == "[not woken]" || outermost == UNSEEN {
            continue;
        }
        if GIVEN.iter().any(|given| has(wait, given)) {
            // Upside down: the thread's name is at the top.
            assert!(outermost == "waits" && has(end, "giver"), "{stack:?}");
        } else if has(wait, "wait_sleep") {
            assert_eq!(outermost, "[interrupt]", "{stack:?}");
            assert!(!has(end, "spinner"), "{stack:?}");
        }
        assert!(!has(wait, "wait_never"), "{stack:?}");
    }
    // Kernels do not report every wake-up, but nearly all.
    let unseen = folded.seconds(|stack| stack.has(UNSEEN));
    assert!(unseen < 0.04 * SECONDS * 5.0, "{unseen} s in {folded}");
    let waited = given(&truth);
    let given = folded.seconds(|stack| {
        stack.has_chain(&["giver", "start_thread"]) && GIVEN.iter().any(|name| stack.has(name))
    });
    assert!(
        is_close(given, waited),
        "{given} s of {waited} s in {folded}"
    );
}

#[kernel_test(timing)]
fn wakers_stand_above_the_waits_that_they_ended() {
    assert_true_ends(&Program::c("waits"));
}

#[kernel_test(timing)]
fn wakers_stand_above_the_waits_that_they_ended_without_frame_pointers() {
    assert_true_ends(&Program::c_without_frame_pointers("waits"));
}

#[kernel_test(timing)]
fn wakers_weigh_the_time_that_others_waited_for_them() {
    let (run, truth) = record(&Program::c("waits"), "-v -f --wakeup");
    let folded = run.folded();
    for stack in &folded.stacks {
        assert_eq!(stack.leaf(), "waits", "{stack:?}");
        assert!(
            !stack.has("waiter") && !stack.mentions("bpf_prog_"),
            "{stack:?}"
        );
    }
    let waited = given(&truth);
    let given = folded.seconds(|stack| stack.has_chain(&["start_thread", "giver"]));
    assert!(
        is_close(given, waited),
        "{given} s of {waited} s in {folded}"
    );
    // One waits for what never comes; the first thread is woken by our signals.
    let not_woken = folded.seconds(|stack| stack.root() == "[not woken]");
    assert!(not_woken > SECONDS, "{not_woken} s in {folded}");
}

#[kernel_test]
fn reasons_stand_between_a_wait_and_its_waker() {
    let (run, _) = record(&Program::c("waits"), "-v -f -U --off-wake --reasons");
    let folded = run.folded();
    for chain in [
        &["read", "[read: pipe]", WOKEN_BY, "write", "giver"][..],
        // The kernel's frames are left out, and an interrupt is one all the same.
        &["[sleep]", WOKEN_BY, "[interrupt]"],
    ] {
        assert!(
            folded.any(|stack| stack.has_chain(chain)),
            "{chain:?} in {folded}"
        );
    }
}

#[kernel_test(timing)]
fn a_waker_that_is_no_target_or_has_exited_is_shown() {
    for program in [
        Program::c("ringers"),
        Program::c_without_frame_pointers("ringers"),
    ] {
        let workload = program.start(&[]);
        let run = profile("-v -f --off-wake -d 2", &workload);
        run.balance().assert_lossless();
        let folded = run.folded();
        for (wait, truth, chain) in [
            ("hear", 0.8, &["write", "ring", "live", "main"][..]),
            ("bury", 0.2, &["do_exit"]),
        ] {
            let of = |stack: &Stack| stack.has(wait);
            let ended = |stack: &Stack| of(stack) && !stack.has("[not woken]");
            let known =
                |stack: &Stack| of(stack) && stack.has_chain(chain) && stack.leaf() == "ringer";
            let (all, known_wakers) = (folded.weight(ended), folded.weight(known));
            assert!(
                known_wakers > 0 && known_wakers * 100 >= all * 98,
                "{wait}: {known_wakers} of {all} µs in {folded}"
            );
            let share = folded.share(of);
            assert!(
                (share - truth).abs() < 0.1,
                "{wait} has {share:.3}: {folded}"
            );
        }
    }
}

#[kernel_test]
fn waker_pairs_outlast_a_stack_epoch() {
    // So little memory that its sides are flipped many times.
    let _storm = [
        Program::c("execstorm").start(&["200", "2000", "300"]),
        Program::c("forkstorm").start(&["200", "1500", "300"]),
    ];
    let waits = Program::c("waits").start(&[]);
    let run = Invocation::new("-v -f -K --off-wake -a -d 2 --map-memory 8")
        .run()
        .expect_code(0);
    run.balance().assert_even();
    let folded = run.folded();
    for stack in &folded.stacks {
        halves(stack);
    }
    assert!(
        folded.any(|stack| stack.root() == "waits" && stack.leaf() == "waits"),
        "{folded}"
    );
    drop(waits);
}
