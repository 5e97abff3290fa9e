//! The raw profile: what drains bring up from the kernel, before its addresses mean anything.
//!
//! In: filled by [`crate::kernel`]. Out: emptied by [`crate::symbolize`], which knows what addresses mean.
//! It owns its stacks, so nothing in it depends on a kernel-side position still being valid.

use super::WindowIndex;
pub use super::raw_frame::{FileName, RawFrame};
use foldhash::HashMap;
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Owner of a sample: only what the user asked to tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// The number of the cgroup. Zero where cgroups are not told apart. See `profiler_common::abi::SampleKey::cgroup`.
    pub cgroup: u16,
}

/// A stack as the kernel walked it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawStack {
    /// Frames from leaf to root.
    pub frames: Box<[RawFrame]>,
    /// Why the walk stopped.
    pub end: StackEnd,
    /// Guesses that it used beside unwind instructions.
    pub fallbacks: Fallbacks,
    /// The [check](profiler_common::abi::MappingCheck) of the mappings that a user stack's addresses lay in; zero if they are
    /// not known.
    pub check: u32,
}

/// An index into the [`RawProfile`]'s `stacks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackIndex(pub u32);

/// Waker that ended waits, and what it did then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waker {
    /// The waker.
    pub who: Who,
    /// Its user stack; none for kernel threads and where it was not asked for.
    pub user: Option<StackIndex>,
    /// Its kernel stack.
    pub kernel: Option<StackIndex>,
}

/// An index into the [`RawProfile`]'s `wakers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WakerIndex(pub u32);

/// One tally: everything that was counted for one combination of owner and stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawSample {
    /// Owner.
    pub who: Who,
    /// The user stack; none for kernel threads and where it was not asked for.
    pub user: Option<StackIndex>,
    /// The kernel stack; none where the CPU was in user mode or it was not asked for.
    pub kernel: Option<StackIndex>,
    /// State of the thread.
    pub thread_state: ThreadState,
    /// The number of the event that counted it.
    pub event: u8,
    /// Waker that ended the wait, where that is asked for and was seen.
    pub waker: Option<WakerIndex>,
    /// When it was counted.
    pub window: WindowIndex,
    /// The sum of the weights.
    pub weight: u64,
    /// The number of firings.
    pub count: u64,
}

/// Parts of what was recorded, as bits: one for each event, and one for waits, which have no event's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parts(pub u32);

impl Parts {
    /// All that was recorded.
    pub const ALL: Self = Self(u32::MAX);
    /// Waits.
    pub const WAITS: Self = Self(1 << 31);

    /// Counts of the event of this number while threads ran.
    pub const fn of_event(event: u8) -> Self {
        Self(1 << event)
    }

    /// The part that a sample is of.
    pub fn of(thread_state: ThreadState, event: u8) -> Self {
        if thread_state == ThreadState::Running {
            Self::of_event(event)
        } else {
            Self::WAITS
        }
    }

