//! The located profile: stacks of spots that mean the same in every process.
//!
//! In: spots, stacks and samples from [`crate::symbolize`], or read back from a raw recording. Out: the same
//! for whoever names them. Equal stacks of several processes are one stack here, and what was counted for
//! equal owners is one sample: which process it was is not shown, so it is not kept.
//! Never knows what an object is; whoever gave out its number does.

use super::raw::Who;
use super::{Frame, Window};
use indexmap::{IndexMap, IndexSet};
use profiler_common::abi::{Doing, StackEnd};
use std::hash::Hash;

/// An object's number, of whatever list its giver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIndex(pub u32);

/// What an address stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Spot {
    /// A place in an object.
    At {
        /// Which.
        object: ObjectIndex,
        /// How far into its file it is, or into the mapping if there is no file.
        offset: u64,
    },
    /// Something that has its name already: an index into [`Located::names`].
    Named(u32),
    /// An address of the kernel, whose code is the same for all.
    Kernel(u64),
    /// Nothing that was mapped.
    Unknown,
}

/// An index into the [`Located`]'s spots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpotIndex(pub u32);

/// A stack whose addresses have been located.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocatedStack {
    /// From leaf to root. The first is where the CPU was, the others are the calls.
    pub spots: Box<[SpotIndex]>,
    /// Why the walk stopped.
    pub end: StackEnd,
    /// Whether a frame pointer was followed where a caller may be missing.
    pub guessed: bool,
}

/// An index into the [`Located`]'s stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocatedStackIndex(pub u32);

/// Whom a sample belongs to, as far as that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The thread's name, NUL-padded. Bytes from the target: anything may be in it.
    pub comm: [u8; 16],
    /// The thread ID, with `--per-thread`.
    pub tid: Option<u32>,
    /// The CPU, with `--per-cpu`.
    pub cpu: Option<u32>,
}

impl From<&Who> for Label {
    fn from(who: &Who) -> Self {
        Self {
            comm: who.comm,
            tid: who.tid,
            cpu: who.cpu,
        }
    }
}

/// What tells samples apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocatedKey {
    /// Whose.
    pub label: Label,
    /// The user stack; none for kernel threads and where it was not asked for.
    pub user: Option<LocatedStackIndex>,
    /// The kernel stack; none where the CPU was in user mode or it was not asked for.
    pub kernel: Option<LocatedStackIndex>,
    /// What the thread was doing.
    pub doing: Doing,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The sum of the weights.
    pub weight: u64,
    /// The number of firings.
    pub count: u64,
}

/// Everything located so far.
#[derive(Clone, Debug, Default)]
pub struct Located {
    /// The window that this covers.
    pub window: Window,
    names: IndexSet<Frame>,
    spots: IndexSet<Spot>,
    stacks: IndexSet<LocatedStack>,
    samples: IndexMap<LocatedKey, Sums>,
}

impl Located {
    /// Nothing yet, of some time.
    pub fn new(window: Window) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    /// The spot that has this name.
    pub fn name(&mut self, frame: Frame) -> Spot {
        Spot::Named(number(&mut self.names, frame))
    }

    /// The index of a spot, which is added when it is not there yet.
    pub fn spot(&mut self, spot: Spot) -> SpotIndex {
        SpotIndex(number(&mut self.spots, spot))
    }

    /// The index of a stack, which is added when it is not there yet.
    pub fn stack(&mut self, stack: LocatedStack) -> LocatedStackIndex {
        debug_assert!(
            stack
                .spots
                .iter()
                .all(|spot| (spot.0 as usize) < self.spots.len())
        );
        LocatedStackIndex(number(&mut self.stacks, stack))
    }

    /// Adds what was counted: to the sample of the same owner and stacks, if there is one.
    pub fn add(&mut self, key: LocatedKey, sums: Sums) {
        let known = self.samples.entry(key).or_default();
        known.weight = known.weight.saturating_add(sums.weight);
        known.count = known.count.saturating_add(sums.count);
    }

