//! Whose samples are, as columns.
//!
//! In: the labels of a tree's samples. Out: each distinct owner once. What is not known is 0, and known numbers are one
//! more than they are.

use super::packed::{Columns, Names};
use crate::profile::fold::visible;
use crate::profile::{CallTree, Labels, LabelsIndex, Profile};
use indexmap::IndexSet;

/// An owner: thread's name, process, thread and CPU.
type Owner = (Option<String>, Option<u32>, Option<u32>, Option<u32>);

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
        let comm = self.all.iter().map(|(comm, ..)| {
            let comm = comm.as_deref();
            comm.map_or(0, |comm| names.number(&visible(comm)) + 1)
        });
        columns.push("owner_comm", comm);
        columns.push("owner_pid", self.all.iter().map(|(_, pid, ..)| number(pid)));
        columns.push(
            "owner_tid",
            self.all.iter().map(|(_, _, tid, _)| number(tid)),
        );
        columns.push(
            "owner_cpu",
            self.all.iter().map(|(_, _, _, cpu)| number(cpu)),
        );
    }
}

fn owner(labels: &Labels) -> Owner {
    let Labels {
        comm,
        pid,
        tid,
        cpu,
        ..
    } = labels;
    (comm.clone(), *pid, *tid, *cpu)
}
