//! Owners of samples, as columns.
//!
//! In: the labels of a tree's samples. Out: each distinct owner once. What is not known is 0, and known numbers are one
//! more than they are.

use super::packed::{Columns, Names};
use crate::profile::cgroup::Cgroup;
use crate::profile::fold::visible;
use crate::profile::{CallTree, Labels, LabelsIndex, Profile};
use indexmap::IndexSet;

/// An owner.
#[derive(PartialEq, Eq, Hash)]
struct Owner {
    name: Option<String>,
    /// The thread's name, where that is another.
    thread: Option<String>,
    container: Option<String>,
    pod: Option<String>,
    unit: Option<String>,
    pid: Option<u32>,
    tid: Option<u32>,
    cpu: Option<u32>,
}

/// A column of what owners are called, or belong to.
type Named = (&'static str, fn(&Owner) -> &Option<String>);

/// A column of numbers.
type Numbered = (&'static str, fn(&Owner) -> Option<u32>);

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
        let named: [Named; 5] = [
            ("owner_name", |owner| &owner.name),
            ("owner_thread", |owner| &owner.thread),
            ("owner_container", |owner| &owner.container),
            ("owner_pod", |owner| &owner.pod),
            ("owner_unit", |owner| &owner.unit),
        ];
        for (column, of) in named {
            let values = self.all.iter().map(|owner| {
                let name = of(owner).as_deref();
                name.map_or(0, |name| names.number(&visible(name)) + 1)
            });
            columns.push(column, values);
        }
        let numbered: [Numbered; 3] = [
            ("owner_pid", |owner| owner.pid),
            ("owner_tid", |owner| owner.tid),
            ("owner_cpu", |owner| owner.cpu),
        ];
        for (column, of) in numbered {
            let values =
                (self.all.iter()).map(|owner| of(owner).map_or(0, |number| u64::from(number) + 1));
            columns.push(column, values);
        }
    }
}

fn owner(labels: &Labels) -> Owner {
    let text = |name: Option<&str>| name.map(str::to_owned);
    let cgroup = labels.cgroup.as_deref();
    Owner {
        name: text(labels.name()),
        thread: text(labels.thread()),
        container: cgroup.and_then(Cgroup::container_name),
        pod: cgroup.and_then(Cgroup::pod_name),
        unit: cgroup.and_then(Cgroup::unit_name),
        pid: labels.pid,
        tid: labels.tid,
        cpu: labels.cpu,
    }
}
