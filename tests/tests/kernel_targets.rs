//! Targets: processes, threads, CPUs, the whole machine, and the labels of their samples.

use std::process::Child;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, Program, Stack, allowed_cpus, kernel_test, require,
    thread_cpu_ns, tool,
};
use rustix::process::{Pid, Signal, kill_process};

/// The number in a label such as `[tid 12]`.
fn label(frame: &str, word: &str) -> Option<u32> {
    let inside = frame.strip_prefix('[')?.strip_suffix(']')?;
    inside.strip_prefix(word)?.strip_prefix(' ')?.parse().ok()
}

fn record(invocation: Invocation) -> Folded {
    invocation.run().expect_code(0).folded()
}

#[kernel_test]
fn two_processes_are_shown_in_proportion_to_their_cpu_time() {
    let spin = Program::c("spin");
    let (a, b) = (
        spin.start(&["worker_a=3000/0"]),
        spin.start(&["worker_b=1000/4000"]),
    );
    let bystander = spin.start(&["bystander=1000/1000"]);
    let before = (a.cpu_ns(), b.cpu_ns());
    let folded =
        record(Invocation::new("-f -F 997 -d 4").flag("-p", format!("{},{}", a.pid(), b.pid())));
    let (spent_a, spent_b) = (a.cpu_ns() - before.0, b.cpu_ns() - before.1);
    let truth = spent_a as f64 / (spent_a + spent_b) as f64;
    let seen = folded.share(|stack| stack.root() == "worker_a");
    // The CPU time was measured outside the recording, over a span that is not quite the same.
    assert!(
        (seen - truth).abs() < 0.05,
        "{truth:.3} is shown as {seen:.3} in {folded}"
    );
    assert!(
        folded
            .stacks
            .iter()
            .all(|stack| ["worker_a", "worker_b", "spin"].contains(&stack.root())),
        "somebody else is in {folded}"
    );
    drop(bystander);
}

#[kernel_test]
fn all_threads_of_a_process_are_sampled() {
    let workload = Program::c("spin").start(&["one=1000/500", "two=1000/500", "three=1000/500"]);
    let folded = record(Invocation::new("-f -F 997 -d 1 --per-thread").flag("-p", workload.pid()));
    for name in ["one", "two", "three"] {
        assert!(
            folded.any(|stack| stack.thread() == name),
            "{name} is not in {folded}"
        );
    }
    let towers = record(Invocation::new("-f -F 997 -d 1").flag("-p", workload.pid()));
    assert!(
        towers.stacks.iter().all(|stack| stack.root() == "one"),
        "threads have towers of their own: {towers}"
    );
}

/// A shell that ends its children before it ends itself, as a test that fails has it do as well.
struct Parent(Child);

impl Drop for Parent {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let _has_ended = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _is_reaped = self.0.wait();
    }
}

/// A shell that waits for a shell that counts, and starts another after half a second.
#[kernel_test]
fn children_are_sampled_if_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (parent, child) = (
        folder.path().join("the-parent"),
        folder.path().join("the-child"),
    );
    for copy in [&parent, &child] {
        std::fs::copy("/bin/sh", copy).expect("the shell can be copied");
    }
    let counts = format!("{} -c 'i=0; while :; do i=$((i+1)); done'", child.display());
    let script = format!(
        "trap 'kill $one $two; exit' TERM; {counts} & one=$!; sleep 0.5; {counts} & two=$!; wait"
    );
    let shell = std::process::Command::new(&parent)
        .args(["-c", &script])
        .spawn();
    let shell = Parent(shell.expect("the shell runs"));
    let is_child = |stack: &Stack| stack.root() == "the-child";
    let with = record(Invocation::new("-f -F 997 -d 1 --children").flag("-p", shell.0.id()));
    let by_name = record(Invocation::new("-f -F 997 -d 1 -n the-(parent|child)"));
    let by_file = record(Invocation::new("-f -F 997 -d 1").path("--exe", &child));
    let alone = Invocation::new("-f -F 997 -d 1")
        .flag("-p", shell.0.id())
        .run();
    drop(shell);
    for folded in [&with, &by_name, &by_file] {
        assert!(folded.share(is_child) > NEARLY_ALL, "{folded}");
    }
    alone.expect_code(1).expect_stderr("or with its --children");
}

