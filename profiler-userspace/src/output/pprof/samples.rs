//! Samples: their stacks, in the order of folded text, and whose they are.
//!
//! In: a profile's samples. Out: IDs of locations from the leaf on, and labels.

use super::tables::Tables;
use super::wire::Label;
use crate::profile::normalized::NormalizedStackIndex;
use crate::profile::{Labels, LabelsIndex, Profile, Sample, Wakers, marks};
use profiler_common::abi::ThreadState;

/// Writes samples: those of a profile, which refer to tables of it.
pub(super) struct Samples<'a, 't> {
    pub(super) profile: &'a Profile,
    pub(super) tables: &'t mut Tables<'a>,
}

impl Samples<'_, '_> {
    /// The locations of a sample from the leaf on, in the order of folded text.
    pub(super) fn stack(&mut self, sample: &Sample) -> Vec<u64> {
        let view = self.profile.off_cpu;
        let mut ids = Vec::new();
        match view.map(|view| view.wakers) {
            Some(Wakers::Alone) => {
                self.push_waker(sample, &mut ids);
                return ids;
            }
            Some(Wakers::Above) => {
                self.push_waker(sample, &mut ids);
                // The waker stands upside down above what waited.
                ids.reverse();
                ids.push(self.tables.mark(marks::WOKEN_BY));
            }
            Some(Wakers::None) | None => {}
        }
        let mark = match (sample.thread_state, sample.reason) {
            (ThreadState::Running, _) => None,
            (ThreadState::Ran, _) => Some(marks::NOT_SAMPLED),
            (ThreadState::Runnable, _) => Some(marks::RUNNABLE),
            (ThreadState::Blocked | ThreadState::Woken, Some(reason)) => Some(reason.name()),
            (ThreadState::Blocked | ThreadState::Woken, None) => {
                let is_told = view.is_none_or(|view| view.ran);
                is_told.then_some(marks::BLOCKED)
            }
        };
        ids.extend(mark.map(|mark| self.tables.mark(mark)));
        self.push_thread(sample.user, sample.kernel, &mut ids);
        ids
    }

    fn push_thread(
        &mut self,
        user: Option<NormalizedStackIndex>,
        kernel: Option<NormalizedStackIndex>,
        ids: &mut Vec<u64>,
    ) {
        let profile = self.profile;
        for index in [kernel, user].into_iter().flatten() {
            let stack = profile.stack_at(index);
            for location in &stack.locations {
                ids.push(self.tables.location(*location));
            }
            ids.extend(stack.end.mark().map(|mark| self.tables.mark(mark)));
        }
    }

    fn push_waker(&mut self, sample: &Sample, ids: &mut Vec<u64>) {
        let waker = sample.waker.map(|index| *self.profile.waker_at(index));
        let mark = match (sample.thread_state, waker) {
            (ThreadState::Woken, Some(waker)) if waker.interrupt => {
                self.push_thread(None, waker.kernel, ids);
                marks::INTERRUPT
            }
            (ThreadState::Woken, Some(waker)) => {
                return self.push_thread(waker.user, waker.kernel, ids);
            }
            (ThreadState::Woken, None) => marks::WAKER_UNSEEN,
            _ => marks::NOT_WOKEN,
        };
        ids.push(self.tables.mark(mark));
    }

    /// Whose a sample is, who woke it, and what it did.
    pub(super) fn labels(&mut self, sample: &Sample) -> Vec<Label> {
        let mut labels = Vec::new();
        self.push_labels(sample.labels, "", &mut labels);
        let waker = sample.waker.map(|index| *self.profile.waker_at(index));
        if let Some(waker) = waker.filter(|waker| !waker.interrupt) {
            self.push_labels(waker.labels, "waker_", &mut labels);
        }
        let state = match sample.thread_state {
            ThreadState::Running | ThreadState::Ran => "running",
            ThreadState::Runnable => "runnable",
            ThreadState::Blocked | ThreadState::Woken => "blocked",
        };
        self.push_label("state", state, &mut labels);
        labels
    }

    fn push_labels(&mut self, index: LabelsIndex, before: &str, to: &mut Vec<Label>) {
        let Labels {
            comm,
            pid,
            tid,
            cpu,
            ..
        } = self.profile.labels_at(index);
        // As text: some readers drop labels that are numbers.
        let text = |number: &Option<u32>| number.map(|number| number.to_string());
        let all = [
            ("comm", comm.clone()),
            ("pid", text(pid)),
            ("tid", text(tid)),
            ("cpu", text(cpu)),
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
        });
    }
}
