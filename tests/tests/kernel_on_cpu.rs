//! On-CPU profiles of programs whose truth is known: shares, call chains, both kinds of
//! frames, depth.

use std::path::Path;
use std::time::SystemTime;

use flame_bpf_tests::{
    Folded, Invocation, Mangling, NEARLY_ALL, Program, Run, Stack, allowed_cpus, assert_near,
    file_contains, kernel_test, require, thread_cpu_ns,
};
use rustix::process::Signal;

/// How far a share may be from the truth. With the thousands of samples taken here, chance alone
/// stays well within.
const TOLERANCE: f64 = 0.02;

fn record(flags: &str, pid: u32) -> Run {
    Invocation::new(flags).flag("-p", pid).run().expect_code(0)
}

#[kernel_test]
fn shares_are_as_measured_and_chains_complete() {
    let workload = Program::c("shares").start(&[]);
    let folded = Invocation::new("-f -F 1997")
        .run_for_cpu_time(&workload, 3.0)
        .folded();

    folded.assert_shares(&workload.stop().shares(), TOLERANCE);
    assert!(
        folded.stacks.iter().all(|stack| stack.root() == "shares"),
        "{folded}"
    );
    for chain in [
        &["main", "work_round", "alpha", "alpha_inner", "burn"][..],
        &["main", "work_round", "beta", "burn"],
        &[
            "main",
            "work_round",
            "gamma_outer",
            "gamma_inner",
            "gamma_leaf",
            "burn",
        ],
        &["main", "work_round", "delta", "burn"],
    ] {
        let whole = folded.share_among(|stack| stack.has(chain[2]), |stack| stack.has_chain(chain));
        // A sample at a function's first or last instruction lacks its caller by frame pointers.
        assert!(whole > 0.97, "{chain:?} is whole in {whole:.3} of {folded}");
    }
}

#[kernel_test]
fn shares_are_as_measured_at_a_fixed_period() {
    let workload = Program::c("shares").start(&[]);
    let folded = Invocation::new("-f -e cpu-clock -c 500009")
        .run_for_cpu_time(&workload, 3.0)
        .folded();
    folded.assert_shares(&workload.stop().shares(), TOLERANCE);
}

