//! Which code had no names, and how many samples that concerns.
//!
//! In: each gap as it is met, and the samples whose stacks have frames in it. Out: the gaps that were met,
//! the widest first. Says nothing about what would fill them; that is for whoever reports.

use crate::object::BuildId;
use crate::process::Runtime;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

/// Code that had no names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gap {
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
        /// What the process seems to be.
        runtime: Option<Runtime>,
        /// Whether it told of other code that it made.
        told: bool,
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
    /// It is told of by a raw recording, and not here as it was then.
    Absent,
}

/// A gap, and how wide it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnamed {
    /// The code.
    pub gap: Gap,
    /// How many firings had at least one frame there.
    pub count: u64,
}

/// A gap's number; nothing where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GapId(Option<u32>);

/// All gaps that were met.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    all: Vec<Unnamed>,
    ids: HashMap<Gap, GapId>,
    // Those that the sample at hand has.
    here: Vec<u32>,
}

impl Gaps {
    /// The number of a gap.
    pub(super) fn intern(&mut self, gap: Gap) -> GapId {
        if let Some(&id) = self.ids.get(&gap) {
            return id;
        }
        let id = GapId(Some(
            u32::try_from(self.all.len()).expect("gaps are fewer than objects and processes"),
        ));
        self.ids.insert(gap.clone(), id);
        self.all.push(Unnamed { gap, count: 0 });
        id
    }

    /// Counts the firings of one stack for every gap in it, once.
    pub(super) fn count(&mut self, stack: impl Iterator<Item = GapId>, count: u64) {
        self.here.clear();
        for GapId(id) in stack {
            if let Some(id) = id
                && !self.here.contains(&id)
            {
                self.here.push(id);
                self.all[id as usize].count += count;
            }
        }
    }

    /// The gaps that samples have, the widest first.
    pub(super) fn into_widest_first(self) -> Vec<Unnamed> {
        let mut all = self.all;
        all.retain(|unnamed| unnamed.count > 0);
        all.sort_by_key(|unnamed| Reverse(unnamed.count));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tgid: u32) -> Gap {
        Gap::Made {
            tgid,
            runtime: None,
            told: false,
        }
    }

    #[test]
    fn a_stack_counts_once_for_each_unsymbolized_module() {
        let mut gaps = Gaps::default();
        let (one, two, idle) = (
            gaps.intern(made(1)),
            gaps.intern(made(2)),
            gaps.intern(made(3)),
        );
        assert_ne!(one, two);
        assert_eq!(gaps.intern(made(1)), one);
        gaps.count([one, GapId::default(), one, two].into_iter(), 5);
        gaps.count([two].into_iter(), 2);
        assert_ne!(idle, GapId::default());
        let found = gaps.into_widest_first();
        let widths: Vec<_> = found.iter().map(|unnamed| unnamed.count).collect();
        assert_eq!(widths, [7, 5]);
        assert_eq!(found[0].gap, made(2));
    }
}
