//! Several -e in one run: what each records, and where it goes.

use super::*;

/// The names and outputs of the events.
#[track_caller]
fn outputs(line: &str) -> Vec<(String, Vec<String>)> {
    let events = plan(line).events;
    let of = |event: &Event| event.outputs.iter().map(Output::name).collect();
    events
        .iter()
        .map(|event| (event.name(), of(event)))
        .collect()
}

#[track_caller]
fn assert_outputs(line: &str, expected: &[(&str, &str)]) {
    let outputs = outputs(line);
    let outputs: Vec<(&str, &str)> = outputs
        .iter()
        .map(|(name, outputs)| match &outputs[..] {
            [output] => (name.as_str(), output.as_str()),
            other => panic!("{line}: {other:?}"),
        })
        .collect();
    assert_eq!(outputs, expected, "{line}");
}

#[test]
fn each_event_gets_the_output_at_its_position() {
    assert_outputs(
        "-e cpu-clock -e faults -e sched:sched_switch -e uprobe:libc:malloc -o a.svg -o b.fbpf -o - -o d.folded",
        &[
            ("cpu-clock", "a.svg"),
            ("page-faults", "b.fbpf"),
            ("sched:sched_switch", "standard output"),
            ("libc:malloc", "d.folded"),
        ],
    );
    assert!(!plan("-e cycles -e cs -o a.svg -o b.svg").has_one_subject());
    // One event may have several outputs, as without -e.
    assert_eq!(event("-e cycles -o a.svg -o b.folded").outputs.len(), 2);
}

#[test]
fn one_page_holds_all_events() {
    for line in [
        "-e cpu-clock -e sched:sched_switch -o x.html",
        "-o x.html --off-cpu-output ./x.html",
        "-e cpu-clock -e faults -o x.html --off-cpu-output x.html",
    ] {
        let plan = plan(line);
        assert!(plan.events.len() > 1);
        let is_shared = |output: &Output| matches!(output, Output::SharedPage { .. });
        assert!(plan.all_outputs().all(is_shared), "{line}: {plan:?}");
    }
    // Other formats hold one.
    assert!(refusal("-o x.svg --off-cpu-output x.svg").contains("name another file"));
    assert_outputs(
        "-e cpu-clock -e faults -o a.html -o b.html",
        &[("cpu-clock", "a.html"), ("page-faults", "b.html")],
    );
}

#[test]
fn one_output_name_serves_all_events() {
    assert_outputs(
        "-e cpu-clock -e sched:sched_switch -e uprobe:/usr/bin/x:ns::f<a> -o dir.d/x.tar.svg",
        &[
            ("cpu-clock", "dir.d/x.tar.cpu-clock.svg"),
            ("sched:sched_switch", "dir.d/x.tar.sched-sched_switch.svg"),
            ("x:ns::f<a>", "dir.d/x.tar.x-ns-f-a-.svg"),
        ],
    );
    assert_outputs(
        "-e cycles -e L1-dcache-loads -o x.fbpf",
        &[
            ("cycles", "x.cycles.fbpf"),
            ("L1-dcache-loads", "x.L1-dcache-loads.fbpf"),
        ],
    );
    assert_outputs(
        "-e cycles -e cs",
        &[
            ("cycles", "flamegraph.cycles.svg"),
            ("context-switches", "flamegraph.context-switches.svg"),
        ],
    );
    let long = format!("-e cycles -e uprobe:x:{} -o x.svg", "f/".repeat(300));
    let name = &outputs(&long)[1].1[0];
    assert!(
        name.len() < 100 && !name.contains('/') && name.ends_with(".svg"),
        "{name}"
    );
}

