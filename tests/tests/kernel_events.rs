//! Several events, tracepoints and functions in one run: each is as true as it would be alone, and has an output and a
//! balance of its own.

use std::fs;
use std::thread;
use std::time::Duration;

use flame_bpf_tests::go_pprof::{has_pprof, pprof};
use flame_bpf_tests::{
    Folded, Invocation, Program, Run, Said, Stack, assert_whole_svg, kernel_test, require,
};
use tempfile::{TempDir, tempdir};

/// A recording of the workload `mixed` from before it does anything to its end.
struct Recorded {
    folder: TempDir,
    run: Run,
    said: Said,
}

impl Recorded {
    fn new(program: &Program, flags: &str, outputs: &[&str]) -> Self {
        let folder = tempdir().expect("a temporary folder can be made");
        let mut invocation = Invocation::new(flags).arg("-v");
        for output in outputs {
            invocation = match *output {
                "-" => invocation.flag("-o", "-"),
                file => invocation.path("-o", &folder.path().join(file)),
            };
        }
        let (run, said) = invocation.run_while_working(program.start(&[]));
        Self { folder, run, said }
    }

    /// How often the kernel counted in this function what it is known for.
    #[track_caller]
    fn truth(&self, function: &str) -> u64 {
        self.said.number("truth", function)
    }

    /// Profile of the event with this name in the balance, from the file that was written of it.
    #[track_caller]
    fn folded(&self, event: &str, file: &str) -> Folded {
        let balance = self.run.balance_of(event);
        balance.assert_lossless();
        let folded = self.run.folded_file(&self.folder.path().join(file));
        assert_eq!(folded.total(), balance.recorded, "{event}: {folded}");
        folded
    }
}

fn counted(program: &Program) -> String {
    format!("uprobe:{}:counted", program.path().display())
}

/// In the stacks of `mixed` itself.
fn in_it(function: &str) -> impl Fn(&Stack) -> bool {
    let function = function.to_owned();
    move |stack| stack.has_chain(&["main", &function])
}

#[kernel_test]
fn each_of_several_events_is_as_accurate_as_alone() {
    let pointers = Program::c("mixed");
    let bare = Program::c_without_frame_pointers("mixed");
    for (program, flags) in [
        (&pointers, "--call-graph auto"),
        (&pointers, "--call-graph fp"),
        (&bare, "--call-graph auto"),
    ] {
        let events = "-e cpu-clock -e page-faults -e sched:sched_switch -e";
        let flags = format!("{flags} {events} {}", counted(program));
        let recorded = Recorded::new(program, &flags, &["x.folded"]);
        let clock = recorded.folded("cpu-clock", "x.cpu-clock.folded");
        let spin = clock.share(in_it("spin"));
        // It spins for longer than it does all the rest together.
        assert!(spin > 0.8, "{spin} in {clock}");
        let faults = recorded.folded("page-faults", "x.page-faults.folded");
        assert_eq!(
            faults.weight(in_it("touch")),
            recorded.truth("touch"),
            "{faults}"
        );
        let switches = recorded.folded("sched:sched_switch", "x.sched-sched_switch.folded");
        if !flags.contains("--call-graph fp") {
            // By frame pointers alone, the C library's function hides its caller. Where the timer fires before the task
            // is off its CPU, a nap of the 150 has no switch.
            let (seen, truth) = (switches.weight(in_it("nap")), recorded.truth("nap"));
            assert!(
                truth >= 100 && seen.abs_diff(truth) < 3,
                "{seen} of {truth} in {switches}"
            );
        }
        let name = program.path().file_name().expect("it is a file");
        let name = name.to_string_lossy();
        let file = format!("x.{name}-counted.folded");
        let calls = recorded.folded(&format!("{name}:counted"), &file);
        let chain = ["main", "caller", "counted"];
        assert!(
            calls.stacks.iter().all(|stack| stack.has_chain(&chain)),
            "{calls}"
        );
        assert_eq!(calls.total(), recorded.truth("counted"), "{calls}");
        // Nothing of one is in another.
        assert!(!calls.any(in_it("touch")) && !faults.any(|stack| stack.has("counted")));
    }
}

