//! Samples, by process, stack and attributes.
//!
//! In: a profile's samples. Out: a resource for each process, with samples no two of which have the same stack and
//! attributes: what was counted for these in several windows are several values of one sample.

use super::super::leaf_first;
use super::super::sender::Sender;
use super::dictionary::Dictionary;
use super::{Head, attributes, signed, wire};
use crate::profile::{LabelsIndex, Profile};
use foldhash::fast::RandomState;
use indexmap::{IndexMap, IndexSet};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::cmp::Reverse;
use std::collections::HashMap;

/// All that tells samples of a process apart, by the dictionary's numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The process's place in [`Rows`].
    process: u32,
    stack: i32,
    /// The attributes' place in [`Rows`].
    attributes: u32,
}

/// Count of a sample in one window.
struct WindowCount {
    key: Key,
    window: u32,
    count: u64,
    weight: u64,
}

/// A process, or all processes that one resource stands for.
struct Process {
    /// The labels of a sample of it.
    labels: LabelsIndex,
    /// The labels that it is sent with; none in a file.
    sent: Option<Vec<(String, String)>>,
    /// The weight of all of its samples.
    weight: u64,
}

/// All that was counted.
pub(super) struct Rows {
    /// In order of their keys and windows.
    rows: Vec<WindowCount>,
    attributes: IndexSet<Vec<i32>, RandomState>,
    processes: Vec<Process>,
}

/// Counts, in the dictionary's numbers.
pub(super) fn rows(
    profile: &Profile,
    sender: Option<&Sender>,
    dictionary: &mut Dictionary<'_>,
) -> Rows {
    let mut attribute_sets = IndexSet::default();
    let mut processes: IndexMap<_, Process, RandomState> = IndexMap::default();
    let mut owners: HashMap<LabelsIndex, usize, RandomState> = HashMap::default();
    let mut stacks: HashMap<_, i32, RandomState> = HashMap::default();
    let mut attributes: HashMap<_, u32, RandomState> = HashMap::default();
    let mut rows = Vec::with_capacity(profile.samples().len());
    for sample in profile.samples() {
        let number = *owners.entry(sample.labels).or_insert_with(|| {
            let labels = profile.labels_at(sample.labels);
            let sent = sender.map(|sender| sender.labels(labels));
            let of_file = sent.is_none().then(|| {
                // Without their IDs, processes of one name are one.
                let name = labels.pid.is_none().then(|| labels.name());
                let source = (labels.source.as_deref(), labels.cgroup.as_deref());
                (source, &labels.context, labels.pid, labels.start, name)
            });
            let process = processes.entry((of_file, sent.clone()));
            let number = process.index();
            process.or_insert(Process {
                labels: sample.labels,
                sent,
                weight: 0,
            });
            number
        });
        let weight = &mut processes[number].weight;
        *weight = weight.saturating_add(sample.weight);
        let (state, waker) = (sample.thread_state, sample.waker);
        let shown = (sample.user, sample.kernel, state, sample.reason, waker);
        let stack = *stacks.entry(shown).or_insert_with(|| {
            let stack = leaf_first::stack(profile, sample, dictionary);
            dictionary.tables.stack(stack)
        });
        let of = (sample.labels, state, waker);
        let attributes = *attributes.entry(of).or_insert_with(|| {
            let of = dictionary.attributes(attributes::sample(profile, sample));
            attribute_sets.insert_full(of).0 as u32
        });
        rows.push(WindowCount {
            key: Key {
                process: number as u32,
                stack,
                attributes,
            },
            window: sample.window.0,
            count: sample.count,
            weight: sample.weight,
        });
    }
    rows.sort_unstable_by_key(|row| (row.key, row.window));
    rows.dedup_by(|next, row| {
        let is_same = (row.key, row.window) == (next.key, next.window);
        if is_same {
            row.count = row.count.saturating_add(next.count);
            row.weight = row.weight.saturating_add(next.weight);
        }
        is_same
    });
    Rows {
        rows,
        attributes: attribute_sets,
        processes: processes.into_values().collect(),
    }
}

/// A resource for each process, the busiest first.
pub(super) fn of<'a>(
    profile: &'a Profile,
    head: &'a Head<'_>,
    rows: Rows,
) -> impl Iterator<Item = wire::ResourceProfiles> + 'a {
    let mut order: Vec<usize> = (0..rows.processes.len()).collect();
    order.sort_by_key(|process| Reverse(rows.processes[*process].weight));
    order.into_iter().map(move |process| {
        let is_before = |row: &WindowCount| row.key.process < process as u32;
        let begin = rows.rows.partition_point(is_before);
        let of_process =
            rows.rows[begin..].partition_point(|row| row.key.process == process as u32);
        let of_process = &rows.rows[begin..begin + of_process];
        let Process { labels, sent, .. } = &rows.processes[process];
        let profile_of = |sample_type, value: fn(&WindowCount) -> u64| wire::Profile {
            profile_id: (head.sender.zip(sent.as_ref())).map_or_else(Vec::new, |(sender, sent)| {
                let wire::ValueType { type_strindex, .. } = sample_type;
                let of = [head.empty.time_unix_nano, type_strindex as u64];
                sender.id(sent, of).to_vec()
            }),
            sample_type: Some(sample_type),
            samples: of_process
                .chunk_by(|row, next| row.key == next.key)
                .map(|of| sample(head, &rows.attributes, of, value))
                .collect(),
            ..head.empty.clone()
        };
        let weight = head.weight.map(|of| profile_of(of, |row| row.weight));
        let count = profile_of(head.count, |row| row.count);
        wire::ResourceProfiles {
            resource: Some(Resource {
                attributes: match sent {
                    Some(sent) => attributes::sent(sent),
                    None => attributes::resource(profile.labels_at(*labels)),
                },
                ..Resource::default()
            }),
            scope_profiles: vec![wire::ScopeProfiles {
                scope: Some(InstrumentationScope {
                    name: env!("CARGO_PKG_NAME").to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    ..InstrumentationScope::default()
                }),
                profiles: weight.into_iter().chain([count]).collect(),
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }
    })
}

/// A sample of rows that differ in their windows alone.
fn sample(
    head: &Head<'_>,
    attributes: &IndexSet<Vec<i32>, RandomState>,
    rows: &[WindowCount],
    value: fn(&WindowCount) -> u64,
) -> wire::Sample {
    let key = rows[0].key;
    let values = rows.iter().map(value);
    let (values, timestamps_unix_nano) = match &head.windows {
        Some(windows) => {
            let last = windows.len().saturating_sub(1);
            let at = |row: &WindowCount| windows[last.min(row.window as usize)];
            (values.map(signed).collect(), rows.iter().map(at).collect())
        }
        None => {
            let sum = values.fold(0, u64::saturating_add);
            (vec![signed(sum)], Vec::new())
        }
    };
    wire::Sample {
        stack_index: key.stack,
        attribute_indices: attributes[key.attributes as usize].clone(),
        link_index: 0,
        values,
        timestamps_unix_nano,
    }
}
