//! Labels of samples: whose a sample is, and what its thread did.
//!
//! In: keys and values, in any order. Out: labels as recordings have them.

use crate::pprof::Sample;
use crate::profile::normalized::LocationIndex;
use crate::profile::{Labels, Profile, marks};
use profiler_common::abi::ThreadState;

/// Keys for what a thread is called. A file may have several; the first of these counts, whatever order they are in.
const COMM: [&str; 3] = ["comm", "thread_name", "thread"];

/// Owner and thread state of a sample, by labels of our own files and those of others.
pub(super) fn of<'a>(sample: &Sample, text: impl Fn(i64) -> &'a str) -> (Labels, &'a str) {
    let mut labels = Labels::default();
    let (mut state, mut rank) = ("", COMM.len());
    for label in &sample.label {
        let (key, value) = (text(label.key), text(label.text));
        let number = || match value {
            "" => u32::try_from(label.number).ok(),
            value => value.parse().ok(),
        };
        match key {
            "pid" | "process_id" => labels.pid = number(),
            "tid" | "thread_id" => labels.tid = number(),
            "cpu" => labels.cpu = number(),
            "state" => state = value,
            "process" | "process_name" if label.number == 0 => {
                labels.process = Some(value.to_owned());
            }
            "source" => labels.source = Some(value.to_owned()),
            key => {
                let known = COMM[..rank].iter().position(|known| *known == key);
                if let Some(known) = known.filter(|_| label.number == 0) {
                    rank = known;
                    labels.comm = Some(value.to_owned());
                }
            }
        }
    }
    (labels, state)
}

/// Thread state, by the label that our own files have. The frame that says so is taken away, since
/// views add it.
pub(super) fn take_state(
    profile: &Profile,
    state: &str,
    locations: &mut Vec<LocationIndex>,
) -> ThreadState {
    let (mark, thread_state) = match state {
        "blocked" => return ThreadState::Blocked,
        "runnable" => (marks::RUNNABLE, ThreadState::Runnable),
        "running" => (marks::NOT_SAMPLED, ThreadState::Ran),
        _ => return ThreadState::Running,
    };
    match locations.first() {
        Some(leaf) if profile.name_at(*leaf) == mark => {
            locations.remove(0);
            thread_state
        }
        _ => ThreadState::Running,
    }
}
