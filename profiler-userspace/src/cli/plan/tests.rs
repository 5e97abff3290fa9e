use super::*;
use crate::output::{MinWidth, Palette};
use crate::plan::{CallGraph, Event};
use crate::probe::{Probe, ThreadKind, Waits};
use clap::Parser as _;
use profiler_common::abi::TaskState;

fn plan_for(line: &str, stdout_is_terminal: bool) -> Result<Plan> {
    let words = std::iter::once("flame-bpf").chain(line.split_whitespace());
    let args = Args::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
    build(args, stdout_is_terminal)
}

/// The plan for a command line typed at a terminal.
#[track_caller]
fn plan(line: &str) -> Plan {
    plan_for(line, true).unwrap_or_else(|error| panic!("{line}: {error:#}"))
}

#[track_caller]
fn refusal(line: &str) -> String {
    match plan_for(line, true) {
        Ok(plan) => panic!("{line} is accepted: {plan:?}"),
        Err(error) => format!("{error:#}"),
    }
}

fn words(words: &[&str]) -> Option<Vec<OsString>> {
    Some(words.iter().map(OsString::from).collect())
}

fn file(path: &str, format: Format) -> Output {
    Output::File {
        path: path.into(),
        format,
    }
}

#[test]
fn nothing_said_is_the_whole_machine_until_ctrl_c() {
    let expected = Plan {
        target: Target::All,
        launch: None,
        cpus: None,
        probe: Probe::OnCpu,
        beside: None,
        event: EventChoice::Auto,
        sampling: Sampling::Frequency(99),
        duration: None,
        capture: Capture {
            user_stacks: true,
            call_graph: CallGraph::Auto,
            kernel_stacks: true,
            include_idle: false,
            per_thread: false,
            per_cpu: false,
        },
        outputs: vec![file("flamegraph.svg", Format::Svg)],
        title: None,
        naming: Naming::default(),
        servers: Servers::default(),
        style: Style::default(),
        colors: None,
        verbosity: Verbosity {
            quiet: false,
            verbose: 0,
        },
        memory: MemoryLimits::default(),
    };
    assert_eq!(plan(""), expected);
    assert_eq!(plan("-a"), expected);
}

#[test]
fn targets() {
    assert_eq!(plan("-p 7").target, Target::Processes(vec![7]));
    assert_eq!(
        plan("-p 9,7 --pid 8 -p9").target,
        Target::Processes(vec![9, 7, 8]),
        "distinct, in order"
    );
    assert_eq!(
        plan("-t 9,7 -L 8 --tid=9").target,
        Target::Threads(vec![9, 7, 8])
    );
    assert_eq!(plan("-C 8,0-2").cpus, Some(vec![0, 1, 2, 8]));
    assert!(refusal("-a -p 7").contains("--annotate"));
    assert!(refusal("-a -t 7").contains("keep one"));
    assert!(refusal("-p 7 -t 7").contains("record twice"));
}

#[test]
fn a_command_is_the_target_unless_another_is_named() {
    let make = words(&["make", "-j8", "--", "-p"]);
    let launched = plan("-F 997 -- make -j8 -- -p");
    assert_eq!((launched.target, launched.launch), (Target::Launched, make));
    let clocked = plan("-a -- sleep 10");
    assert_eq!(
        (clocked.target, clocked.launch),
        (Target::All, words(&["sleep", "10"]))
    );
    let clocked = plan("-p 7 -- sleep 10");
    assert_eq!(
        (clocked.target, clocked.launch),
        (Target::Processes(vec![7]), words(&["sleep", "10"]))
    );
    let bounded = plan("5 -- sleep 10");
    assert_eq!(
        (bounded.target, bounded.duration),
        (Target::Launched, Some(Duration::from_secs(5)))
    );
}

