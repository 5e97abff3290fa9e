mod charts;
mod events;
mod probes;

use super::*;
use crate::output::{CalleeOrder, MinWidth, Palette, TextStyle};
use crate::plan::{Event, PerfEvent, PerfEventChoice, Sampling};
use crate::probe::{Probe, ThreadKind, Waits, Wakers};
use crate::profile::LabelFrames;
use clap::Parser as _;
use profiler_common::abi::TaskState;

fn plan_for(line: &str, stdout_is_terminal: bool) -> Result<Plan> {
    let words = std::iter::once("flame-bpf").chain(line.split_whitespace());
    let args = crate::cli::Args::try_parse_from(words)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
        .record;
    build(args, stdout_is_terminal, None)
}

/// The plan for a command line typed at a terminal.
#[track_caller]
fn plan(line: &str) -> Plan {
    plan_for(line, true).unwrap_or_else(|error| panic!("{line}: {error:#}"))
}

/// The one event of the plan for a command line typed at a terminal.
#[track_caller]
fn event(line: &str) -> Event {
    let mut events = plan(line).events;
    assert_eq!(events.len(), 1, "{line}: {events:?}");
    events.remove(0)
}

#[track_caller]
fn refusal(line: &str) -> String {
    match plan_for(line, true) {
        Ok(plan) => panic!("{line} is accepted: {plan:?}"),
        Err(error) => format!("{error:#}"),
    }
}

