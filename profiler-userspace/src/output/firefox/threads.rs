//! Threads: whose samples are, and when.
//!
//! In: a profile's samples and windows. Out: a thread for each thread or process that the profile tells apart, the busiest
//! first. Times are in milliseconds from the beginning of the recording.

use super::super::owner;
use super::meta::MARKERS;
use super::tables;
use crate::output::json_stream::Json;
use crate::profile::{CallTree, LabelsIndex, NodeIndex, Profile, TreeSample, Unit, Window};
use profiler_common::abi::ThreadState;
use serde_json::json;
use std::io;
use std::time::Duration;

/// A marker that lasts from its start to its end.
const INTERVAL: u32 = 1;

/// A thread, or a process where threads are not told apart.
pub(super) struct Thread {
    labels: LabelsIndex,
    /// Indices into the tree's samples, in order of time.
    samples: Vec<usize>,
}

/// The threads of a profile.
pub(super) fn of(profile: &Profile, tree: &CallTree) -> Vec<Thread> {
    let owners = owner::samples(profile, tree).into_iter();
    owners
        .map(|(labels, mut samples)| {
            // Within a window they stay as they are.
            samples.sort_by_key(|index| tree.samples()[*index].window);
            Thread { labels, samples }
        })
        .collect()
}

/// A sample, and when and how long it is shown.
struct Timed<'a> {
    sample: &'a TreeSample,
    start_ms: f64,
    cpu_us: Option<f64>,
}

impl Thread {
    /// Writes the thread, with the markers of all windows if it `has_markers`.
    pub(super) fn write(
        &self,
        profile: &Profile,
        tree: &CallTree,
        has_markers: bool,
        json: &mut Json<'_>,
    ) -> io::Result<()> {
        let labels = profile.labels_at(self.labels);
        let process = labels.name().unwrap_or("[unknown]");
        let thread = labels.thread().unwrap_or(process);
        let number = |id: Option<u32>| id.map_or_else(|| process.to_owned(), |id| id.to_string());
        let (pid, tid) = (number(labels.pid), number(labels.tid.or(labels.pid)));
        let end = milliseconds(span(profile).end);
        let head = json!({
            "processType": "default", "processName": process, "name": thread, "isMainThread": pid == tid,
            "pid": pid, "tid": tid, "pausedRanges": [], "showMarkersInTimeline": has_markers,
            "processStartupTime": 0.0, "processShutdownTime": end, "registerTime": 0.0, "unregisterTime": end,
        });
        let head = head.to_string();
        json.text(head.strip_suffix('}').unwrap_or(&head))?;
        json.text(",\"samples\":")?;
        self.samples(profile, tree, json)?;
        json.text(",\"markers\":")?;
        let windows = if has_markers { &*profile.windows } else { &[] };
        let mut markers = Vec::new();
        for totals in windows {
            let data = json!({
                "type": MARKERS[0], "firings": totals.firings, "filtered": totals.filtered, "lost": totals.lost,
            });
            markers.push((0, totals.window, data));
            if totals.lost > 0 {
                markers.push((
                    1,
                    totals.window,
                    json!({ "type": MARKERS[1], "lost": totals.lost }),
                ));
            }
        }
        let count = markers.len();
        let mut table = tables::table(json, count)?;
        table.column("name", markers.iter().map(|(name, ..)| *name))?;
        let starts = markers.iter().map(|(_, at, _)| milliseconds(at.start));
        table.column("startTime", starts)?;
        let ends = markers.iter().map(|(_, at, _)| milliseconds(at.end));
        table.column("endTime", ends)?;
        table.column("phase", std::iter::repeat_n(INTERVAL, count))?;
        table.column("category", std::iter::repeat_n(0, count))?;
        table.column("data", markers.into_iter().map(|(.., data)| data))?;
        table.end()?;
        json.text("}")
    }

    fn samples(&self, profile: &Profile, tree: &CallTree, json: &mut Json<'_>) -> io::Result<()> {
        let timed = self.timed(profile, tree);
        let (weight_type, per_weight) = match &profile.unit {
            Unit::Nanoseconds => ("tracing-ms", Some(1e-6)),
            Unit::Events(name) if name == "bytes" => ("bytes", None),
            Unit::Samples | Unit::Events(_) => ("samples", None),
        };
        let weight = |weight: u64| match per_weight {
            Some(factor) => json!(weight as f64 * factor),
            None => json!(weight),
        };
        let stack = |timed: &Timed<'_>| timed.sample.node.map(NodeIndex::number);
        let mut table = json.columns()?;
        table.value("weightType", weight_type)?;
        table.column("stack", timed.iter().map(stack))?;
        table.column("time", timed.iter().map(|timed| timed.start_ms))?;
        table.column(
            "weight",
            timed.iter().map(|timed| weight(timed.sample.weight)),
        )?;
        table.column("threadCPUDelta", timed.iter().map(|timed| timed.cpu_us))?;
        table.value("length", timed.len())?;
        table.end()
    }

    /// The samples in order of time: those of a window fill it in the order in which they come, each as long as what it
    /// stands for. Where that is longer than the window, as with waits that began before it, they share it.
    fn timed<'a>(&self, profile: &Profile, tree: &'a CallTree) -> Vec<Timed<'a>> {
        let samples: Vec<&TreeSample> = (self.samples.iter())
            .map(|index| &tree.samples()[*index])
            .collect();
        let mut timed = Vec::with_capacity(samples.len());
        for of_window in samples.chunk_by(|one, next| one.window == next.window) {
            let index = of_window[0].window.0 as usize;
            let window = profile
                .windows
                .get(index)
                .map_or(span(profile), |totals| totals.window);
            let length = milliseconds(window.length());
            let lasts: Vec<f64> = of_window
                .iter()
                .map(|sample| lasts(profile, sample))
                .collect();
            let all: f64 = lasts.iter().sum();
            let scale = if all > length { length / all } else { 1.0 };
            let mut at = milliseconds(window.start);
            for (sample, lasts) in of_window.iter().zip(lasts) {
                let ran = sample.thread_state == ThreadState::Running
                    && matches!(profile.unit, Unit::Samples | Unit::Nanoseconds);
                timed.push(Timed {
                    sample,
                    start_ms: at,
                    // Work that had the CPU before a sample's time is its own.
                    cpu_us: Some(if ran { lasts * scale * 1000.0 } else { 0.0 }),
                });
                at += lasts * scale;
            }
        }
        timed
    }
}

/// How long a sample is shown, in milliseconds, where there is room.
fn lasts(profile: &Profile, sample: &TreeSample) -> f64 {
    match (&profile.unit, profile.origin.period_ns) {
        (Unit::Nanoseconds, _) => sample.weight as f64 / 1e6,
        (Unit::Samples, Some(period)) => sample.weight as f64 * period as f64 / 1e6,
        // Nobody knows how long it took.
        (_, _) => sample.count as f64,
    }
}

/// The time that a profile covers; of one that does not say, as long as what it has.
fn span(profile: &Profile) -> Window {
    let window = profile.window;
    match window.end > window.start {
        true => window,
        false => Window::until(Duration::from_millis(profile.total_count().max(1))),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