#[kernel_test]
fn windows_of_several_events_go_to_a_file_for_each() {
    let folder = tempdir().expect("a temporary folder can be made");
    let workload = Program::c("mixed").start(&[]);
    let mut running = Invocation::new("-v --window 1s -e cpu-clock -e page-faults")
        .flag("-p", workload.pid())
        .path("-o", &folder.path().join("x.fbpf"))
        .path("--off-cpu-output", &folder.path().join("waits.fbpf"))
        .start();
    running.wait_until_all_attached();
    // The first window has no sample.
    thread::sleep(Duration::from_millis(1500));
    workload.proceed();
    let said = workload.stop_by_itself();
    let run = running.finish().expect_code(0);
    let render = |event: &str, file: &str| {
        let rendered = Invocation::new("render -f -v")
            .arg(folder.path().join(file).display())
            .run()
            .expect_code(0);
        let about = &rendered.stderr;
        assert!(about.contains(&format!("event: {event}\n")), "{about}");
        let windows = about
            .split("windows: ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let windows = windows.and_then(|count| count.parse::<u64>().ok());
        assert!(windows.is_some_and(|count| count >= 2), "{about}");
        let balance = run.balance_of(event);
        balance.assert_lossless();
        let folded = rendered.folded();
        if event != "off-CPU" {
            assert_eq!(folded.total(), balance.recorded, "{event}: {folded}");
        }
        folded
    };
    let clock = render("cpu-clock", "x.cpu-clock.fbpf");
    let spin = clock.share(in_it("spin"));
    assert!(spin > 0.8, "{spin} in {clock}");
    let faults = render("page-faults", "x.page-faults.fbpf");
    let truth = said.number("truth", "touch");
    assert_eq!(faults.weight(in_it("touch")), truth, "{faults}");
    let waits = render("off-CPU", "waits.fbpf");
    assert!(waits.any(in_it("nap")), "{waits}");
}

#[kernel_test]
fn each_event_may_have_its_own_output_format() {
    let program = Program::c("mixed");
    let flags = format!(
        "-e context-switches -e cpu-clock -e {} -e page-faults",
        counted(&program)
    );
    let recorded = Recorded::new(
        &program,
        &flags,
        &["switches.folded", "cpu.svg", "calls.fbpf", "-"],
    );
    let path = |name: &str| recorded.folder.path().join(name);
    assert_whole_svg(&path("cpu.svg"));
    let svg = fs::read_to_string(path("cpu.svg")).expect("the graph is there");
    assert!(svg.contains("on-CPU: mixed (PID") && svg.contains("cpu-clock 99 Hz"));
    let rendered = Invocation::new("render -f")
        .arg(path("calls.fbpf").display())
        .run()
        .expect_code(0)
        .folded();
    assert_eq!(rendered.total(), recorded.truth("counted"), "{rendered}");
    for (event, said) in [
        ("context-switches", "context-switches: mixed (PID"),
        ("page-faults", "page-faults: mixed (PID"),
    ] {
        recorded.run.balance_of(event).assert_lossless();
        assert!(
            recorded.run.stderr.contains(said),
            "{}",
            recorded.run.stderr
        );
    }
}

#[kernel_test]
fn all_events_and_waits_may_go_to_one_pprof() {
    require!(has_pprof());
    let program = Program::c("mixed");
    let folder = tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("all.pb.gz");
    let place = file.display();
    let counted = counted(&program);
    let flags = format!(
        "-v -e cpu-clock -e {counted} -e page-faults -e emulation-faults -o {place} --off-cpu-output {place}"
    );
    let (run, said) = Invocation::new(&flags).run_while_working(program.start(&[]));
    let run = run.expect_stderr("no samples of emulation-faults: ");
    assert!(!run.stderr.contains("Not written"), "{}", run.stderr);
    let total = |kind: &str| {
        let folded = Invocation::new("render -f --sample-type")
            .arg(kind)
            .arg(place.to_string())
            .run()
            .expect_code(0)
            .folded();
        let top = pprof(&["-top", &format!("-sample_index={kind}")], &file);
        assert!(top.starts_with("File: mixed"), "{top}");
        folded
    };
    let clock = total("cpu_clock");
    assert_eq!(clock.total(), run.balance_of("cpu-clock").recorded);
    assert!(clock.share(in_it("spin")) > 0.8, "{clock}");
    let faults = total("page_faults");
    assert_eq!(
        faults.weight(in_it("touch")),
        said.number("truth", "touch"),
        "{faults}"
    );
    let calls = total("mixed_counted");
    assert_eq!(calls.total(), said.number("truth", "counted"), "{calls}");
    let waits = total("off_cpu");
    assert!(waits.weight(in_it("nap")) > 150 * 100, "{waits}");
    // The first event is what readers show.
    let raw = pprof(&["-raw"], &file);
    assert!(raw.contains("cpu_clock/count[dflt]"), "{raw}");
    let comments = pprof(&["-comments"], &file);
    assert_eq!(comments.matches("recorded: ").count(), 4, "{comments}");
}

#[kernel_test]
fn an_event_that_never_fires_is_reported_and_the_others_are_written() {
    let program = Program::c("mixed");
    let flags = "-e emulation-faults -e page-faults -e sched:sched_process_fork";
    let recorded = Recorded::new(&program, flags, &["x.folded"]);
    let faults = recorded.folded("page-faults", "x.page-faults.folded");
    assert_eq!(
        faults.weight(in_it("touch")),
        recorded.truth("touch"),
        "{faults}"
    );
    for (event, file) in [
        ("emulation-faults", "x.emulation-faults.folded"),
        (
            "sched:sched_process_fork",
            "x.sched-sched_process_fork.folded",
        ),
    ] {
        let path = recorded.folder.path().join(file);
        assert!(!path.exists(), "{file} was written");
        let sentence = format!("no samples of {event}: ");
        let unwritten = format!("Not written: {}.", path.display());
        let stderr = &recorded.run.stderr;
        assert!(
            stderr.contains(&sentence) && stderr.contains(&unwritten),
            "{stderr}"
        );
    }
}

#[kernel_test]
fn eight_events_at_once_lose_nothing_on_a_busy_machine() {
    let _busy = [
        Program::c("pipe").start(&[]),
        Program::c("faults").start(&[]),
        Program::c("spin").start(&[]),
    ];
    let folder = tempdir().expect("a temporary folder can be made");
    let events = [
        "cpu-clock",
        "page-faults",
        "context-switches",
        "sched:sched_switch",
        "task-clock",
        "cpu-migrations",
        "minor-faults",
        "sched:sched_wakeup",
    ];
    let flags: String = events.iter().map(|event| format!("-e {event} ")).collect();
    let run = Invocation::new(&flags)
        .args("-v -a -d 2 -K")
        .path("-o", &folder.path().join("x.folded"))
        .run()
        .expect_code(0);
    for event in events {
        let balance = run.balance_of(event);
        balance.assert_even();
        // Tracepoints are passed in interrupts, too.
        let lost = if event.contains(':') {
            balance.fired / 20
        } else {
            0
        };
        assert!(balance.lost_total() <= lost, "{event}: {balance:?}");
    }
    let fired = |event| run.balance_of(event).fired;
    // Two names of nearly one thing, each with a program of its own, which are attached one after the other.
    for (one, other) in [
        ("page-faults", "minor-faults"),
        ("context-switches", "sched:sched_switch"),
    ] {
        let (ones, others) = (fired(one), fired(other));
        assert!(
            ones > 1000 && ones.abs_diff(others) < ones / 10,
            "{ones} {one} and {others} {other}"
        );
    }
}

#[kernel_test]
fn several_uprobes_have_separate_profiles() {
    let program = Program::c("calls");
    let folder = tempdir().expect("a temporary folder can be made");
    let path = |name: &str| folder.path().join(name);
    let run = Invocation::new("-v -e uprobe:libc:malloc -e")
        .arg(format_args!("uprobe:{}:counted", program.path().display()))
        .args("-e sched:sched_process_exit -e uprobe:libc:free")
        .path("-o", &path("malloc.folded"))
        .path("-o", &path("counted.folded"))
        .path("-o", &path("exit.folded"))
        .path("-o", &path("free.folded"))
        .command(program.path(), &[])
        .run()
        .expect_code(0);
    for name in ["malloc", "counted", "free"] {
        let folded = run.folded_file(&path(&format!("{name}.folded")));
        let calls = folded.weight(|stack| stack.has("counted") && stack.leaf() == name);
        assert_eq!(calls, 400, "{name}: {folded}");
        assert!(
            folded.stacks.iter().all(|stack| stack.leaf() == name),
            "{folded}"
        );
    }
    // The kernel's stacks are of the event that wants them.
    let exit = run.folded_file(&path("exit.folded"));
    assert_eq!(exit.total(), 1, "{exit}");
    assert!(exit.heaviest().has("do_exit"), "{exit}");
    for event in [
        "libc:malloc",
        "calls:counted",
        "libc:free",
        "sched:sched_process_exit",
    ] {
        run.balance_of(event).assert_lossless();
    }
}

#[kernel_test]
fn off_cpu_time_can_be_recorded_beside_several_events() {
    let program = Program::c_without_frame_pointers("mixed");
    let waits = tempdir().expect("a temporary folder can be made");
    let file = waits.path().join("off.folded");
    let flags = format!(
        "-e cpu-clock -e {} -e page-faults --off-cpu-output {}",
        counted(&program),
        file.display()
    );
    let recorded = Recorded::new(&program, &flags, &["x.folded"]);
    let faults = recorded.folded("page-faults", "x.page-faults.folded");
    assert_eq!(
        faults.weight(in_it("touch")),
        recorded.truth("touch"),
        "{faults}"
    );
    recorded.run.balance_of("off-CPU").assert_lossless();
    let off = recorded.run.folded_file(&file);
    let slept = off.weight(in_it("nap"));
    assert!(slept > 150 * 100, "{slept} µs in {off}");
    // The thread that switches has made its frame already, also where functions are watched
    // that have not.
    assert!(
        off.any(|stack| stack.has_chain(&["main", "nap"]) && stack.mentions("nanosleep")),
        "{off}"
    );
}

#[kernel_test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_recorded() {
    Invocation::new("-e cpu-clock -e page-faults -d 100 -o /nowhere/x.folded")
        .run()
        .expect_code(1)
        .expect_stderr("/nowhere/x.cpu-clock.folded");
}

#[kernel_test]
fn an_event_that_the_kernel_lacks_is_refused_by_name() {
    let folder = tempdir().expect("a temporary folder can be made");
    Invocation::new("-e cpu-clock -e sched:sched_wekup -d 100")
        .path("-o", &folder.path().join("x.folded"))
        .run()
        .expect_code(1)
        .expect_stderr("no tracepoint sched_wekup");
}