fn rust_threads(mangling: Mangling) {
    let workload = Program::rust("threads", mangling).start(&[]);
    let tids = workload.words().to_vec();
    let used = || {
        tids.iter()
            .map(|tid| thread_cpu_ns(tid))
            .collect::<Vec<_>>()
    };
    let mut running = Invocation::new("-f -F 997 --per-thread")
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    let before = used();
    let enough = before.iter().sum::<u64>() + 4_000_000_000;
    running.wait_for(|_| used().iter().sum::<u64>() >= enough);
    let after = used();
    running.signal(Signal::INT);
    let folded = running.finish().expect_code(0).folded();
    let spent: Vec<f64> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| (after - before) as f64)
        .collect();
    let total: f64 = spent.iter().sum();

    let threads = [
        ("alpha-thread", "threads::alpha::checksum"),
        ("beta-thread", "<threads::Beta as threads::Churn>::churn"),
        ("gamma-thread", "threads::generic_grind"),
    ];
    for ((comm, function), ns) in threads.iter().zip(&spent) {
        let runs = |stack: &Stack| {
            stack
                .frames
                .windows(2)
                .any(|pair| pair[0].starts_with(function) && pair[1] == "threads::turn_over")
        };
        let own = folded.share_among(|stack| stack.thread() == *comm, runs);
        // A thread also starts, and asks the clock how long it has been running.
        assert!(
            own > 0.8,
            "{comm} is seen in {function} in {own:.3} of {folded}"
        );
        assert!(
            !folded.any(|stack| stack.thread() != *comm && runs(stack)),
            "{function} runs in {comm} alone, but not in {folded}"
        );
        // Wider than for one thread: what was measured is not the very span that was recorded.
        let (truth, seen) = (ns / total, folded.share(|stack| stack.thread() == *comm));
        assert_near(comm, seen, truth, 0.05, &folded);
    }
    let mangled = |frame: &String| {
        let hash = frame.rsplit_once("::h").is_some_and(|(_, hash)| {
            hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        hash || frame.starts_with("_ZN") || frame.starts_with("_R")
    };
    assert!(
        !folded.any(|stack| stack.frames.iter().any(mangled)),
        "mangled names in {folded}"
    );
}

#[kernel_test(timing)]
fn rust_threads_have_their_own_stacks_with_default_mangling() {
    rust_threads(Mangling::Default);
}

#[kernel_test(timing)]
fn rust_threads_have_their_own_stacks_with_v0_mangling() {
    rust_threads(Mangling::V0);
}

/// The first frame that contains `part`, counted from the root.
fn position(stack: &Stack, part: &str) -> Option<usize> {
    stack.frames.iter().position(|frame| frame.contains(part))
}

#[kernel_test]
fn kernel_frames_stand_above_their_user_callers() {
    let workload = Program::c("pipe").start(&[]);
    let folded = Invocation::new("-f -F 997 -d 2 --annotate")
        .flag("-p", format!("{},{}", workload.pid(), workload.words()[0]))
        .run()
        .expect_code(0)
        .folded();
    for (caller, callee) in [
        ("write_messages", "pipe_write"),
        ("read_messages", "pipe_read"),
    ] {
        let under = |stack: &Stack| {
            let (Some(user), Some(kernel)) = (stack.position(caller), position(stack, callee))
            else {
                return false;
            };
            user < kernel && stack.frames[kernel].ends_with("_[k]")
        };
        let share = folded.share_among(|stack| stack.has(caller), under);
        // The rest is the way into the kernel, and other functions of it.
        assert!(
            share > 0.3,
            "{callee} under {caller}: {share:.3} of {folded}"
        );
    }
    for stack in &folded.stacks {
        let kernel: Vec<bool> = stack
            .frames
            .iter()
            .map(|frame| frame.ends_with("_[k]"))
            .collect();
        assert!(
            kernel.is_sorted(),
            "user frames below kernel frames in {:?}",
            stack.frames
        );
    }
}

#[kernel_test]
fn user_stacks_only_drops_kernel_frames() {
    let workload = Program::c("pipe").start(&[]);
    let folded = record("-f -U -F 997 -d 1 --annotate", workload.pid()).folded();
    assert!(
        folded.share(|stack| stack.has("write_messages")) > NEARLY_ALL,
        "{folded}"
    );
    assert!(!folded.any(|stack| stack.mentions("_[k]")), "{folded}");
}

#[kernel_test]
fn kernel_stacks_only_drops_user_frames() {
    let workload = Program::c("pipe").start(&[]);
    let folded = record("-f -K -F 997 -d 1 --annotate", workload.pid()).folded();
    // Each of the two processes writes half of its time, and the scheduler takes most of that.
    assert!(
        folded.share(|stack| position(stack, "pipe_write").is_some()) > 0.05,
        "{folded}"
    );
    for stack in &folded.stacks {
        assert_eq!(stack.root(), "pipe");
        assert!(
            stack.frames[1..]
                .iter()
                .all(|frame| frame.ends_with("_[k]")),
            "user frames in {:?}",
            stack.frames
        );
    }
}

#[kernel_test]
fn the_delimiter_stands_between_user_and_kernel_frames() {
    let workload = Program::c("pipe").start(&[]);
    let folded = record("-f -F 997 -d 1 --annotate --delimited", workload.pid()).folded();
    let both = |stack: &Stack| stack.has("write_messages") && stack.mentions("_[k]");
    assert!(folded.any(both), "{folded}");
    for stack in folded.only(both) {
        let delimiters = stack.frames.iter().filter(|frame| *frame == "-").count();
        let place = stack.position("-");
        let first_kernel = stack
            .frames
            .iter()
            .position(|frame| frame.ends_with("_[k]"));
        assert_eq!(delimiters, 1, "{:?}", stack.frames);
        assert_eq!(
            place.map(|place| place + 1),
            first_kernel,
            "{:?}",
            stack.frames
        );
    }
    let plain = record("-f -F 997 -d 1", workload.pid()).folded();
    assert!(
        !plain.any(|stack| stack.has("-") || stack.mentions("_[k]")),
        "{plain}"
    );
}

/// The heaviest stack among those in which `deep` burns at its bottom.
fn deep_stack(depth: usize) -> Stack {
    let workload = Program::c("deep").start(&[&depth.to_string()]);
    let folded = record("-f -F 997 -d 1", workload.pid()).folded();
    let burning = Folded {
        stacks: folded.only(|stack| stack.has("bottom")).cloned().collect(),
    };
    assert!(burning.total() * 10 > folded.total() * 9, "{folded}");
    burning.heaviest().clone()
}

fn steps(count: usize) -> Vec<String> {
    (0..count)
        .map(|step| format!("step_{}", step % 16))
        .collect()
}

#[kernel_test]
fn deep_stacks_are_complete_and_in_order() {
    for depth in [1, 100, 500, 1000] {
        let stack = deep_stack(depth);
        let mut chain = vec!["main".to_owned()];
        chain.extend(steps(depth));
        chain.extend(["bottom".to_owned(), "burn".to_owned()]);
        let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
        assert!(
            stack.has_chain(&chain),
            "at depth {depth}: {:?}",
            stack.frames
        );
        assert!(
            !stack.has("[truncated]"),
            "at depth {depth}: {:?}",
            stack.frames
        );
    }
}

#[kernel_test]
fn a_stack_beyond_the_limit_is_marked_truncated_and_keeps_its_leaves() {
    let stack = deep_stack(2000);
    assert_eq!(stack.root(), "deep");
    assert_eq!(stack.frames[1], "[truncated]", "{:?}", stack.frames);
    let bottom = stack
        .position("bottom")
        .expect("only such stacks were chosen");
    let kept = &stack.frames[2..bottom];
    // `bottom` and `burn` are user frames too.
    assert!(
        kept.len() + 2 >= 1024,
        "{} frames were kept",
        kept.len() + 2
    );
    let all = steps(2000);
    assert_eq!(kept, &all[all.len() - kept.len()..]);
    assert_eq!(stack.frames[bottom + 1], "burn");
}

#[kernel_test]
fn page_faults_can_be_sampled() {
    let workload = Program::c("faults").start(&[]);
    let run = record("-f -e page-faults -d 1", workload.pid()).expect_stderr("page-faults");
    let folded = run.folded();
    assert!(
        folded.share(|stack| stack.has_chain(&["main", "touch_pages"])) > NEARLY_ALL,
        "{folded}"
    );
}

#[kernel_test]
fn the_summary_names_the_sampled_event() {
    let workload = Program::c("shares").start(&[]);
    let run = record("-f -d 1", workload.pid());
    // Without a core PMU there is nothing that counts cycles.
    let counts_cycles = ["cpu", "cpu_core", "armv8_pmuv3_0"].iter().any(|pmu| {
        Path::new("/sys/bus/event_source/devices")
            .join(pmu)
            .exists()
    });
    if counts_cycles {
        run.expect_any_stderr(&["cycles", "cpu-clock"]);
    } else {
        run.expect_stderr("cpu-clock");
    }
}

#[kernel_test]
fn time_in_the_vdso_is_named() {
    require!(file_contains(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        // The others are read by a system call, and the vDSO only passes the question on.
        &["tsc", "kvm-clock", "arch_sys_counter"]
    ));
    let workload = Program::c("clock").start(&[]);
    let folded = record("-f -F 997 -d 1", workload.pid()).folded();
    let share = folded.share(|stack| stack.mentions("vdso"));
    // It asks for the time and does nothing else; the caller takes some of it.
    assert!(share > 0.2, "the vDSO has {share:.3} of {folded}");
}

/// The kernel's account of softirqs from the first to the last of a workload's lines in a span of time, as a share.
fn softirq_share(lines: &[String], span: std::ops::Range<u128>) -> f64 {
    let numbers = lines.iter().filter_map(|line| {
        let mut words = line.strip_prefix("softirq ")?.split(' ');
        let mut next = || words.next()?.parse::<u128>().ok();
        Some((next()?, next()?, next()?))
    });
    let told: Vec<_> = numbers.filter(|(now, ..)| span.contains(now)).collect();
    let (Some(first), Some(last)) = (told.first(), told.last()) else {
        panic!("nothing was said meanwhile: {lines:?}");
    };
    (last.1 - first.1) as f64 / (last.2 - first.2) as f64
}

#[kernel_test(timing)]
fn softirqs_are_seen_where_the_kernel_counts_some_also_on_idle_cpus() {
    require!(allowed_cpus(2));
    let workload = Program::c("packets").start(&[]);
    let is_steered = workload.words() == ["steered"];
    let mut running = Invocation::new("-f -v -F 997 -a -d 10").start();
    running.wait_until_attached();
    let now = || SystemTime::UNIX_EPOCH.elapsed().expect("a time").as_nanos();
    let began = now();
    let run = running.finish().expect_code(0);
    let lines = workload.stop().lines;
    let truth = softirq_share(&lines, began..began + 10_000_000_000);

    let folded = run.folded();
    const SERVING: [&str; 3] = [
        "handle_softirqs",
        "__do_softirq",
        "__softirqentry_text_start",
    ];
    let is_served = |stack: &Stack| {
        // A sample in that function itself was due in the interrupt before, which kept others off.
        let is_late = SERVING.contains(&stack.leaf()) && stack.has_interrupt();
        !is_late && SERVING.iter().any(|name| stack.has(name))
    };
    let balance = run.balance();
    let idle = balance.filtered.get("filtered-idle").copied().unwrap_or(0);
    // All that a clock fired, on idle CPUs, too.
    let all = (folded.total() + idle) as f64;
    let share = folded.weight(is_served) as f64 / all;
    assert!(truth > 0.01, "{lines:?}");
    // The kernel's account is of ticks, which fall together with what they cause: it says whether there were any, not how many.
    assert!(
        share > 0.01,
        "{share:.3} is shown, {truth:.3} is the kernel's: {folded}"
    );

    let is_idle = |stack: &Stack| stack.root() == "swapper";
    assert!(
        !folded.any(|stack| is_idle(stack) && !stack.has_interrupt()),
        "{folded}"
    );
    // Where others keep the CPUs busy, there is no idle one.
    if is_steered && idle as f64 > 0.2 * all {
        assert!(
            folded.any(|stack| is_idle(stack) && is_served(stack)),
            "{folded}"
        );
    }
}