// Another one is a program as others are.
#[kernel_test(alone)]
fn flame_bpf_itself_is_one_frame_unless_asked_for() {
    let frames = |flags: &str| -> usize {
        let folded = record(Invocation::new(flags));
        let own = folded.only(|stack| stack.root() == "flame-bpf");
        let own = own.map(|stack| stack.frames.len());
        own.max().expect("the profiler waits for its end")
    };
    // Waits: it always has some.
    assert_eq!(frames("-f -a --off-cpu -d 1 --state S"), 1);
    // It runs for some milliseconds, which a sample may miss.
    let reports = || {
        Invocation::new("--report -a -F 4999 -d 1")
            .run()
            .expect_code(0)
    };
    let seen = std::iter::repeat_with(reports)
        .take(10)
        .find(|run| String::from_utf8_lossy(&run.stdout).contains("flame-bpf itself "));
    let report = seen.expect("one of ten recordings meets it");
    let report = report.expect_stderr("% of all recorded, ");
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(!report.contains("[no stack]"), "{report}");
    assert!(frames("-f -a --off-cpu -d 1 --state S --include-self") > 2);
}

#[kernel_test]
fn of_several_processes_one_may_have_ended() {
    let workload = Program::c("spin").start(&["worker=1000/0"]);
    let mut ended = std::process::Command::new("/bin/true")
        .spawn()
        .expect("it runs");
    let gone = ended.id();
    ended.wait().expect("it can be waited for");
    let run = Invocation::new("-f -F 997 -d 1")
        .flag("-p", format!("{gone},{}", workload.pid()))
        .run()
        .expect_code(0)
        .expect_stderr(&format!(
            "note: {gone} had ended before the recording began"
        ));
    assert!(run.folded().any(|stack| stack.root() == "worker"));
}

#[kernel_test]
fn a_single_thread_can_be_sampled() {
    let workload = Program::c("spin").start(&["wanted=1000/0", "unwanted=1000/0"]);
    let wanted = &workload.words()[0];
    let folded = record(Invocation::new("-f -F 997 -d 1 --per-thread").flag("-t", wanted));
    assert!(
        folded.share(|stack| stack.has("spin_thread")) > NEARLY_ALL,
        "{folded}"
    );
    assert!(
        folded.stacks.iter().all(|stack| stack.thread() == "wanted"),
        "{folded}"
    );
}

#[kernel_test]
fn several_threads_can_be_sampled() {
    let workload = Program::c("spin").start(&["one=1000/1000", "two=1000/1000", "not=1000/1000"]);
    let tids = workload.words()[..2].join(",");
    let folded = record(Invocation::new("-f -F 997 -d 1 --per-thread").flag("--tid", tids));
    for name in ["one", "two"] {
        assert!(
            folded.any(|stack| stack.thread() == name),
            "{name} is not in {folded}"
        );
    }
    assert!(!folded.any(|stack| stack.thread() == "not"), "{folded}");
}

#[kernel_test]
fn only_the_listed_cpus_are_sampled() {
    let cpus = require!(allowed_cpus(2));
    let shares = Program::c("shares");
    let (inside, outside) = (shares.named("inside"), shares.named("outside"));
    let (_inside, _outside) = (
        inside.start_on(cpus[0], &[]),
        outside.start_on(cpus[1], &[]),
    );
    let folded = record(Invocation::new("-f -a -F 997 -d 1 --per-cpu").flag("-C", cpus[0]));
    assert!(folded.any(|stack| stack.frames[1] == "inside"), "{folded}");
    assert!(
        !folded.any(|stack| stack.frames[1] == "outside"),
        "{folded}"
    );
    assert!(
        folded
            .stacks
            .iter()
            .all(|stack| label(stack.root(), "cpu") == Some(cpus[0] as u32)),
        "{folded}"
    );
}

