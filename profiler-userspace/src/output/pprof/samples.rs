//! Samples: their stacks, in the order of folded text, and whose they are.
//!
//! In: a profile's samples. Out: IDs of locations from the leaf on, and labels.

use super::super::{leaf_first, value_types};
use super::tables::Tables;
use crate::pprof::Label;
use crate::profile::cgroup::Cgroup;
use crate::profile::{Labels, LabelsIndex, Profile, Sample};
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use std::borrow::Cow;

/// Samples, those that differ in their windows alone as one: the format has no times.
pub(super) fn timeless<'a>(profile: &Profile, samples: &'a [Sample]) -> Cow<'a, [Sample]> {
    if profile.windows.is_empty() {
        return Cow::Borrowed(samples);
    }
    let mut sums: IndexMap<_, Sample, RandomState> = IndexMap::default();
    for sample in samples {
        let owner = (sample.labels, sample.thread_state);
        let stacks = (sample.user, sample.kernel);
        let wait = (sample.reason, sample.waker);
        let sum = sums.entry((owner, stacks, wait)).or_insert(Sample {
            weight: 0,
            count: 0,
            ..*sample
        });
        sum.weight = sum.weight.saturating_add(sample.weight);
        sum.count = sum.count.saturating_add(sample.count);
    }
    Cow::Owned(sums.into_values().collect())
}

/// Writes samples: those of a profile, which refer to tables of it.
pub(super) struct Samples<'a, 't> {
    pub(super) profile: &'a Profile,
    pub(super) tables: &'t mut Tables<'a>,
}

impl Samples<'_, '_> {
    /// The locations of a sample from the leaf on, in the order of folded text.
    pub(super) fn stack(&mut self, sample: &Sample) -> Vec<u64> {
        leaf_first::stack(self.profile, sample, self.tables)
    }

    /// Owner of a sample, its waker, and what it did.
    pub(super) fn labels(&mut self, sample: &Sample) -> Vec<Label> {
        let mut labels = Vec::new();
        self.push_labels(sample.labels, "", &mut labels);
        let waker = sample.waker.map(|index| *self.profile.waker_at(index));
        if let Some(waker) = waker.filter(|waker| !waker.interrupt) {
            self.push_labels(waker.labels, "waker_", &mut labels);
        }
        let state = value_types::state(sample.thread_state);
        self.push_label("state", state, &mut labels);
        labels
    }

    fn push_labels(&mut self, index: LabelsIndex, before: &str, to: &mut Vec<Label>) {
        let Labels {
            process,
            comm,
            pid,
            tid,
            cpu,
            cgroup,
            source,
            ..
        } = self.profile.labels_at(index);
        let cgroup = cgroup.as_deref();
        // As text: some readers drop labels that are numbers.
        let text = |number: &Option<u32>| number.map(|number| number.to_string());
        let all = [
            ("process", process.clone()),
            ("comm", comm.clone()),
            ("pid", text(pid)),
            ("tid", text(tid)),
            ("cpu", text(cpu)),
            ("cgroup", cgroup.map(|it| it.path.to_string())),
            ("container", cgroup.and_then(Cgroup::container_name)),
            ("pod", cgroup.and_then(Cgroup::pod_name)),
            ("unit", cgroup.and_then(Cgroup::unit_name)),
            ("source", source.clone()),
        ];
        for (key, value) in all {
            if let Some(value) = value {
                self.push_label(&format!("{before}{key}"), &value, to);
            }
        }
    }

    fn push_label(&mut self, key: &str, text: &str, to: &mut Vec<Label>) {
        to.push(Label {
            key: self.tables.strings.number(key),
            text: self.tables.strings.number(text),
            ..Label::default()
        });
    }
}
