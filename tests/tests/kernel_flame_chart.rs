//! Flame charts of programs whose phases are known.

use std::path::Path;

use flame_bpf_tests::{Graph, GraphFrame, Invocation, Program, kernel_test};
use tempfile::tempdir;

fn frames(path: &Path) -> Vec<GraphFrame> {
    let text = std::fs::read_to_string(path).expect("it was written");
    let graph = Graph::parse(&text).expect("a graph");
    assert_eq!(graph.settings[5], 1, "it is a flame chart");
    graph.frames
}

/// Where most of what has this name begins and ends, in milliseconds.
fn longest(frames: &[GraphFrame], name: &str) -> (u64, u64) {
    let named = frames.iter().filter(|frame| frame.name == name);
    let times = named.filter_map(|frame| frame.time);
    let (start, end) = times
        .max_by_key(|(start, end)| end - start)
        .unwrap_or_else(|| panic!("no {name}"));
    (start / 1_000_000, end / 1_000_000)
}

#[kernel_test]
fn two_phases_stand_one_behind_the_other() {
    let folder = tempdir().expect("a temporary folder can be made");
    let [live, raw, rendered] =
        ["live.svg", "raw.fbpf", "rendered.svg"].map(|name| folder.path().join(name));
    let run = Invocation::new("--flamechart -F 499 -v")
        .path("-o", &live)
        .path("-o", &raw)
        .command(Program::c("phases").path(), &["1000"])
        .run()
        .expect_code(0);
    run.lossless_balance();
    Invocation::new("render --flamechart --resolution 200ms")
        .arg(raw.display())
        .path("-o", &rendered)
        .run()
        .expect_code(0);
    for path in [&live, &rendered] {
        let frames = frames(path);
        let (first, second) = (
            longest(&frames, "first_phase"),
            longest(&frames, "second_phase"),
        );
        assert!(first.0 < 250, "{first:?}");
        assert!(first.1 - first.0 > 600, "{first:?}");
        assert!(second.1 - second.0 > 600, "{second:?}");
        assert!(first.1 <= second.0 + 200, "{first:?} {second:?}");
        assert!((800..1250).contains(&second.0), "{second:?}");
    }
    let samples = |path: &Path| frames(path).iter().map(|frame| frame.own).sum::<u64>();
    assert_eq!(samples(&live), samples(&rendered));
}

#[kernel_test]
fn windows_finer_than_recorded_are_refused_with_the_remedy() {
    let folder = tempdir().expect("a temporary folder can be made");
    let raw = folder.path().join("raw.fbpf");
    Invocation::new("-d 1 --resolution 200ms")
        .path("-o", &raw)
        .command(Program::c("phases").path(), &["500"])
        .run()
        .expect_code(0);
    let said = Invocation::new("render --flamechart --resolution 50ms")
        .arg(raw.display())
        .path("-o", &folder.path().join("x.svg"))
        .run()
        .expect_code(1);
    let said = said.stderr;
    assert!(
        said.contains("windows of 200 ms") && said.contains("record again with --resolution 50ms"),
        "{said}"
    );
    assert!(!folder.path().join("x.svg").exists());
}