#[kernel_test]
fn a_cpu_list_filters_the_samples_of_a_process() {
    let cpus = require!(allowed_cpus(2));
    let workload = Program::c("shares").start_on(cpus[1], &[]);
    let on = |cpu: usize| {
        Invocation::new("-f -F 997 -d 1")
            .flag("-p", workload.pid())
            .flag("-C", cpu)
            .run()
            .expect_no_panic()
            .folded()
    };
    assert!(on(cpus[1]).any(|stack| stack.has("alpha")));
    assert_eq!(on(cpus[0]).total(), 0);
}

#[kernel_test]
fn no_target_means_the_whole_machine() {
    let shares = Program::c("shares");
    let (_one, _two) = (
        shares.named("first_one").start(&[]),
        shares.named("other_one").start(&[]),
    );
    for flags in ["-f -F 997 -d 1", "-f -F 997 -d 1 -a", "-f -F 997 --all 1"] {
        let folded = record(Invocation::new(flags));
        for name in ["first_one", "other_one"] {
            let seen = folded.any(|stack| stack.root() == name && stack.has("alpha"));
            assert!(seen, "{name} is not in {folded}");
        }
    }
}

#[kernel_test]
fn a_number_alone_is_a_duration() {
    let workload = Program::c("shares").start(&[]);
    // That this ends at all is the point: the workload does not.
    let folded = record(
        Invocation::new("-f -F 997")
            .flag("-p", workload.pid())
            .arg(1),
    );
    assert!(folded.any(|stack| stack.has("alpha")), "{folded}");
}

#[kernel_test]
fn threads_are_labelled_only_when_asked_for() {
    let workload = Program::c("spin").start(&["twin=2000/0", "twin=500/2000"]);
    let tids: Vec<u32> = workload
        .words()
        .iter()
        .map(|tid| tid.parse().expect("the workload prints numbers"))
        .collect();
    let used = || {
        tids.iter()
            .map(|tid| thread_cpu_ns(&tid.to_string()))
            .collect::<Vec<_>>()
    };

    let before = used();
    let folded = record(Invocation::new("-f -F 997 -d 3 --per-thread").flag("-p", workload.pid()));
    let after = used();
    let of = |stack: &Stack| label(&stack.frames[1], "tid");
    assert!(
        folded.stacks.iter().all(|stack| of(stack).is_some()),
        "{folded}"
    );
    let spent: Vec<u64> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before)
        .collect();
    let truth = spent[0] as f64 / (spent[0] + spent[1]) as f64;
    let seen = folded.share_among(
        |stack| stack.root() == "twin",
        |stack| of(stack) == Some(tids[0]),
    );
    assert!(
        (seen - truth).abs() < 0.05,
        "{truth:.3} is shown as {seen:.3} in {folded}"
    );

    let plain = record(Invocation::new("-f -F 997 -d 1").flag("-p", workload.pid()));
    let labelled = |stack: &Stack| {
        stack
            .frames
            .iter()
            .any(|frame| label(frame, "tid").is_some())
    };
    assert!(!plain.any(labelled), "{plain}");
}

