//! Facts that the file states of itself.
//!
//! In: a profile, its style and its threads. Out: the `meta` object: units, categories, the balance, and what markers mean.

use super::super::Style;
use crate::profile::{FrameKind, Profile};
use profiler_common::abi::ThreadState;
use serde_json::{Value, json};

/// The version of the format that is written; viewers upgrade it.
const FORMAT: u32 = 60;

/// The version of the format that Gecko itself writes, which is of no use to others.
const GECKO_FORMAT: u32 = 31;

/// How many threads are shown at first.
const VISIBLE_THREADS: usize = 15;

/// The types of markers, which are their names, too, by their numbers in the table of texts.
pub(super) const MARKERS: [&str; 2] = [WINDOW, LOSS];
const WINDOW: &str = "window";
const LOSS: &str = "loss";

/// Names and colors of kinds of frames, by the number that [`category`] gives.
const CATEGORIES: [(&str, &str); 8] = [
    ("Other", "grey"),
    ("User", "yellow"),
    ("Kernel", "orange"),
    ("JIT", "green"),
    ("Mark", "darkgrey"),
    ("Off-CPU", "lightblue"),
    ("Runnable", "red"),
    ("Interpreted", "magenta"),
];

/// The category of a frame.
pub(super) const fn category(kind: FrameKind) -> u32 {
    match kind {
        FrameKind::Process | FrameKind::Label => 0,
        FrameKind::User | FrameKind::Inlined => 1,
        FrameKind::Kernel => 2,
        FrameKind::Jit => 3,
        FrameKind::Interpreted(_) => 7,
        FrameKind::Mark => 4,
        FrameKind::State(ThreadState::Blocked | ThreadState::Woken) => 5,
        FrameKind::State(ThreadState::Runnable) => 6,
        FrameKind::State(ThreadState::Running | ThreadState::Ran) => 1,
    }
}

/// The object.
pub(super) fn meta(profile: &Profile, style: &Style, threads: usize) -> Value {
    let started = profile.origin.since_1970();
    let category = |(name, color): (&str, &str)| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    let notes = style.notes.lines().map(|line| {
        let (label, value) = line.split_once(": ").unwrap_or(("note", line));
        json!({ "label": label, "format": "string", "value": value })
    });
    let visible: Vec<usize> = (0..threads.min(VISIBLE_THREADS)).collect();
    json!({
        "interval": profile.origin.period_ns.map_or(1.0, |ns| ns as f64 / 1e6),
        "startTime": started.map_or(0.0, |time| time.as_secs_f64() * 1000.0),
        "processType": 0,
        "product": style.title,
        "importedFrom": "flame-bpf",
        "stackwalk": 1,
        "version": GECKO_FORMAT,
        "preprocessedProfileVersion": FORMAT,
        "symbolicated": true,
        "sourceCodeIsNotOnSearchfox": true,
        "usesOnlyOneStackType": true,
        "keepProfileThreadOrder": true,
        "initialVisibleThreads": visible,
        "initialSelectedThreads": [0],
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
        "categories": CATEGORIES.map(category),
        "extra": [{ "label": "Recording", "entries": notes.collect::<Vec<_>>() }],
        "markerSchema": [
            {
                "name": WINDOW,
                "display": ["marker-chart", "marker-table", "timeline-overview"],
                "chartLabel": "window",
                "description": "Samples of a window are sums: their order and times within it mean nothing.",
                "fields": [
                    { "key": "firings", "label": "Firings", "format": "integer" },
                    { "key": "filtered", "label": "Filtered", "format": "integer" },
                    { "key": "lost", "label": "Lost", "format": "integer" },
                ],
            },
            {
                "name": LOSS,
                "display": ["marker-chart", "marker-table", "timeline-overview"],
                "chartLabel": "lost {marker.data.lost}",
                "description": "Firings that are in no sample.",
                "fields": [{ "key": "lost", "label": "Lost", "format": "integer" }],
            },
        ],
    })
}