    /// Whether some of these are among `others`.
    pub const fn touch(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

impl RawProfile {
    /// Takes out the samples that `is_unwanted` says so of. Their stacks stay.
    pub fn leave_out(&mut self, mut is_unwanted: impl FnMut(&RawSample) -> bool) {
        let before = self.samples.len();
        self.samples.retain(|sample| !is_unwanted(sample));
        if self.samples.len() < before {
            self.sample_indices.clear();
            for sample in std::mem::take(&mut self.samples) {
                self.add(sample);
            }
        }
    }

    /// Takes the stacks away from the samples of a process, and the user stack from what it woke others with: the kernel's
    /// says whether it did, or an interrupt that came upon it.
    pub fn drop_stacks_of(&mut self, pid: u32) {
        for sample in self
            .samples
            .iter_mut()
            .filter(|sample| sample.who.tgid == pid)
        {
            (sample.user, sample.kernel) = (None, None);
        }
        for waker in self.wakers.iter_mut().filter(|waker| waker.who.tgid == pid) {
            waker.user = None;
        }
    }
}

/// Facts that tell samples apart.
type Key = (
    Who,
    Option<StackIndex>,
    Option<StackIndex>,
    ThreadState,
    u8,
    Option<WakerIndex>,
    WindowIndex,
);

/// Samples that were drained, in one drain or several, and have not been normalized yet.
#[derive(Clone, Debug, Default)]
pub struct RawProfile {
    /// Distinct stacks, of either kind. Whoever drains keeps some of them, too.
    pub stacks: Vec<Arc<RawStack>>,
    /// Distinct wakers.
    pub wakers: Vec<Waker>,
    /// One per distinct owner, stacks and window.
    pub samples: Vec<RawSample>,
    /// The window that what is drained now was counted in.
    pub window: WindowIndex,
    stack_indices: HashMap<Arc<RawStack>, StackIndex>,
    waker_indices: HashMap<Waker, WakerIndex>,
    sample_indices: HashMap<Key, usize>,
}

impl RawProfile {
    /// The index of `stack`, which is added when it is not there yet.
    pub fn intern(&mut self, stack: Arc<RawStack>) -> StackIndex {
        match self.stack_indices.entry(stack) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let index = StackIndex(
                    u32::try_from(self.stacks.len()).expect("fewer than 2^32 distinct stacks"),
                );
                self.stacks.push(Arc::clone(new.key()));
                *new.insert(index)
            }
        }
    }

    /// The index of `waker`, which is added when it is not there yet.
    pub fn waker(&mut self, waker: Waker) -> WakerIndex {
        *self.waker_indices.entry(waker).or_insert_with(|| {
            let index = u32::try_from(self.wakers.len()).expect("fewer than 2^32 distinct wakers");
            self.wakers.push(waker);
            WakerIndex(index)
        })
    }

    /// The waker at an index of this profile.
    pub fn waker_at(&self, index: WakerIndex) -> &Waker {
        &self.wakers[index.0 as usize]
    }

    /// Adds what was counted in the window that is drained now.
    pub fn add_now(&mut self, sample: RawSample) {
        let window = self.window;
        self.add(RawSample { window, ..sample });
    }

    /// Halves the numbers of windows.
    pub fn halve_windows(&mut self) {
        self.window.0 /= 2;
        self.sample_indices.clear();
        for mut sample in std::mem::take(&mut self.samples) {
            sample.window.0 /= 2;
            self.add(sample);
        }
    }

    /// Adds what was counted: to the sample of the same owner and stacks, if there is one.
    pub fn add(&mut self, sample: RawSample) {
        let RawSample {
            who,
            user,
            kernel,
            thread_state,
            event,
            waker,
            window,
            ..
        } = sample;
        let key = (who, user, kernel, thread_state, event, waker, window);
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

    /// The stack at an index of this profile, for another profile to have as well.
    pub fn shared(&self, index: StackIndex) -> Arc<RawStack> {
        Arc::clone(&self.stacks[index.0 as usize])
    }

    /// The stack at an index of this profile.
    pub fn stack(&self, index: StackIndex) -> &RawStack {
        &self.stacks[index.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_interrupted_a_process_is_kept_where_its_stacks_are_dropped() {
        let mut raw = RawProfile::default();
        let who = Who {
            tgid: 7,
            comm: *b"profiler\0\0\0\0\0\0\0\0",
            ..Who::default()
        };
        let (user, kernel) = (Some(StackIndex(0)), Some(StackIndex(1)));
        let waker = Some(raw.waker(Waker { who, user, kernel }));
        let sample = RawSample {
            who,
            user,
            kernel,
            thread_state: ThreadState::Woken,
            event: 0,
            waker,
            window: WindowIndex::default(),
            weight: 1,
            count: 1,
        };
        raw.add(sample);
        raw.drop_stacks_of(7);
        assert_eq!((raw.samples[0].user, raw.samples[0].kernel), (None, None));
        let expected = Waker {
            who,
            user: None,
            kernel,
        };
        assert_eq!(raw.wakers, [expected]);
    }
}
