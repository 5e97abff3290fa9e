//! Flame charts, and the windows that time is divided into.

use super::*;

#[test]
fn charts_have_windows_of_50_ms_unless_told_otherwise() {
    let milliseconds = |line: &str| {
        let plan = plan(line);
        (
            plan.style.chart,
            plan.resolution.map(|time| time.as_millis()),
        )
    };
    assert_eq!(milliseconds("-a --flamechart -o a.svg"), (true, Some(50)));
    assert_eq!(milliseconds("-a --flamechart"), (true, Some(50)));
    let line = "-a --flamechart --resolution 1s -o a.html -o a.fbpf";
    assert_eq!(milliseconds(line), (true, Some(1000)));
    assert_eq!(
        milliseconds("-a --resolution 10ms -o a.fbpf"),
        (false, Some(10))
    );
    assert_eq!(milliseconds("-a -o a.html"), (false, None));
    assert!(plan("-a --flamechart -o a.svg").has_windows());
    assert!(!plan("-a -o a.svg").has_windows());
}

#[test]
fn what_has_no_time_is_no_chart() {
    assert_refused(&[
        ("-a --flamechart -o a.folded", "a.folded"),
        ("-a --flamechart -o a.svg -f", "standard output"),
        ("-a --flamechart -o a.json.gz", "a.json.gz"),
        ("-a --flamechart -o a.fbpf", "render --flamechart"),
        ("-a --flamechart --reverse -o a.svg", "--reverse"),
        ("--wall -p 1 --flamechart -o a.svg", "--wall"),
        ("--wall -p 1 --resolution 1s -o a.html", "--wall"),
        ("-a --resolution 1s -o a.svg", "--flamechart"),
        ("-a --window 10s --resolution 1s -o a.fbpf", "--window"),
    ]);
}
