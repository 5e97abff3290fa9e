//! Which code had no names, and how many samples that concerns.
//!
//! In: each piece of such code as it is met, and the samples whose stacks have frames in it. Out: all of it,
//! that of most samples first. Never: a remedy; reports have these.

use crate::object::BuildId;
use crate::process::CodeMaker;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

/// Code that had no names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnsymbolizedCode {
    /// An object that has no symbols of its own, and no debug file that was found.
    Object {
        /// Its name in frames.
        module: String,
        /// Where it was when it was mapped, as its process saw it.
        path: PathBuf,
        /// Which build it is, if it says so.
        build_id: Option<BuildId>,
        /// How far it could be read.
        reached: Reached,
    },
    /// Memory with code that the process made itself.
    Made {
        /// The process ID.
        tgid: u32,
        /// The maker of code that the process seems to be.
        maker: Option<&'static CodeMaker>,
        /// Whether its perf map or jitdump has other code.
        has_code_map: bool,
    },
}

/// How far an object could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reached {
    /// It is below our own root directory.
    Here,
    /// It is in another mount namespace, such as a container's.
    Elsewhere,
    /// It could not be opened: it was deleted or replaced, and its processes have ended.
    Gone,
    /// It may not be read.
    Denied,
    /// It is in a raw recording, and not here as it was then.
    Absent,
}

/// Code that had no names, and how many samples that concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsymbolized {
    /// The code.
    pub code: UnsymbolizedCode,
    /// How many firings had at least one frame there.
    pub count: u64,
}

/// The number of code that had no names; nothing for code that has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnsymbolizedId(Option<u32>);

/// All code without names that was met.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsymbolizedTable {
    all: Vec<Unsymbolized>,
    ids: HashMap<UnsymbolizedCode, UnsymbolizedId>,
    // Those that the sample at hand has.
    here: Vec<u32>,
}

impl UnsymbolizedTable {
    /// Its number.
    pub(super) fn intern(&mut self, code: UnsymbolizedCode) -> UnsymbolizedId {
        if let Some(&id) = self.ids.get(&code) {
            return id;
        }
        let id = UnsymbolizedId(Some(
            u32::try_from(self.all.len()).expect("these are objects and processes"),
        ));
        self.ids.insert(code.clone(), id);
        self.all.push(Unsymbolized { code, count: 0 });
        id
    }

    /// Counts the firings of one stack for all such code in it, once each.
    pub(super) fn count(&mut self, stack: impl Iterator<Item = UnsymbolizedId>, count: u64) {
        self.here.clear();
        for UnsymbolizedId(id) in stack {
            if let Some(id) = id
                && !self.here.contains(&id)
            {
                self.here.push(id);
                self.all[id as usize].count += count;
            }
        }
    }

    /// All that samples have, that of most samples first.
    pub(super) fn into_most_first(self) -> Vec<Unsymbolized> {
        let mut all = self.all;
        all.retain(|unsymbolized| unsymbolized.count > 0);
        all.sort_by_key(|unsymbolized| Reverse(unsymbolized.count));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tgid: u32) -> UnsymbolizedCode {
        UnsymbolizedCode::Made {
            tgid,
            maker: None,
            has_code_map: false,
        }
    }

    #[test]
    fn a_stack_counts_once_for_each_unsymbolized_module() {
        let mut unsymbolized = UnsymbolizedTable::default();
        let (one, two, idle) = (
            unsymbolized.intern(made(1)),
            unsymbolized.intern(made(2)),
            unsymbolized.intern(made(3)),
        );
        assert_ne!(one, two);
        assert_eq!(unsymbolized.intern(made(1)), one);
        unsymbolized.count([one, UnsymbolizedId::default(), one, two].into_iter(), 5);
        unsymbolized.count([two].into_iter(), 2);
        assert_ne!(idle, UnsymbolizedId::default());
        let found = unsymbolized.into_most_first();
        let widths: Vec<_> = found
            .iter()
            .map(|unsymbolized| unsymbolized.count)
            .collect();
        assert_eq!(widths, [7, 5]);
        assert_eq!(found[0].code, made(2));
    }
}
