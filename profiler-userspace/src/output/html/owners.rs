//! Whose samples are, as columns.
//!
//! In: the labels of a tree's samples. Out: each distinct owner once. What is not known is 0, and known numbers are one
//! more than they are.

use super::packed::{Columns, Names};
use crate::profile::fold::visible;
use crate::profile::{CallTree, Labels, LabelsIndex, Profile};
use indexmap::IndexSet;

/// An owner: its name, process, thread and CPU, and the thread's name where that is another.
type Owner = (
    Option<String>,
    Option<u32>,
    Option<u32>,
    Option<u32>,
    Option<String>,
);

/// The owners of a profile's samples.
pub(super) struct Owners {
    all: IndexSet<Owner>,
    /// By the profile's labels.
    places: Vec<u32>,
}

impl Owners {
    /// The owners of a tree's samples, in the order in which these come.
    pub(super) fn new(profile: &Profile, tree: &CallTree) -> Self {
        let mut all = IndexSet::new();
        let mut places: Vec<Option<u32>> = Vec::new();
        for sample in tree.samples() {
            let place = sample.labels.0 as usize;
            if places.len() <= place {
                places.resize(place + 1, None);
            }
            places[place].get_or_insert_with(|| {
                let owner = owner(profile.labels_at(sample.labels));
                all.insert_full(owner).0 as u32
            });
        }
        let places = places.into_iter().map(Option::unwrap_or_default).collect();
        Self { all, places }
    }

    /// The place of labels that some sample has.
    pub(super) fn place(&self, labels: LabelsIndex) -> u32 {
        self.places[labels.0 as usize]
    }

    /// Adds the columns.
    pub(super) fn push(&self, names: &mut Names, columns: &mut Columns) {
        let number = |number: &Option<u32>| number.map_or(0, |number| u64::from(number) + 1);
        let mut named = |name: &Option<String>| {
            let name = name.as_deref();
            name.map_or(0, |name| names.number(&visible(name)) + 1)
        };
        let name = self.all.iter().map(|(name, ..)| named(name));
        columns.push("owner_name", name);
        let thread = self.all.iter().map(|(.., thread)| named(thread));
        columns.push("owner_thread", thread);
        columns.push("owner_pid", self.all.iter().map(|(_, pid, ..)| number(pid)));
        columns.push(
            "owner_tid",
            self.all.iter().map(|(_, _, tid, ..)| number(tid)),
        );
        columns.push(
            "owner_cpu",
            self.all.iter().map(|(_, _, _, cpu, _)| number(cpu)),
        );
    }
}

fn owner(labels: &Labels) -> Owner {
    let text = |name: Option<&str>| name.map(str::to_owned);
    let Labels { pid, tid, cpu, .. } = labels;
    (text(labels.name()), *pid, *tid, *cpu, text(labels.thread()))
}