#[test]
fn rates_and_periods() {
    assert_eq!(plan("-F 997").sampling, Sampling::Frequency(997));
    assert_eq!(plan("-c 1000000").sampling, Sampling::Period(1_000_000));
    assert_eq!(plan("-e cycles").sampling, Sampling::Frequency(99));
    assert_eq!(plan("-e page-faults").sampling, Sampling::Period(1));
    assert_eq!(
        plan("-e page-faults -F 99").sampling,
        Sampling::Frequency(99)
    );
    assert_eq!(plan("-e cs -c 10").sampling, Sampling::Period(10));
    assert_eq!(
        plan("-e cpu-clock").event,
        EventChoice::Named(Event::CPU_CLOCK)
    );
    assert!(refusal("-F 99 -c 10").contains("keep one"));
    assert!(refusal("-e cpu-clock -c 100").contains("-c 10000"));
    assert!(refusal("-e task-clock -F 200000").contains("-F 100000"));
}

#[test]
fn durations() {
    for line in ["10", "-d 10", "-d10", "10s", "-d 10s", "-p 7 10", "10 -p 7"] {
        assert_eq!(plan(line).duration, Some(Duration::from_secs(10)), "{line}");
    }
    assert!(refusal("10 -d 10").contains("twice"));
    assert!(refusal("10 20").contains("one duration"));
    assert!(refusal("-5").contains("negative"));
    assert!(refusal("0").contains("until Ctrl-C"));
}

#[test]
fn a_number_that_looks_like_a_pid_is_not_taken_for_hours() {
    assert_eq!(plan("-p 7 3600").duration, Some(Duration::from_secs(3600)));
    assert_eq!(
        plan("-p 7 -d 7200").duration,
        Some(Duration::from_secs(7200))
    );
    assert_eq!(plan("-p 7 2h").duration, Some(Duration::from_secs(7200)));
    // What the shell makes of `-p $(pgrep NAME)`.
    let two = refusal("-p 23456 23457");
    assert!(
        two.contains("-p 23457") && two.contains("-d 23457"),
        "{two}"
    );
    assert!(refusal("-p 23456 23457 23458").contains("pgrep -d,"));
    assert!(refusal("23456").contains("-p 23456"));
}

#[test]
fn captures() {
    let user = plan("-U").capture;
    assert!(user.user_stacks && !user.kernel_stacks);
    let kernel = plan("-K").capture;
    assert!(!kernel.user_stacks && kernel.kernel_stacks);
    let told_apart = plan("-I --per-thread --per-cpu").capture;
    assert!(told_apart.include_idle && told_apart.per_thread && told_apart.per_cpu);
    assert!(refusal("-UK").contains("leaves nothing"));
}

#[test]
fn outputs_are_what_was_named_or_what_suits_stdout() {
    let svg = file("a.svg", Format::Svg);
    let piped = |line| plan_for(line, false).unwrap().outputs;
    assert_eq!(piped(""), [Output::Stdout]);
    assert_eq!(piped("-o a.svg"), std::slice::from_ref(&svg));
    assert_eq!(plan("-f").outputs, [Output::Stdout]);
    assert_eq!(plan("-o -").outputs, [Output::Stdout]);
    assert_eq!(
        plan("-f -o -").outputs,
        [Output::Stdout],
        "one and the same"
    );
    assert_eq!(plan("-fo a.svg").outputs, [svg.clone(), Output::Stdout]);
    assert_eq!(
        plan("-o a.svg -o b.folded").outputs,
        [svg, file("b.folded", Format::Folded)]
    );
}

#[test]
fn a_name_in_dev_gets_text() {
    assert_eq!(
        plan("-o /dev/null").outputs,
        [file("/dev/null", Format::Folded)]
    );
}

#[test]
fn a_raw_recording_is_an_output_that_has_no_looks() {
    let archive = Output::Archive {
        path: "A.FBPF".into(),
    };
    assert_eq!(archive.format(), None);
    assert_eq!(plan("-o A.FBPF").outputs, std::slice::from_ref(&archive));
    let both = plan("-o A.FBPF -f --delimited");
    assert_eq!(both.outputs, [archive, Output::Stdout]);
    assert!(refusal("-o a.fbpf --title T").contains("flame-bpf render"));
    assert!(refusal("-o a.fbpf -o ./a.fbpf").contains("given twice"));
}

