//! Owners of samples, in words.
//!
//! In: a sample's labels. Out: the name of a process or thread, for outputs that show each apart.

use crate::profile::{CallTree, Labels, LabelsIndex, Profile};
use indexmap::IndexMap;

use crate::profile::marks::UNKNOWN;

/// The name of whose labels these are: `postgres (pid 12, tid 13)`, behind its source where these are told apart.
pub(super) fn name(labels: &Labels) -> String {
    let process = labels.name().unwrap_or(UNKNOWN);
    let thread = labels.tid.map(|tid| match labels.thread() {
        Some(name) => format!("tid {tid} {name}"),
        None => format!("tid {tid}"),
    });
    let ids = [labels.pid.map(|pid| format!("pid {pid}")), thread];
    let ids: Vec<String> = ids.into_iter().flatten().collect();
    let name = match &*ids {
        [] => process.to_owned(),
        ids => format!("{process} ({})", ids.join(", ")),
    };
    match &labels.source {
        Some(source) => format!("{source}: {name}"),
        None => name,
    }
}

/// The samples of each process, or thread where threads are told apart, as indices into the tree's: the one with the most
/// first.
pub(super) fn samples(profile: &Profile, tree: &CallTree) -> Vec<(LabelsIndex, Vec<usize>)> {
    let mut owners: IndexMap<_, (LabelsIndex, Vec<usize>, u64)> = IndexMap::new();
    for (index, sample) in tree.samples().iter().enumerate() {
        let labels = profile.labels_at(sample.labels);
        let process = (labels.source.as_deref(), labels.pid, labels.start);
        let key = (process, labels.tid, labels.name());
        let (_, samples, weight) = (owners.entry(key)).or_insert((sample.labels, Vec::new(), 0));
        samples.push(index);
        *weight = weight.saturating_add(sample.weight);
    }
    let mut owners: Vec<_> = owners.into_values().collect();
    owners.sort_by_key(|(_, _, weight)| std::cmp::Reverse(*weight));
    (owners.into_iter())
        .map(|(labels, samples, _)| (labels, samples))
        .collect()
}