#[test]
fn a_rate_applies_to_its_event_alone() {
    let sampling = |line| -> Vec<Sampling> {
        let events = plan(line).events;
        events.iter().map(|event| event.sampling).collect()
    };
    let (hz, every) = (Sampling::Frequency, Sampling::Period(1));
    assert_eq!(
        sampling("-e cpu-clock -e faults -e cycles"),
        [hz(99), every, hz(99)]
    );
    assert_eq!(
        sampling("-e faults -e cycles -F 500 -e sched:sched_switch")[..2],
        [hz(500), hz(500)]
    );
    let weighed = |line: &str| -> Vec<bool> {
        let events = plan(line).events;
        events.iter().map(Event::is_weighed).collect()
    };
    assert_eq!(
        weighed("-e cpu-clock -e faults -e sched:sched_switch -e cycles"),
        [false, true, false, true]
    );
}

#[test]
fn off_cpu_time_can_be_recorded_beside_several_events() {
    let several = plan("-e cycles -e faults -o x.svg --off-cpu-output off.svg");
    assert_eq!(several.events.len(), 3);
    assert!(several.events[2].probe.waits().is_some() && !several.has_one_subject());
}

#[test]
fn a_format_that_takes_several_events_is_one_file() {
    let several = plan("-e cycles -e faults -o x.pb.gz");
    let output = &several.events[0].outputs[0];
    assert_eq!(several.events[1].outputs, std::slice::from_ref(output));
    assert!(several.is_shared(output));
    let beside = plan("-o a.svg -o ./x.pb.gz --off-cpu-output x.pb.gz --off-cpu-output o.svg");
    let [on, off] = &*beside.events else {
        panic!("{:?}", beside.events);
    };
    assert_eq!(on.outputs[1], off.outputs[0]);
    assert_eq!(
        [0, 1].map(|at| beside.is_shared(&on.outputs[at])),
        [false, true]
    );
    assert!(!plan("-e cycles -e faults -o a.pb.gz -o b.pb.gz").is_shared(output));
    assert_outputs(
        "-e cycles -e faults -o x.speedscope.json",
        &[
            ("cycles", "x.cycles.speedscope.json"),
            ("page-faults", "x.page-faults.speedscope.json"),
        ],
    );
}

#[test]
fn conflicting_flags_are_refused_with_an_alternative() {
    let nine =
        "cycles instructions branches faults cs cpu-clock task-clock migrations minor-faults";
    let nine: String = nine.split(' ').map(|name| format!("-e {name} ")).collect();
    assert_refused(&[
        (nine.as_str(), "records at most 8 events, and 9 are given"),
        ("-e faults -e page-faults", "-e page-faults is given twice"),
        ("-e a:b -e tracepoint:c:b", "-e c:b is given twice"),
        ("-e uprobe:x:f -e uprobe:x:f", "-e x:f is given twice"),
        ("-e cycles -e cs -f", "-o x.folded"),
        ("-e cycles -e cs -o -", "-o x.folded"),
        ("-e cycles -e cs -o /dev/null", "one -o for each -e"),
        (
            "-e cycles -e cs -e faults -o a.svg -o b.svg",
            "3 -e and 2 -o",
        ),
        (
            "-e cycles -e cs -o a.svg -o b.svg -o c.svg",
            "2 -e and 3 -o",
        ),
        ("-e cycles -e cs -o a.svg -o a.svg", "given twice"),
        (
            "-e uprobe:a:f,g -e uprobe:a:f.g -e uprobe:a:f:g -o x.svg",
            "-e a:f,g and -e a:f:g would both go to x.a-f-g.svg",
        ),
        ("-e a:b -e a:c -F 99", "every passing"),
        ("-e cycles -e a:c -C 0", "--per-cpu"),
        ("-e cycles -e uprobe:libc:malloc -K", "leave out -K"),
        ("-e cycles -e cpu-clock -c 100", "-c 10000"),
        ("-e cycles -e cpu-clock --wall", "keep one -e"),
        (
            "-e cycles -e cpu-clock --off-cpu",
            "-e does not go with --off-cpu",
        ),
        ("-e cycles -e cpu-clock --io", "record twice"),
        (
            "-e cycles -e cs -o x.svg --off-cpu-output x.cycles.svg",
            "is also the output of the samples",
        ),
    ]);
    let piped = plan_for("-e cycles -e cs", false).unwrap_err().to_string();
    assert!(piped.contains("-o x.folded"), "{piped}");
}