#[test]
fn outputs_that_cannot_be_meant() {
    for line in [
        "-o a.svg -o a.svg",
        "-o a.svg -o ./a.svg",
        "-o - -o -",
        "-o x/a.svg -o x/./a.svg",
    ] {
        assert!(refusal(line).contains("twice"), "{line}");
    }
    for line in ["-o perf.data", "-o out", "-o out.html"] {
        assert!(refusal(line).contains(".svg"), "{line}");
    }
}

#[test]
fn looks() {
    let plan = plan(
        "--title T --subtitle S --width 800 --height 20 --minwidth 0.5% --colors java --inverted --reverse \
         --delimited --annotate",
    );
    assert_eq!(plan.title.as_deref(), Some("T"));
    let expected = Style {
        subtitle: Some("S".to_owned()),
        width: Some(800),
        height: 20,
        minwidth: MinWidth::Percent(0.5),
        inverted: true,
        reverse: true,
        fold: FoldStyle {
            delimited: true,
            annotate: true,
        },
        ..Style::default()
    };
    assert_eq!(plan.style, expected);
    assert_eq!(plan.colors, Some("java".parse::<Palette>().unwrap()));
    assert!(refusal("--height 0").contains("pixels"));
    assert!(refusal("--width 1").contains("pixels"));
}

#[test]
fn looks_without_a_graph_are_refused() {
    for look in [
        "--title T",
        "--subtitle S",
        "--width 800",
        "--height 20",
        "--minwidth 1",
        "--colors java",
        "--inverted",
        "--reverse",
    ] {
        let flag = look.split(' ').next().unwrap();
        let error = plan_for(look, false).unwrap_err().to_string();
        assert!(
            error.starts_with(flag) && error.contains("-o flamegraph.svg"),
            "{look}: {error}"
        );
        assert!(
            plan_for(&format!("{look} -o a.svg"), false).is_ok(),
            "{look}"
        );
    }
    // These are about folded text as well.
    assert!(plan_for("--delimited --annotate", false).is_ok());
}

#[test]
fn running() {
    assert_eq!(
        plan("-q").verbosity,
        Verbosity {
            quiet: true,
            verbose: 0
        }
    );
    assert_eq!(
        plan("-vv").verbosity,
        Verbosity {
            quiet: false,
            verbose: 2
        }
    );
    assert_eq!(plan("--map-memory 64").memory.map_bytes, 64 << 20);
    assert_eq!(plan("--max-unwind-memory 8").memory.unwind_bytes, 8 << 20);
    assert!(refusal("-q -v").contains("keep one"));
}

#[test]
fn off_the_cpu_has_flags_of_its_own() {
    let waits = |line| match plan(line).probe {
        Probe::OffCpu(waits) => waits,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(waits("--off-cpu"), Waits::default());
    let narrow = waits("--off-cpu -m 1000 -M 2000000 --state SD --user-threads-only --reasons");
    assert_eq!(narrow.shortest, Duration::from_millis(1));
    assert_eq!(narrow.longest, Duration::from_secs(2));
    assert_eq!(narrow.threads, ThreadKind::User);
    assert!(narrow.reasons && narrow.states.has(TaskState::DiskSleep));
    for (line, answer) in [
        ("--reasons", "add --off-cpu"),
        ("-m 5", "add --off-cpu"),
        ("--off-cpu -F 99", "-F does not go with --off-cpu"),
        ("--off-cpu -e cycles", "-e does not go with --off-cpu"),
        ("--off-cpu --page-faults", "--page-faults does not go"),
        ("--off-cpu -C 0", "on no CPU"),
        ("--off-cpu -m 5 -M 4", "exchange them"),
        (
            "--off-cpu --user-threads-only --kernel-threads-only",
            "leave nothing",
        ),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(answer), "{line}: {refusal}");
    }
}

