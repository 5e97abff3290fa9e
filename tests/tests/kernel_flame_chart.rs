//! Flame charts of programs whose phases are known.
//!
//! However often the machine takes the CPU away: then windows are longer, or have no sample. So what is compared with the
//! program's own account is how long a phase's frames are together, and from when to when they are.

use std::path::Path;

use flame_bpf_tests::{Graph, Invocation, Program, Said, kernel_test};
use tempfile::tempdir;

/// The CPU time of each phase, in milliseconds.
const EACH: &str = "1000";
const EACH_NS: u64 = 1_000_000_000;

/// How much longer than the program the recording of it may be.
const MAX_AROUND_NS: u64 = 500_000_000;

fn chart(path: &Path) -> Graph {
    let text = std::fs::read_to_string(path).expect("it was written");
    let graph = Graph::parse(&text).expect("a graph");
    assert_eq!(graph.settings[7], 1, "it is a flame chart");
    graph
}

/// From when to when frames of one name are, in nanoseconds, from the left.
#[derive(Debug)]
struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    fn of(graph: &Graph, name: &str) -> Self {
        let named = graph.frames.iter().filter(|frame| frame.name == name);
        let times: Vec<_> = named.filter_map(|frame| frame.time).collect();
        assert!(!times.is_empty(), "no {name}");
        Self(times)
    }

    fn start(&self) -> u64 {
        self.0[0].0
    }

    fn end(&self) -> u64 {
        self.0[self.0.len() - 1].1
    }

    /// How long they are within a stretch of time.
    fn within(&self, (start, end): (u64, u64)) -> u64 {
        let parts = self.0.iter();
        let part = |of: &(u64, u64)| of.1.min(end).saturating_sub(of.0.max(start));
        parts.map(part).sum()
    }

    /// Checks that what goes on from one window into the next is one frame; counts these borders.
    #[track_caller]
    fn check_joined(&self, windows: &[(u64, u64)]) -> usize {
        let pairs = self.0.windows(2);
        let apart = pairs
            .filter(|pair| pair[0].1 == pair[1].0)
            .collect::<Vec<_>>();
        assert!(apart.is_empty(), "{apart:?} of {self:?}");
        let borders = windows.iter().map(|window| window.1);
        let frames = &self.0;
        let is_across = |at: u64| frames.iter().any(|(start, end)| *start < at && at < *end);
        borders.filter(|border| is_across(*border)).count()
    }
}

/// Checks a chart of the program of two phases.
#[track_caller]
fn check_phases(graph: &Graph, said: &Said) {
    let windows = &graph.windows;
    // A sample is drawn somewhere in its window.
    let lengths = windows.iter().map(|(start, end)| end - start);
    let blur = lengths.max().expect("there are windows");
    let recorded = graph.frames[0].time.expect("it has a time").1;
    let around = recorded.saturating_sub(said.number("ended", "second_phase"));
    assert!(around < MAX_AROUND_NS, "{around} of {recorded}: {said:?}");
    let phases = ["first_phase", "second_phase"].map(|phase| {
        let shown = Stretches::of(graph, phase);
        let [began, early, late, ended] =
            ["began", "early", "late", "ended"].map(|what| said.number(what, phase));
        let begins = began.saturating_sub(blur)..=early + around + blur;
        assert!(begins.contains(&shown.start()), "{begins:?}: {shown:?}");
        let ends = late.saturating_sub(blur)..=ended + around + blur;
        assert!(ends.contains(&shown.end()), "{ends:?}: {shown:?}");
        // A window in which it ran at all is at least as long as it ran there.
        let lasts = EACH_NS / 10 * 9..=ended - began + 2 * blur;
        let shown_in_all = shown.within((0, recorded));
        assert!(
            lasts.contains(&shown_in_all),
            "{shown_in_all} of {lasts:?}: {shown:?}"
        );
        assert!(shown.check_joined(windows) > 0, "{shown:?} in {windows:?}");
        shown
    });
    let window_of = |time: u64| windows.partition_point(|window| window.1 <= time);
    let [first, second] = &phases;
    assert!(
        window_of(first.end() - 1) <= window_of(second.start()),
        "{phases:?}"
    );
}

#[kernel_test(alone)]
fn two_phases_stand_one_behind_the_other() {
    let folder = tempdir().expect("a temporary folder can be made");
    let [live, raw, rendered] =
        ["live.svg", "raw.fbpf", "rendered.svg"].map(|name| folder.path().join(name));
    let run = Invocation::new("--flamechart -F 499 -v")
        .path("-o", &live)
        .path("-o", &raw)
        .command(Program::c("phases").path(), &[EACH])
        .run()
        .expect_code(0);
    run.lossless_balance();
    Invocation::new("render --flamechart --resolution 200ms")
        .arg(raw.display())
        .path("-o", &rendered)
        .run()
        .expect_code(0);
    let said = Said::read(&run.stdout);
    let charts = [live, rendered].map(|path| chart(&path));
    for graph in &charts {
        check_phases(graph, &said);
    }
    let samples = charts.map(|graph| graph.frames.iter().map(|frame| frame.own).sum::<u64>());
    assert_eq!(samples[0], samples[1]);
}

#[kernel_test(alone)]
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
        said.contains("is divided into windows of 2")
            && said.contains("record again with --resolution 50ms"),
        "{said}"
    );
    assert!(!folder.path().join("x.svg").exists());
}
