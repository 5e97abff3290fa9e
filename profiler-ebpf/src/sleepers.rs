//! What is kept of threads while they are off the CPU.
//!
//! An entry is made at a thread's first switch and taken away at its last. In between it is only looked
//! up: at most one CPU has to do with a thread at a time, so its words need no more care than others.
#![expect(
    unsafe_code,
    reason = "a hash map's values are reached through raw pointers"
)]

use crate::{maps::SLEEPERS, word::Word};
use profiler_common::abi::{KEY_WORDS, LastAsking, SLEEPER_WORDS, Sleeper};

/// A thread's entry.
pub(crate) struct Entry(&'static [Word; SLEEPER_WORDS]);

/// The entry of a thread that is on a CPU. In memory of its own: the BPF stack is short, and walking needs it.
static NEW: &Sleeper = &[0; SLEEPER_WORDS];

/// The entry of a thread, by its ID in the initial namespace.
#[inline(always)]
pub(crate) fn find(id: u32) -> Option<Entry> {
    let value = SLEEPERS.get_ptr_mut(id)?;
    // SAFETY: the map's values are as many aligned words; an entry's memory stays the map's, and is
    // given to no other thread before this one has ended, which it has not while it is being switched.
    Some(Entry(unsafe { &*value.cast() }))
}

/// Makes an entry for a thread that is on a CPU, unless it has one. None if the table is full.
#[inline(always)]
pub(crate) fn make(id: u32) -> Option<Entry> {
    if let Some(entry) = find(id) {
        return Some(entry);
    }
    let _full = SLEEPERS.insert(id, NEW, 0);
    find(id)
}

/// Forgets a thread that has ended.
#[inline(always)]
pub(crate) fn forget(id: u32) {
    let _was_unknown = SLEEPERS.remove(id);
}

impl Entry {
    /// When the thread left the CPU; none while it is on one.
    #[inline(always)]
    pub(crate) fn since_ns(&self) -> Option<u64> {
        Some(self.0[0].load()).filter(|&since| since != 0)
    }

    /// What the thread waits for.
    #[inline(always)]
    pub(crate) fn awaited(&self) -> u64 {
        self.0[SLEEPER_WORDS - 1].load()
    }

    /// Notes what the thread waits for.
    #[inline(always)]
    pub(crate) fn await_this(&self, what: u64) {
        self.0[SLEEPER_WORDS - 1].store(what);
    }

    /// Notes that the thread leaves, and for which key its time is to be counted.
    #[inline(always)]
    pub(crate) fn leave(&self, now_ns: u64, key: &[Word; KEY_WORDS]) {
        for (place, word) in self.0[1..].iter().zip(key) {
            place.store(word.load());
        }
        self.0[0].store(now_ns);
    }

    /// What is kept of the last request for memory of the thread.
    #[inline(always)]
    pub(crate) fn last_asking(&self) -> LastAsking {
        core::array::from_fn(|index| self.0[1 + index].load())
    }

    /// Keeps a request for memory.
    #[inline(always)]
    pub(crate) fn keep_asking(&self, asking: LastAsking) {
        for (place, word) in self.0[1..].iter().zip(asking) {
            place.store(word);
        }
    }

    /// Notes that nothing more is known of what the thread waits for.
    #[inline(always)]
    pub(crate) fn forsake(&self) {
        self.0[0].store(0);
    }

    /// Notes that the thread is back, and puts the key that it left under into `key`.
    #[inline(always)]
    pub(crate) fn arrive(&self, key: &[Word; KEY_WORDS]) {
        self.0[0].store(0);
        for (word, place) in key.iter().zip(&self.0[1..]) {
            word.store(place.load());
        }
    }
}
