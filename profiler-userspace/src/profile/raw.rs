//! The raw profile: what one drain brings up from the kernel, before anything has a name.
//!
//! In: filled by [`crate::kernel`]. Out: read by [`crate::symbolize`].
//! It owns its stacks, so nothing in it depends on a kernel-side position still being valid.

use super::Window;
use profiler_common::abi::{Doing, StackEnd};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Whom a sample belongs to: only what the user asked to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Who {
    /// The process (thread group) ID, as seen in our PID namespace; 0 is the idle task.
    pub tgid: u32,
    /// Tells apart processes that wore the same PID, and one process before and after `exec`. Zero
    /// where the kernel has no type information. See `profiler_common::abi::SampleKey::incarnation`.
    pub incarnation: u64,
    /// The thread's name, NUL-padded. Bytes from the target: anything may be in it.
    pub comm: [u8; 16],
    /// The thread ID, with `--per-thread`.
    pub tid: Option<u32>,
    /// The CPU, with `--per-cpu`.
    pub cpu: Option<u32>,
}

/// A stack as the kernel walked it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawStack {
    /// Addresses from leaf to root. The first is where the CPU was; the others are return addresses.
    pub addresses: Box<[u64]>,
    /// Why the walk stopped.
    pub end: StackEnd,
    /// Whether it went by frame pointer through code that its object's unwind instructions leave out,
    /// where a caller may be missing.
    pub guessed: bool,
}

/// An index into the [`RawProfile`]'s `stacks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackIndex(pub u32);

/// One tally: everything that was counted for one combination of owner and stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// Whose.
    pub who: Who,
    /// The user stack; none for kernel threads and where it was not asked for.
    pub user: Option<StackIndex>,
    /// The kernel stack; none where the CPU was in user mode or it was not asked for.
    pub kernel: Option<StackIndex>,
    /// What the thread was doing.
    pub doing: Doing,
    /// The sum of the weights.
    pub weight: u64,
    /// The number of firings.
    pub count: u64,
}

/// What tells samples apart.
type Key = (Who, Option<StackIndex>, Option<StackIndex>, Doing);

/// Everything drained from one window, in one drain or several.
#[derive(Clone, Debug, Default)]
pub struct RawProfile {
    /// The window that this covers.
    pub window: Window,
    /// Distinct stacks, of either kind.
    pub stacks: Vec<RawStack>,
    /// One per distinct owner and stacks.
    pub samples: Vec<RawSample>,
    stack_indices: HashMap<RawStack, StackIndex>,
    sample_indices: HashMap<Key, usize>,
}

impl RawProfile {
    /// The index of `stack`, which is added when it is not there yet.
    pub fn intern(&mut self, stack: RawStack) -> StackIndex {
        match self.stack_indices.entry(stack) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let index = StackIndex(
                    u32::try_from(self.stacks.len()).expect("fewer than 2^32 distinct stacks"),
                );
                self.stacks.push(new.key().clone());
                *new.insert(index)
            }
        }
    }

    /// Adds what was counted: to the sample of the same owner and stacks, if there is one.
    pub fn add(&mut self, sample: RawSample) {
        let key = (sample.who, sample.user, sample.kernel, sample.doing);
        match self.sample_indices.entry(key) {
            Entry::Occupied(known) => {
                let known = &mut self.samples[*known.get()];
                known.weight = known.weight.saturating_add(sample.weight);
                known.count += sample.count;
            }
            Entry::Vacant(new) => {
                new.insert(self.samples.len());
                self.samples.push(sample);
            }
        }
    }

    /// Those samples that are `wanted`, with their stacks.
    #[must_use]
    pub fn part(&self, wanted: impl Fn(&RawSample) -> bool) -> Self {
        self.reweighed(|sample| wanted(sample).then_some(*sample))
    }

    /// The samples that `change` makes of these, with their stacks; without those that it makes none of.
    #[must_use]
    pub fn reweighed(&self, mut change: impl FnMut(&RawSample) -> Option<RawSample>) -> Self {
        let mut part = Self {
            window: self.window,
            ..Self::default()
        };
        for sample in self.samples.iter().filter_map(&mut change) {
            let mut keep = |index: Option<StackIndex>| {
                index.map(|index| part.intern(self.stack(index).clone()))
            };
            let (user, kernel) = (keep(sample.user), keep(sample.kernel));
            part.add(RawSample {
                user,
                kernel,
                ..sample
            });
        }
        part
    }

    /// The stack at an index of this profile.
    pub fn stack(&self, index: StackIndex) -> &RawStack {
        &self.stacks[index.0 as usize]
    }

    /// The sum of all counts.
    pub fn total_count(&self) -> u64 {
        self.samples.iter().map(|sample| sample.count).sum()
    }
}
