//! Cgroups of this machine: which hierarchy tells most, what is in it, and what its cgroups are called.
//!
//! In: `/proc/self/mountinfo`, the hierarchy's directories, state files of container runtimes, paths that the kernel half
//! reports. Out: [`Cgroup`]s, and which of them are wanted. Never fails: what cannot be read has no name.

mod containers;
mod hierarchy;
mod resolve;

pub use hierarchy::{Hierarchy, HierarchyKind};
pub use resolve::{Resolved, resolve};

use crate::profile::cgroup::{Cgroup, CgroupPattern};
use containers::Containers;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The cgroups of a recording.
#[derive(Clone, Debug)]
pub struct Cgroups {
    hierarchy: Hierarchy,
    /// Those that are recorded; none for all.
    wanted: Option<Vec<CgroupPattern>>,
    containers: Containers,
    known: HashMap<u64, Arc<Cgroup>>,
}

impl Cgroups {
    /// Cgroups of this hierarchy.
    pub fn new(hierarchy: Hierarchy, wanted: Option<Vec<CgroupPattern>>) -> Self {
        Self {
            hierarchy,
            wanted,
            containers: Containers::default(),
            known: HashMap::new(),
        }
    }

    /// The kind of their hierarchy.
    pub fn kind(&self) -> &HierarchyKind {
        &self.hierarchy.kind
    }

    /// The cgroup of this ID, whose path the kernel half reports: names from its directory up to the root.
    pub fn meet(&mut self, id: u64, names: &[Box<[u8]>], is_cut: bool) -> Arc<Cgroup> {
        // The directory has all of a path that is too deep for the report.
        if is_cut && let Some(whole) = self.find(id) {
            return whole;
        }
        let path = path_of(names, is_cut);
        let cgroup = Arc::new(self.named(path));
        self.known.insert(id, Arc::clone(&cgroup));
        cgroup
    }

    /// The cgroup of this ID, of which nothing was reported; none if it is not there any more.
    pub fn find(&mut self, id: u64) -> Option<Arc<Cgroup>> {
        if !self.known.contains_key(&id) {
            for (id, cgroup) in self.all() {
                self.known.entry(id).or_insert(cgroup);
            }
        }
        self.known.get(&id).cloned()
    }

    /// All that are there now, by their IDs.
    pub fn all(&mut self) -> Vec<(u64, Arc<Cgroup>)> {
        let there = self.hierarchy.walk().into_iter();
        there
            .map(|(id, path, _)| (id, Arc::new(self.named(path))))
            .collect()
    }

    /// The cgroup of a path, with the names that it has.
    fn named(&self, path: String) -> Cgroup {
        let owner = |path: &str| self.hierarchy.owner(path);
        self.containers.name(Cgroup::of_path(path), owner)
    }

    /// Whether a cgroup is to be recorded.
    pub fn wants(&self, cgroup: &Cgroup) -> bool {
        let Some(wanted) = &self.wanted else {
            return true;
        };
        // In a cgroup namespace it may be known by the path in there.
        let inside = self.hierarchy.inside(&cgroup.path).map(Cgroup::of_path);
        let is_met = |pattern: &CgroupPattern| {
            pattern.is_met_by(cgroup)
                || inside
                    .as_ref()
                    .is_some_and(|inside| pattern.is_met_by(inside))
        };
        wanted.iter().any(is_met)
    }

    /// Whether only some are recorded.
    pub fn has_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Has it know its own cgroup, as the kernel half reports it, by which paths inside a namespace are told from the host's.
    pub fn note_own(&mut self, names: &[Box<[u8]>]) {
        self.hierarchy.note_own(&path_of(names, false));
    }

    /// Whether the profiler is in a cgroup namespace, so that its own cgroup should be looked at.
    pub fn is_in_namespace(&self) -> bool {
        std::fs::read_link(Path::new("/proc/self/ns/cgroup"))
            .is_ok_and(|link| link.as_os_str() != INITIAL_NAMESPACE)
    }
}

/// The initial cgroup namespace (`include/linux/proc_ns.h`, `PROC_CGROUP_INIT_INO`).
const INITIAL_NAMESPACE: &str = "cgroup:[4026531835]";

/// The path of names from a directory up to the root's, which is empty.
fn path_of(names: &[Box<[u8]>], is_cut: bool) -> String {
    let mut path = String::new();
    if is_cut {
        path.push_str("/…");
    }
    for name in names.iter().rev().filter(|name| !name.is_empty()) {
        path.push('/');
        path.push_str(&String::from_utf8_lossy(name));
    }
    if path.is_empty() {
        path.push('/');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Box<[u8]>> {
        let bytes = names.iter().map(|name| name.as_bytes().into());
        bytes.collect()
    }

    #[test]
    fn a_path_that_was_cut_is_that_of_the_directory_if_it_is_there() {
        let hierarchy = Hierarchy::parse(&[], "0::/\n").remove(0);
        let mut cgroups = Cgroups::new(hierarchy, None);
        let whole = Arc::new(Cgroup::of_path("/a/b/c"));
        cgroups.known.insert(7, Arc::clone(&whole));
        assert_eq!(cgroups.meet(7, &names(&["c"]), true), whole);
        assert_eq!(&*cgroups.meet(8, &names(&["c"]), true).path, "/…/c");
    }

    #[test]
    fn a_path_is_its_names_from_the_root_on() {
        assert_eq!(path_of(&names(&["b", "a", ""]), false), "/a/b");
        assert_eq!(path_of(&names(&[""]), false), "/");
        assert_eq!(path_of(&names(&["b", "a"]), true), "/…/a/b");
        assert_eq!(path_of(&[b"\xff".as_slice().into()], false), "/\u{fffd}");
    }
}
