//! Lanes of a flame chart: one for each thread or process.
//!
//! In: a profile's labels, and what its samples weigh. Out: for each label its lane, the busiest first, and what each lane is
//! called. Of many lanes the last stands for all the rest, so that pictures stay pictures; it says so.

use crate::profile::{CallTree, Frame, FrameKind, Labels, Profile};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// More lanes make a picture of many screens; the HTML page has as many as there are.
const MAX_LANES: usize = 24;

/// Which lane samples are in.
pub(super) struct Lanes {
    /// The name of each; none where there is but one chart.
    pub(super) names: Vec<Frame>,
    /// By labels.
    of_labels: Vec<u32>,
}

impl Lanes {
    /// Those of a profile: of threads where these are told apart, else of processes.
    pub(super) fn new(profile: &Profile, tree: &CallTree) -> Self {
        let labels: Vec<&Labels> = profile.all_labels().collect();
        let by_thread = labels.iter().any(|labels| labels.tid.is_some());
        if !(by_thread || labels.iter().any(|labels| labels.pid.is_some())) {
            return Self::none(labels.len());
        }
        let key = |labels: &Labels| Key::of(labels, by_thread);
        let mut weights: HashMap<Key, (u64, BTreeMap<String, u64>)> = HashMap::new();
        for sample in tree.samples() {
            let labels = labels[sample.labels.0 as usize];
            let (all, names) = weights.entry(key(labels)).or_default();
            let named = names.entry(name(labels, by_thread)).or_default();
            for sum in [all, named] {
                *sum = sum.saturating_add(sample.weight);
            }
        }
        // Threads may change their names; the one with most weight is the lane's.
        let mut order: Vec<(Reverse<u64>, String, Key)> = (weights.into_iter())
            .map(|(key, (all, names))| {
                let most = names.into_iter().max_by_key(|(_, weight)| *weight);
                let (name, _) = most.unwrap_or_default();
                (Reverse(all), name, key)
            })
            .collect();
        order.sort();
        let last = MAX_LANES - 1;
        let rest = order.len().saturating_sub(last);
        let mut names: Vec<Frame> = Vec::new();
        let mut places: HashMap<Key, u32> = HashMap::new();
        for (number, (_, name, key)) in order.into_iter().enumerate() {
            let is_own = number < last || rest == 1;
            if number <= last {
                let name = match is_own {
                    true => name,
                    false => format!("[{rest} others]"),
                };
                let kind = if is_own {
                    FrameKind::Label
                } else {
                    FrameKind::Mark
                };
                names.push(Frame::new(name, kind));
            }
            places.insert(key, number.min(last) as u32);
        }
        if names.len() < 2 {
            return Self::none(labels.len());
        }
        let place = |labels: &&Labels| places.get(&key(labels)).copied().unwrap_or_default();
        Self {
            of_labels: labels.iter().map(place).collect(),
            names,
        }
    }

    /// One chart for all of so many labels.
    fn none(labels: usize) -> Self {
        Self {
            names: Vec::new(),
            of_labels: vec![0; labels],
        }
    }

    /// The lane of samples with these labels, an index of the profile's.
    pub(super) fn of(&self, labels: usize) -> u32 {
        self.of_labels[labels]
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.names.len().max(1)
    }
}

/// A thread, or a process where threads are not told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    /// The process, if it is known, and the thread.
    Thread(Option<u32>, u32),
    Process(u32),
    /// Neither is known.
    Name(String),
}

impl Key {
    fn of(labels: &Labels, by_thread: bool) -> Self {
        match (labels.tid.filter(|_| by_thread), labels.pid) {
            (Some(tid), pid) => Self::Thread(pid, tid),
            (None, Some(pid)) => Self::Process(pid),
            (None, None) => Self::Name(name(labels, by_thread)),
        }
    }
}

/// A thread or process as its lane is called: a thread behind its process where that has another name.
fn name(labels: &Labels, by_thread: bool) -> String {
    let (process, thread) = (labels.name(), labels.thread());
    let own = |thread: &str| match process.filter(|process| *process != thread) {
        Some(process) => format!("{process} / {thread}"),
        None => thread.to_owned(),
    };
    let (number, name) = match by_thread {
        true => (labels.tid, thread.map(own)),
        false => (labels.pid, None),
    };
    let name = name.or_else(|| process.map(str::to_owned));
    let name = name.unwrap_or_else(|| "[no name]".to_owned());
    match number {
        Some(tid) if by_thread => format!("{name} [tid {tid}]"),
        Some(pid) => format!("{name} ({pid})"),
        None => name,
    }
}