#[kernel_test]
fn cpus_are_labelled_only_when_asked_for() {
    let cpus = require!(allowed_cpus(2));
    let shares = Program::c("shares");
    let (first, second) = (shares.named("on_first"), shares.named("on_second"));
    let (first, second) = (first.start_on(cpus[0], &[]), second.start_on(cpus[1], &[]));
    let pids = format!("{},{}", first.pid(), second.pid());

    let labelled = Invocation::new("-f -F 997 -d 1 --per-cpu --per-thread").flag("-p", &pids);
    let folded = record(labelled);
    for (name, cpu, pid) in [
        ("on_first", cpus[0], first.pid()),
        ("on_second", cpus[1], second.pid()),
    ] {
        assert!(folded.any(|stack| stack.frames[1] == name), "{folded}");
        for stack in folded.only(|stack| stack.has(name)) {
            assert_eq!(label(&stack.frames[0], "cpu"), Some(cpu as u32), "{folded}");
            assert_eq!(stack.frames[1], name, "{folded}");
            assert_eq!(label(&stack.frames[2], "tid"), Some(pid), "{folded}");
        }
    }
    let plain = record(Invocation::new("-f -F 997 -d 1").flag("-p", &pids));
    let any = |stack: &Stack| {
        stack
            .frames
            .iter()
            .any(|frame| label(frame, "cpu").is_some())
    };
    assert!(!plain.any(any), "{plain}");
}

// Beside others no CPU is idle for long.
#[kernel_test(alone)]
fn idle_cpus_are_counted_and_shown_only_when_asked_for() {
    // Interrupts of idle CPUs are work.
    let idle = |stack: &Stack| stack.mentions("swapper") && !stack.has_interrupt();
    let run = Invocation::new("-v -f -a -F 997 -d 1 -e cpu-clock")
        .run()
        .expect_code(0);
    assert!(!run.folded().any(idle), "{}", run.folded());
    let counted = run.balance().filtered.get("filtered-idle").copied();
    require!(match counted {
        Some(0) => Err("no idle CPU fired here".to_owned()),
        Some(_) => Ok(()),
        None => panic!("idle firings are not counted:\n{}", run.stderr),
    });
    // A CPU that was idle a moment ago may be busy now.
    let shown = (0..5).any(|_| {
        let run = Invocation::new("-v -f -a -F 997 -d 1 -e cpu-clock -I")
            .run()
            .expect_code(0);
        let filtered = run.balance().filtered.get("filtered-idle").copied();
        assert_eq!(filtered.unwrap_or(0), 0, "idle firings left out with -I");
        run.folded().any(idle)
    });
    assert!(shown, "idle CPUs fired and are not shown with -I");
}

/// Runs a script as the first process of a new PID namespace with its own /proc.
fn in_pid_namespace(script: &str) -> Folded {
    let output = std::process::Command::new("unshare")
        .args([
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            script,
        ])
        .output()
        .expect("unshare was asked for");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{script}` failed:\n{stderr}");
    Folded::parse(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{stderr}"))
}

#[kernel_test]
fn pids_are_those_of_the_users_namespace() {
    require!(tool("unshare"));
    let shares = Program::c("shares");
    let bystander = shares.named("bystander").start(&[]);
    for flags in ["-p", "-t"] {
        let folded = in_pid_namespace(&format!(
            "{} >/dev/null & {} $!; exit $?",
            shares.path().display(),
            Invocation::new("-f -F 997 -d 2").arg(flags).shell()
        ));
        assert!(
            folded.share(|stack| stack.has_chain(&["main", "work_round"])) > NEARLY_ALL,
            "{folded}"
        );
        assert!(
            folded.stacks.iter().all(|stack| stack.root() == "shares"),
            "{folded}"
        );
    }
    drop(bystander);
}

#[kernel_test]
fn labels_are_those_of_the_users_namespace() {
    require!(tool("unshare"));
    let folded = in_pid_namespace(&format!(
        "{} >/dev/null & {} $!; exit $?",
        Program::c("shares").path().display(),
        Invocation::new("-f -F 997 -d 1 --per-thread -p").shell()
    ));
    // The shell is 1, and started no more than the workload and flame-bpf.
    assert!(folded.any(|stack| stack.has("alpha")), "{folded}");
    for stack in &folded.stacks {
        let tid = label(&stack.frames[1], "tid");
        assert!(tid.is_some_and(|tid| tid < 100), "{:?}", stack.frames);
    }
}
