//! Labels of samples: whose a sample is, and what its thread did.
//!
//! In: keys and values, in any order. Out: labels as recordings have them.

use crate::pprof::Sample;
use crate::profile::cgroup::Cgroup;
use crate::profile::normalized::LocationIndex;
use crate::profile::{Labels, Profile, marks};
use profiler_common::abi::ThreadState;
use std::sync::Arc;

/// Keys of labels, by what they say. A file may have several; the first of these counts, whatever order they are in, and of
/// one key the least value.
const PROCESS: &[&str] = &["process", "process_name", "process.executable.name"];
const COMM: &[&str] = &["comm", "thread_name", "thread", "thread.name"];
const PID: &[&str] = &["pid", "process_id", "process.pid"];
const TID: &[&str] = &["tid", "thread_id", "thread.id"];

/// Owner and thread state of a sample, by labels of our own files and those of others.
pub(super) fn of<'a>(sample: &Sample, text: impl Fn(i64) -> &'a str) -> (Labels, &'a str) {
    let texts = |key: &str| {
        let labels = sample.label.iter().filter(|label| text(label.key) == key);
        labels
            .filter(|label| label.number == 0)
            .map(|label| text(label.text))
            .min()
    };
    let named = |keys: &[&str]| keys.iter().find_map(|key| texts(key)).map(str::to_owned);
    let number = |keys: &[&str]| {
        keys.iter().find_map(|key| {
            let labels = sample.label.iter().filter(|label| text(label.key) == *key);
            let numbers = labels.filter_map(|label| match text(label.text) {
                "" => u32::try_from(label.number).ok(),
                value => value.parse().ok(),
            });
            numbers.min()
        })
    };
    let labels = Labels {
        pid: number(PID),
        tid: number(TID),
        cpu: number(&["cpu"]),
        process: named(PROCESS),
        comm: named(COMM),
        cgroup: texts("cgroup")
            .map(|path| Arc::new(Cgroup::told(path, texts("container"), texts("pod")))),
        source: named(&["source"]),
        ..Labels::default()
    };
    (labels, texts("state").unwrap_or_default())
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