/// Asserts that lines are refused, each with its answer.
#[track_caller]
fn assert_refused(cases: &[(&str, &str)]) {
    for (line, answer) in cases {
        let refusal = refusal(line);
        assert!(refusal.contains(answer), "{line}: {refusal}");
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
fn a_recording_shows_what_is_selected_and_raw_recordings_keep_all() {
    let part = plan("--focus alloc --process nginx --per-thread --thread 7");
    assert_eq!(part.selection.focus.len(), 1);
    assert!(plan("-a").selection.is_all());
    for (line, answer) in [
        ("--thread 7", "--per-thread"),
        ("--focus x -o a.fbpf", "flame-bpf render"),
    ] {
        let said = refusal(line);
        assert!(said.contains(answer), "{line}: {said}");
    }
}

#[test]
fn without_flags_the_whole_machine_is_recorded_until_ctrl_c() {
    let mut expected = Plan {
        style: usual_style(),
        ..Plan::usual(Target::All, Sampling::Frequency(99))
    };
    expected.events[0].outputs = vec![file("flamegraph.svg", Format::SVG)];
    assert_eq!(plan(""), expected);
    assert_eq!(plan("-a"), expected);
}

#[test]
fn lines_are_kept_for_what_shows_them_now_or_later() {
    for line in [
        "--lines",
        "-o x.svg -o x.fbpf",
        "--live",
        "-o x.html --source a",
    ] {
        assert!(plan(line).keeps_lines(), "{line}");
    }
    for line in ["", "-o x.svg -o x.pb.gz", "--inline --report"] {
        assert!(!plan(line).keeps_lines(), "{line}");
    }
}

#[test]
fn source_is_for_pages_and_reports_of_lines_and_keeps_functions_whole() {
    let asked = plan("-o x.html --source a --source b");
    assert_eq!(asked.source, [PathBuf::from("a"), PathBuf::from("b")]);
    assert!(asked.naming.lines && asked.naming.joins_lines);
    for line in [
        "-o x.html --source a --lines",
        "--report=lines --source a",
        "-o x.html --source a --kernel-lines",
    ] {
        let naming = plan(line).naming;
        assert!(naming.lines && !naming.joins_lines, "{line}");
    }
    assert!(!plan("-o x.html").naming.lines);
    for line in ["--source a", "-o x.fbpf --source a", "--report --source a"] {
        let said = refusal(line);
        assert!(said.contains("-o NAME.html"), "{line}: {said}");
    }
    assert!(refusal("--live --source a").contains("--source does not go with it"));
}

#[test]
fn target_flags_make_the_target() {
    assert_eq!(plan("-p 7").target, Target::Processes(vec![7]));
    assert_eq!(plan("-p 7").children, Children::None);
    assert_eq!(plan("-p 7 --children").children, Children::All);
    let wanted = plan("-n nginx -n redis.* --exe /usr/bin/x");
    let Target::Matching(matching) = &wanted.target else {
        panic!("{wanted:?}");
    };
    assert_eq!(
        matching.to_string(),
        "is named nginx or redis.* or runs /usr/bin/x"
    );
    assert_eq!(wanted.children, Children::ToCome);
    assert_eq!(plan("--as-user -- x").run_as, Some(CommandUser::Caller));
    assert_eq!(
        plan("--as-user=me -- x").run_as,
        Some(CommandUser::Named("me".into()))
    );
    assert_eq!(plan("-- x").children, Children::ToCome);
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
fn a_command_is_the_target_unless_a_flag_names_another() {
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
fn rates_and_periods_are_parsed() {
    assert_eq!(event("-F 997").sampling, Sampling::Frequency(997));
    assert_eq!(event("-c 1000000").sampling, Sampling::Period(1_000_000));
    assert_eq!(event("-e cycles").sampling, Sampling::Frequency(99));
    assert_eq!(event("-e page-faults").sampling, Sampling::Period(1));
    assert_eq!(
        event("-e page-faults -F 99").sampling,
        Sampling::Frequency(99)
    );
    assert_eq!(event("-e cs -c 10").sampling, Sampling::Period(10));
    assert_eq!(
        event("-e cpu-clock").perf_event,
        PerfEventChoice::Named(PerfEvent::CPU_CLOCK)
    );
    assert!(refusal("-F 99 -c 10").contains("keep one"));
    assert!(refusal("-e cpu-clock -c 100").contains("-c 10000"));
    assert!(refusal("-e task-clock -F 200000").contains("-F 100000"));
}

#[test]
fn durations_are_parsed() {
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
    // As the shell expands `-p $(pgrep NAME)`.
    let two = refusal("-p 23456 23457");
    assert!(
        two.contains("-p 23457") && two.contains("-d 23457"),
        "{two}"
    );
    assert!(refusal("-p 23456 23457 23458").contains("pgrep -d,"));
    assert!(refusal("23456").contains("-p 23456"));
}

#[test]
fn stack_flags_choose_the_stacks() {
    let user = plan("-U").capture;
    assert!(user.user_stacks && !user.kernel_stacks);
    let kernel = plan("-K").capture;
    assert!(!kernel.user_stacks && kernel.kernel_stacks);
    let told_apart = plan("-I --per-thread --per-cpu").capture;
    assert!(told_apart.include_idle && told_apart.per_thread && told_apart.per_cpu);
    assert!(refusal("-UK").contains("leaves nothing"));
}

#[test]
fn who_chooses_among_threads_gets_them_and_others_do_not_see_it() {
    let keys = |line: &str| {
        let capture = plan(line).capture;
        let LabelFrames { threads, cpus } = capture.label_frames;
        (capture.per_thread, capture.per_cpu, threads, cpus)
    };
    for (line, expected) in [
        ("-o a.svg", (false, false, false, false)),
        ("-o a.svg -o a.html", (true, true, false, false)),
        ("-o a.folded -o a.json.gz", (true, false, false, false)),
        ("--per-thread -o a.svg -o a.html", (true, true, true, false)),
        ("--off-cpu -o a.html", (true, false, false, false)),
        // Rendered later, a raw recording shows all keys that it has, so the page adds none.
        ("-o a.fbpf -o a.html", (false, false, false, false)),
    ] {
        assert_eq!(keys(line), expected, "{line}");
    }
}

#[test]
fn outputs_are_the_named_ones_or_suit_stdout() {
    let svg = file("a.svg", Format::SVG);
    let piped = |line| plan_for(line, false).unwrap().events.remove(0).outputs;
    assert_eq!(piped(""), [Output::Stdout(Format::FOLDED)]);
    assert_eq!(piped("-o a.svg"), std::slice::from_ref(&svg));
    assert_eq!(event("-f").outputs, [Output::Stdout(Format::FOLDED)]);
    assert_eq!(event("-o -").outputs, [Output::Stdout(Format::FOLDED)]);
    assert_eq!(
        event("-f -o -").outputs,
        [Output::Stdout(Format::FOLDED)],
        "one and the same"
    );
    assert_eq!(
        event("-fo a.svg").outputs,
        [svg.clone(), Output::Stdout(Format::FOLDED)]
    );
    assert_eq!(
        event("-o a.svg -o b.folded").outputs,
        [svg, file("b.folded", Format::FOLDED)]
    );
}

#[test]
fn an_output_in_dev_gets_folded_text() {
    assert_eq!(
        event("-o /dev/null").outputs,
        [file("/dev/null", Format::FOLDED)]
    );
}

#[test]
fn a_raw_recording_takes_no_style_flags() {
    let raw_recording = Output::RawRecording {
        path: "A.FBPF".into(),
    };
    assert_eq!(raw_recording.format(), None);
    assert_eq!(
        event("-o A.FBPF").outputs,
        std::slice::from_ref(&raw_recording)
    );
    let both = plan("-o A.FBPF -f --delimited");
    assert_eq!(
        both.events[0].outputs,
        [raw_recording, Output::Stdout(Format::FOLDED)]
    );
    assert!(refusal("-o a.fbpf --title T").contains("flame-bpf render"));
    assert!(refusal("-o a.fbpf -o ./a.fbpf").contains("given twice"));
    assert_eq!(
        plan("-a --window 10s -o a.fbpf").window,
        Some(Duration::from_secs(10))
    );
    assert_eq!(plan("-a -o a.fbpf").window, None);
    for line in [
        "-a --window 10s",
        "-a --window 10s -o a.svg",
        "-a --window 10s -o a.fbpf -f",
    ] {
        assert!(refusal(line).contains("one -o FILE.fbpf"), "{line}");
    }
    assert!(refusal("--window 1m -o a.fbpf --wall").contains("--wall"));
    let both = plan("-e cpu-clock -e page-faults --window 1m -o a.fbpf --off-cpu-output b.fbpf");
    let files: Vec<_> = both.all_outputs().map(Output::name).collect();
    assert_eq!(files, ["a.cpu-clock.fbpf", "a.page-faults.fbpf", "b.fbpf"]);
}

#[test]
fn senseless_outputs_are_refused() {
    for line in [
        "-o a.svg -o a.svg",
        "-o a.svg -o ./a.svg",
        "-o - -o -",
        "-o x/a.svg -o x/./a.svg",
    ] {
        assert!(refusal(line).contains("twice"), "{line}");
    }
    for line in ["-o perf.data", "-o out", "-o out.png"] {
        assert!(refusal(line).contains(".svg"), "{line}");
    }
}

/// The style without flags: names in reports are cut only where it is known how wide these are shown.
fn usual_style() -> Style {
    Style {
        text: TextStyle {
            cuts_names: false,
            ..TextStyle::default()
        },
        ..Style::default()
    }
}

#[test]
fn style_flags_make_the_style() {
    let plan = plan(
        "--title T --subtitle S --width 800 --height 20 --minwidth 0.5% --colors aqua --inverted --reverse \
         --order name --delimited --annotate",
    );
    assert_eq!(plan.title.as_deref(), Some("T"));
    let expected = Style {
        subtitle: Some("S".to_owned()),
        width: Some(800),
        height: 20,
        minwidth: MinWidth::Percent(0.5),
        inverted: true,
        reverse: true,
        order: Some(CalleeOrder::Name),
        fold: FoldStyle {
            delimited: true,
            annotate: true,
        },
        ..usual_style()
    };
    assert_eq!(plan.style, expected);
    assert_eq!(plan.colors, Some("aqua".parse::<Palette>().unwrap()));
    assert!(refusal("--height 0").contains("pixels"));
    assert!(refusal("--width 1").contains("pixels"));
}

#[test]
fn style_flags_without_a_graph_are_refused() {
    for look in [
        "--title T",
        "--subtitle S",
        "--width 800",
        "--height 20",
        "--minwidth 1",
        "--colors aqua",
        "--inverted",
        "--reverse",
        "--order weight",
        "--classic",
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
fn flags_about_the_run_are_parsed() {
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
    assert!(plan("--kernel-lines").naming.kernel_lines && !plan("--lines").naming.kernel_lines);
    assert!(refusal("-U --kernel-lines").contains("-U leaves them out"));
    let symbols = |line: &str| plan(line).naming.memory.bytes;
    assert_eq!(
        (symbols(""), symbols("--max-symbol-memory 64")),
        (256 << 20, 64 << 20)
    );
    assert!(refusal("-q -v").contains("keep one"));
}