#[test]
fn waits_may_be_recorded_beside_samples() {
    let plan_beside = plan("-o on.svg --off-cpu-output off.folded -m 10 -F 997");
    assert_eq!(plan_beside.probe, Probe::OnCpu);
    assert_eq!(plan_beside.outputs, [file("on.svg", Format::Svg)]);
    let beside = plan_beside.beside.as_ref().expect("waits were asked for");
    assert_eq!(beside.outputs, [file("off.folded", Format::Folded)]);
    let waits = plan_beside.waits().expect("waits were asked for");
    assert_eq!(waits.shortest, Duration::from_micros(10));
    assert_eq!(beside.probe.waits(), Some(waits));
    assert_eq!(plan_beside.all_outputs().count(), 2);
    // A graph that is drawn may be given a look, whichever it is.
    plan("-f --off-cpu-output off.svg --width 800");
    for (line, answer) in [
        ("-o a.svg --off-cpu-output ./a.svg", "where the samples go"),
        ("-f --off-cpu-output -", "where the samples go"),
        (
            "--off-cpu-output a.svg --off-cpu-output a.svg",
            "--off-cpu-output a.svg is given twice",
        ),
        ("--off-cpu-output a.svg -C 1", "-C does not go with"),
        ("--off-cpu-output a.svg --per-cpu", "on no CPU"),
        ("--off-cpu-output a.svg -U --reasons", "--reasons are told"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(answer), "{line}: {refusal}");
    }
}

#[test]
fn wall_time_is_all_of_it() {
    let wall = |line| match plan(line).probe {
        Probe::Wall(wall) => wall,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(wall("--wall -F 499").waits, Waits::default());
    assert!(wall("--wall -U -e cycles").idle_threads);
    let narrow = wall("--wall --no-idle-threads --reasons");
    assert!(!narrow.idle_threads && narrow.waits.reasons);
    for (line, answer) in [
        ("--wall -m 5", "use --off-cpu with -m"),
        ("--wall --user-threads-only", "leaves out some of the time"),
        ("--wall -K", "leave out -K"),
        ("--wall -C 0", "on no CPU"),
        ("--wall -e page-faults", "a clock or cycles"),
        ("--wall --context-switches", "a clock or cycles"),
        ("--wall -e sched:sched_switch", "a clock or cycles"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(answer), "{line}: {refusal}");
    }
}

#[test]
fn a_tracepoint_is_a_probe_and_short_flags_are_events() {
    let Probe::Tracepoint(tracepoint) = plan("-e sched:sched_wakeup").probe else {
        panic!("it is a tracepoint");
    };
    assert_eq!(tracepoint.to_string(), "sched:sched_wakeup");
    for (line, name) in [
        ("--page-faults", "page-faults"),
        ("--context-switches", "context-switches"),
    ] {
        let EventChoice::Named(event) = plan(line).event else {
            panic!("{line} is an event");
        };
        assert_eq!(
            (&*event.name, plan(line).sampling),
            (name, Sampling::Period(1))
        );
    }
    for (line, answer) in [
        ("-e sched:sched_wakeup -F 99", "every passing"),
        ("-e sched:sched_wakeup -c 5", "every passing"),
        ("-e sched:sched_wakeup -C 0", "--per-cpu"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(answer), "{line}: {refusal}");
    }
}

#[test]
fn a_flag_of_calls_is_a_probe_with_a_title_and_a_unit() {
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
        ("--io=count --io-kind all", "I/O calls", "calls"),
        ("--locks", "waiting for locks", "µs"),
        ("--locks=user", "waiting for user locks", "µs"),
        ("--locks=kernel", "waiting for kernel locks", "µs"),
    ] {
        let probe = plan(line).probe;
        let of = probe.unit().expect("the probe decides");
        assert_eq!(
            (probe.subject().as_deref(), of.noun()),
            (Some(subject), unit),
            "{line}"
        );
    }
    for (line, answer) in [
        ("--io --alloc", "record twice"),
        ("--locks --off-cpu", "record twice"),
        ("--syscalls --page-faults", "record twice"),
        ("--alloc -K -p 1", "leave out -K"),
        ("-e uprobe:libc:malloc -K", "leave out -K"),
        ("--io-kind pipes", "add --io"),
        ("--syscalls -c 5", "leave out -F and -c"),
        ("--locks -C 0", "--per-cpu"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(answer), "{line}: {refusal}");
    }
}