    /// Those samples that are `wanted`, with their stacks.
    #[must_use]
    pub fn part(&self, wanted: impl Fn(&LocatedKey) -> bool) -> Self {
        self.changed(|key, sums| wanted(&key).then_some((key, sums)))
    }

    /// The samples that `change` makes of these, with their stacks; without those that it makes none of.
    #[must_use]
    pub fn changed(
        &self,
        mut change: impl FnMut(LocatedKey, Sums) -> Option<(LocatedKey, Sums)>,
    ) -> Self {
        let mut part = Self {
            window: self.window,
            ..Self::default()
        };
        let kept = self.samples().filter_map(|(key, sums)| change(*key, sums));
        for (key, sums) in kept {
            let mut keep = |index: LocatedStackIndex| part.keep(self, index);
            let key = LocatedKey {
                user: key.user.map(&mut keep),
                kernel: key.kernel.map(&mut keep),
                ..key
            };
            part.add(key, sums);
        }
        part
    }

    /// The index here of a stack of another profile's.
    fn keep(&mut self, other: &Self, index: LocatedStackIndex) -> LocatedStackIndex {
        let stack = other.stack_at(index);
        let spots = stack.spots.iter().map(|spot| {
            let spot = match other.spot_at(*spot) {
                Spot::Named(name) => self.name(other.names[name as usize].clone()),
                same => same,
            };
            self.spot(spot)
        });
        let spots = spots.collect();
        self.stack(LocatedStack { spots, ..*stack })
    }

    /// The frames of named spots, by their numbers.
    pub fn names(&self) -> &IndexSet<Frame> {
        &self.names
    }

    /// All spots, by their indices.
    pub fn spots(&self) -> &IndexSet<Spot> {
        &self.spots
    }

    /// All stacks, of either kind, by their indices.
    pub fn stacks(&self) -> &IndexSet<LocatedStack> {
        &self.stacks
    }

    /// All samples.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = (&LocatedKey, Sums)> {
        self.samples.iter().map(|(key, sums)| (key, *sums))
    }

    /// The stack at an index of this profile.
    pub fn stack_at(&self, index: LocatedStackIndex) -> &LocatedStack {
        &self.stacks[index.0 as usize]
    }

    /// The spot at an index of this profile.
    pub fn spot_at(&self, index: SpotIndex) -> Spot {
        self.spots[index.0 as usize]
    }

    /// The sum of all counts.
    pub fn total_count(&self) -> u64 {
        let counts = self.samples.values().map(|sums| sums.count);
        counts.fold(0, u64::saturating_add)
    }
}

fn number<T: Hash + Eq>(set: &mut IndexSet<T>, value: T) -> u32 {
    let (index, _) = set.insert_full(value);
    u32::try_from(index).expect("a profile has fewer than 2^32 distinct parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_and_samples_are_one() {
        let mut located = Located::default();
        let object = ObjectIndex(7);
        let spots: Vec<SpotIndex> = [1, 2, 1]
            .map(|offset| located.spot(Spot::At { object, offset }))
            .to_vec();
        assert_eq!(spots, [SpotIndex(0), SpotIndex(1), SpotIndex(0)]);
        let mut stack = |guessed| {
            located.stack(LocatedStack {
                spots: spots.clone().into(),
                end: StackEnd::Root,
                guessed,
            })
        };
        let (one, again, other) = (stack(false), stack(false), stack(true));
        assert_eq!(one, again);
        assert_ne!(one, other);
        let key = LocatedKey {
            label: Label {
                comm: [b'a'; 16],
                tid: None,
                cpu: Some(1),
            },
            user: Some(one),
            kernel: None,
            doing: Doing::Running,
        };
        let sums = |weight, count| Sums { weight, count };
        located.add(key, sums(u64::MAX - 1, 2));
        located.add(key, sums(5, 3));
        located.add(
            LocatedKey {
                user: Some(other),
                ..key
            },
            sums(1, 1),
        );
        assert_eq!(located.samples().len(), 2);
        assert_eq!(located.samples().next(), Some((&key, sums(u64::MAX, 5))));
        assert_eq!(located.total_count(), 6);
    }
}
