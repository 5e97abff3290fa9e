//! Which probe is meant, and what does not go with it.

use super::*;

#[test]
fn off_cpu_flags_need_off_cpu() {
    let waits = |line| match event(line).probe {
        Probe::OffCpu(waits) => waits,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(waits("--off-cpu"), Waits::default());
    let narrow = waits("--off-cpu -m 1000 -M 2000000 --state SD --user-threads-only --reasons");
    assert_eq!(narrow.shortest, Duration::from_millis(1));
    assert_eq!(narrow.longest, Duration::from_secs(2));
    assert_eq!(narrow.threads, ThreadKind::User);
    assert!(narrow.reasons && narrow.states.has(TaskState::DiskSleep));
    assert_refused(&[
        ("--reasons", "add --off-cpu"),
        ("-m 5", "add --off-cpu"),
        ("--off-cpu -F 99", "-F does not go with --off-cpu"),
        ("--off-cpu -e cycles", "-e does not go with --off-cpu"),
        ("--off-cpu --page-faults", "--page-faults does not go"),
        ("--off-cpu -C 0", "on no CPU"),
        ("--off-cpu -m 5 -M 4", "swap them"),
        (
            "--off-cpu --user-threads-only --kernel-threads-only",
            "leave no thread",
        ),
    ]);
}

#[test]
fn wakers_can_be_shown_alone_or_above_waits() {
    let waits = |line| match event(line).probe {
        Probe::OffCpu(waits) => waits,
        other => panic!("{line}: {other:?}"),
    };
    let above = waits("--off-wake --reasons -m 10");
    assert_eq!(above.wakers, Wakers::Above);
    assert!(above.reasons && !above.states.has(TaskState::Runnable));
    assert_eq!(waits("--wakeup --state D").wakers, Wakers::Alone);
    assert_refused(&[
        ("--wakeup --reasons", "use --off-wake"),
        ("--off-wake --state RS", "leave R out"),
        ("--wakeup -F 99", "-F does not go with --wakeup"),
        ("--off-wake -C 0", "on no CPU"),
        ("--off-wake --locks", "record twice"),
        ("--off-wake -e sched:sched_switch", "-e does not go with"),
        ("--off-wake --wakeup", "keep one of them"),
        ("--wakeup --off-cpu", "keep one of them"),
        ("--off-wake --wall", "record twice"),
        ("--off-wake --off-cpu-output a.svg", "record twice"),
    ]);
}

#[test]
fn off_cpu_time_can_be_recorded_beside_samples() {
    let plan_beside = plan("-o on.svg --off-cpu-output off.folded -m 10 -F 997");
    let [samples, beside] = &plan_beside.events[..] else {
        panic!("there are two events: {plan_beside:?}");
    };
    assert_eq!(samples.probe, Probe::OnCpu);
    assert_eq!(samples.outputs, [file("on.svg", Format::SVG)]);
    assert!(plan_beside.has_one_subject());
    assert_eq!(beside.outputs, [file("off.folded", Format::FOLDED)]);
    let waits = plan_beside.waits().expect("waits were asked for");
    assert_eq!(waits.shortest, Duration::from_micros(10));
    assert_eq!(beside.probe.waits(), Some(waits));
    assert_eq!(plan_beside.all_outputs().count(), 2);
    let estimated = plan("--off-cpu-output off.svg --switch-sample 2ms");
    let waits = estimated.waits().expect("waits were asked for");
    assert_eq!(waits.wait_sample_period, Duration::from_millis(2));
    // A graph that is drawn may be given a look, whichever it is.
    plan("-f --off-cpu-output off.svg --width 800");
    assert_refused(&[
        (
            "-o a.svg --off-cpu-output ./a.svg",
            "also the output of the samples",
        ),
        ("-f --off-cpu-output -", "also the output of the samples"),
        (
            "--off-cpu-output a.svg --off-cpu-output a.svg",
            "--off-cpu-output a.svg is given twice",
        ),
        ("--off-cpu-output a.svg -C 1", "-C does not go with"),
        ("--off-cpu-output a.svg --per-cpu", "on no CPU"),
        (
            "--off-cpu-output a.svg -U --reasons",
            "--reasons needs kernel stacks",
        ),
    ]);
}

#[test]
fn what_has_a_rate_or_waits_has_a_budget() {
    for line in [
        "-F 999",
        "--off-cpu",
        "--off-wake",
        "--wakeup",
        "--off-cpu-output off.svg",
    ] {
        let plan = plan(&format!("{line} --max-overhead 1%"));
        assert!(plan.events.iter().all(|event| event.varies), "{line}");
        let has_waits = plan.waits().is_some();
        let varying = plan.events.iter().any(Event::has_varying_waits);
        assert_eq!(varying, has_waits, "{line}");
    }
    for (line, answer) in [
        ("--wall", "use --off-cpu-output"),
        ("--syscalls", "every one is recorded"),
        ("-e sched:sched_switch", "every one is recorded"),
    ] {
        let refusal = refusal(&format!("{line} --max-overhead 1%"));
        assert!(refusal.contains(answer), "{line}: {refusal}");
    }
}

#[test]
fn wall_time_excludes_flags_that_drop_time() {
    let wall = |line| match event(line).probe {
        Probe::Wall(wall) => wall,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(wall("--wall -F 499").waits, Waits::default());
    assert!(wall("--wall -U -e cycles").idle_threads);
    let narrow = wall("--wall --no-idle-threads --reasons");
    assert!(!narrow.idle_threads && narrow.waits.reasons);
    assert_refused(&[
        ("--wall -m 5", "use --off-cpu with -m"),
        ("--wall --switch-sample 1ms", "leaves out some of the time"),
        ("--switch-sample 1ms", "add --off-cpu"),
        ("--wall --user-threads-only", "leaves out some of the time"),
        ("--wall -K", "leave out -K"),
        ("--wall -C 0", "on no CPU"),
        ("--wall -e page-faults", "a clock or cycles"),
        ("--wall --context-switches", "a clock or cycles"),
        ("--wall -e sched:sched_switch", "a clock or cycles"),
    ]);
}

#[test]
fn a_tracepoint_is_a_probe_and_short_names_are_events() {
    let Probe::Tracepoint(tracepoint) = event("-e sched:sched_wakeup").probe else {
        panic!("it is a tracepoint");
    };
    assert_eq!(tracepoint.to_string(), "sched:sched_wakeup");
    for (line, name) in [
        ("--page-faults", "page-faults"),
        ("--context-switches", "context-switches"),
    ] {
        let PerfEventChoice::Named(perf_event) = event(line).perf_event else {
            panic!("{line} is an event");
        };
        assert_eq!(
            (&*perf_event.name, event(line).sampling),
            (name, Sampling::Period(1))
        );
    }
    assert_refused(&[
        ("-e sched:sched_wakeup -F 99", "every passing"),
        ("-e sched:sched_wakeup -c 5", "every passing"),
        ("-e sched:sched_wakeup -C 0", "--per-cpu"),
    ]);
}

#[test]
fn a_call_flag_is_a_probe_with_a_title_and_a_unit() {
    for (line, subject, unit) in [
        ("-e uprobe:/usr/bin/bash:readline", "bash:readline", "calls"),
        ("--alloc -p 1", "memory asked for", "bytes"),
        ("--syscalls", "system calls", "calls"),
        ("--syscalls=latency", "time in system calls", "µs"),
        ("--io", "I/O time of files", "µs"),
        (
            "--io=bytes --io-kind pipes,sockets",
            "I/O bytes of sockets, pipes",
            "bytes",
        ),
        ("--io=count --io-kind all", "I/O operations", "operations"),
        ("--locks", "waiting for locks", "µs"),
        ("--locks=user", "waiting for user locks", "µs"),
        ("--locks=kernel", "waiting for kernel locks", "µs"),
    ] {
        let probe = event(line).probe;
        let of = probe.unit().expect("the probe decides");
        assert_eq!(
            (probe.subject().as_deref(), of.noun()),
            (Some(subject), unit),
            "{line}"
        );
    }
    assert_refused(&[
        ("--io --alloc", "record twice"),
        ("--locks --off-cpu", "record twice"),
        ("--syscalls --page-faults", "record twice"),
        ("--alloc -K -p 1", "leave out -K"),
        ("-e uprobe:libc:malloc -K", "leave out -K"),
        ("--io-kind pipes", "add --io"),
        ("--syscalls -c 5", "leave out -F and -c"),
        ("--locks -C 0", "--per-cpu"),
    ]);
}
