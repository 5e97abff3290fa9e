//! What is kept of threads while they are off the CPU.
//!
//! An entry is made at a thread's first switch and taken away at its last. In between it is only looked
//! up: at most one CPU has to do with a thread at a time, so its words need no more care than others.
#![expect(
    unsafe_code,
    reason = "a hash map's values are reached through raw pointers"
)]

use crate::platform::{
    config::{self, config},
    maps::{SLEEPERS, WAKERS},
    word::Word,
};
use profiler_common::abi::{
    ARRIVED_WORD, AWAITED_WORD, FAULT_ADDRESS_WORD, FAULT_DECIDED, FAULT_PLACE_WORD,
    FAULT_SWITCHES_WORD, FAULT_WORD, GAP_WORD, KEY_WORDS, LEFT_WORD, LastAsking, SINCE_WORD,
    SLEEPER_KEY_WORD, SLEEPER_WORDS, Sleeper, Switches, WAKER_KEY_WORD, WAKER_WORDS, WOKE_WORD,
    WOKEN_WORD, Waker,
};

/// A thread's entry.
pub(crate) struct Entry(&'static [Word; SLEEPER_WORDS]);

/// A page fault.
pub(crate) struct Fault {
    pub(crate) begun_ns: u64,
    /// How often the thread had left the CPU of its own accord.
    pub(crate) switches: u64,
    /// The program's instruction.
    pub(crate) place: u64,
    pub(crate) address: u64,
}

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

/// `BPF_NOEXIST`: makes an entry, and leaves one that is there (`include/uapi/linux/bpf.h`).
const UNLESS_THERE: u64 = 1;

/// Makes an entry for a thread that is on a CPU, unless it has one: user space may have made it just now, for one that
/// was asleep before the recording began. None if the table is full.
#[inline(always)]
pub(crate) fn make(id: u32) -> Option<Entry> {
    if let Some(entry) = find(id) {
        return Some(entry);
    }
    let _full_or_there = SLEEPERS.insert(id, NEW, UNLESS_THERE);
    find(id)
}

/// Forgets a thread that has ended.
#[inline(always)]
pub(crate) fn forget(id: u32) {
    let _was_unknown = SLEEPERS.remove(id);
    if config::has(Switches::WAKERS) {
        let _never_woken = WAKERS.remove(id);
    }
}

/// The thread, a target, begins a call: it is in no page fault. Most ends of faults are not seen.
#[inline(always)]
pub(crate) fn end_fault_before_call(id: u32) {
    if has_two_fault_locks()
        && let Some(entry) = find(id)
    {
        entry.end_fault();
    }
}

/// Whether mappings have locks of their own.
#[inline(always)]
pub(crate) fn has_two_fault_locks() -> bool {
    config!(faults.task_switches) != 0
}

impl Entry {
    /// When the thread left the CPU; none while it is on one.
    #[inline(always)]
    pub(crate) fn since_ns(&self) -> Option<u64> {
        Some(self.0[SINCE_WORD].load()).filter(|&since| since != 0)
    }

    /// What the thread waits for.
    #[inline(always)]
    pub(crate) fn awaited(&self) -> u64 {
        self.0[AWAITED_WORD].load()
    }

    /// Notes what the thread waits for.
    #[inline(always)]
    pub(crate) fn await_this(&self, what: u64) {
        self.0[AWAITED_WORD].store(what);
    }

    /// Notes that the thread leaves, and for which key its time is to be counted.
    #[inline(always)]
    pub(crate) fn leave(&self, now_ns: u64, key: &[Word; KEY_WORDS]) {
        self.belong(key);
        if config!(look_period_ns) == 0 {
            self.0[WOKEN_WORD].store(0);
        } else {
            // A thread without an entry has one now; otherwise it says so already.
            const { assert!(WOKEN_WORD == LEFT_WORD) };
            self.0[LEFT_WORD].store(now_ns);
        }
        self.0[SINCE_WORD].store(now_ns);
    }

    /// Notes whose the entry is.
    #[inline(always)]
    pub(crate) fn belong(&self, key: &[Word; KEY_WORDS]) {
        for (place, word) in self.0[SLEEPER_KEY_WORD..].iter().zip(key) {
            place.store(word.load());
        }
    }

    /// Notes a page fault of the thread's, which is in no call.
    #[inline(always)]
    pub(crate) fn begin_fault(&self, fault: &Fault) {
        self.0[FAULT_SWITCHES_WORD].store(fault.switches);
        self.0[FAULT_PLACE_WORD].store(fault.place);
        self.0[FAULT_ADDRESS_WORD].store(fault.address);
        self.0[FAULT_WORD].store(fault.begun_ns);
    }

    /// The thread's page fault, if it has one.
    #[inline(always)]
    pub(crate) fn fault(&self) -> Option<Fault> {
        let begun_ns = self.0[FAULT_WORD].load();
        (begun_ns != 0).then(|| Fault {
            begun_ns,
            switches: self.0[FAULT_SWITCHES_WORD].load(),
            place: self.0[FAULT_PLACE_WORD].load(),
            address: self.fault_address(),
        })
    }

    /// The address that the thread's page fault is about.
    #[inline(always)]
    pub(crate) fn fault_address(&self) -> u64 {
        self.0[FAULT_ADDRESS_WORD].load()
    }

    /// Notes whether the thread has left the CPU in its page fault: [`FAULT_HAS_WAITED`](profiler_common::abi::FAULT_HAS_WAITED)
    /// or [`FAULT_DECIDED`].
    #[inline(always)]
    pub(crate) fn decide_fault(&self, how: u64) {
        self.0[FAULT_SWITCHES_WORD].store(how);
    }

    /// Notes that what follows of the thread's page fault begins now.
    #[inline(always)]
    pub(crate) fn restart_fault(&self, now_ns: u64) {
        self.decide_fault(FAULT_DECIDED);
        self.0[FAULT_WORD].store(now_ns);
    }

    /// Notes that the thread is in no page fault.
    #[inline(always)]
    pub(crate) fn end_fault(&self) {
        self.0[FAULT_WORD].store(0);
    }

    /// What is kept of the last request for memory of the thread.
    #[inline(always)]
    pub(crate) fn last_asking(&self) -> LastAsking {
        core::array::from_fn(|index| self.0[SLEEPER_KEY_WORD + index].load())
    }

    /// Keeps a request for memory.
    #[inline(always)]
    pub(crate) fn keep_asking(&self, asking: LastAsking) {
        for (place, word) in self.0[SLEEPER_KEY_WORD..].iter().zip(asking) {
            place.store(word);
        }
    }

    /// When the thread's last wait began, zero if that was not seen; and notes that one begins now. Only where not all
    /// waits are looked at.
    #[inline(always)]
    pub(crate) fn left_before(&self, now_ns: u64) -> u64 {
        let before = self.0[LEFT_WORD].load();
        self.0[LEFT_WORD].store(now_ns);
        before
    }

    /// How far the beginnings of the thread's last waits lay apart; see [`GAP_WORD`].
    #[inline(always)]
    pub(crate) fn gap_ns(&self) -> u64 {
        self.0[GAP_WORD].load()
    }

    /// Notes that.
    #[inline(always)]
    pub(crate) fn set_gap(&self, gap_ns: u64) {
        self.0[GAP_WORD].store(gap_ns);
    }

    /// Notes that nothing more is known of what the thread waits for.
    #[inline(always)]
    pub(crate) fn forsake(&self) {
        self.0[SINCE_WORD].store(0);
    }

    /// Notes that the thread is back, and puts the key that it left under into `key`.
    #[inline(always)]
    pub(crate) fn arrive(&self, key: &[Word; KEY_WORDS]) {
        self.0[SINCE_WORD].store(0);
        for (word, place) in key.iter().zip(&self.0[SLEEPER_KEY_WORD..]) {
            word.store(place.load());
        }
    }

    /// Notes that the thread, if it is off the CPU, could go on from now on.
    #[inline(always)]
    pub(crate) fn wake(&self, now_ns: u64) {
        if self.0[SINCE_WORD].load() != 0 && self.0[WOKEN_WORD].load() == 0 {
            self.0[WOKEN_WORD].store(now_ns);
        }
    }

    /// When the thread was woken since it left; none if it was not.
    #[inline(always)]
    pub(crate) fn woken_ns(&self) -> Option<u64> {
        Some(self.0[WOKEN_WORD].load()).filter(|&woken| woken != 0)
    }

    /// Since when the thread is on a CPU; none if that was not seen.
    #[inline(always)]
    pub(crate) fn arrived_ns(&self) -> Option<u64> {
        Some(self.0[ARRIVED_WORD].load()).filter(|&arrived| arrived != 0)
    }

    /// Notes since when the thread is on a CPU; zero when it leaves.
    #[inline(always)]
    pub(crate) fn set_arrived(&self, now_ns: u64) {
        self.0[ARRIVED_WORD].store(now_ns);
    }
}

/// The waker of a thread.
pub(crate) struct WakerEntry(&'static [Word; WAKER_WORDS]);

/// A waker that is yet to be noted.
static NOBODY: &Waker = &[0; WAKER_WORDS];

/// Who woke a thread last, if anybody was seen to.
#[inline(always)]
pub(crate) fn waker(id: u32) -> Option<WakerEntry> {
    let value = WAKERS.get_ptr_mut(id)?;
    // SAFETY: as in `find`. Who wakes a thread is done with its entry before the thread is given a CPU, and
    // nobody else wakes it meanwhile.
    Some(WakerEntry(unsafe { &*value.cast() }))
}

/// A place to note who wakes a thread. None if the table is full.
#[inline(always)]
pub(crate) fn make_waker(id: u32) -> Option<WakerEntry> {
    if let Some(entry) = waker(id) {
        return Some(entry);
    }
    let _full_or_there = WAKERS.insert(id, NOBODY, UNLESS_THERE);
    waker(id)
}

impl WakerEntry {
    /// Notes who wakes the thread.
    #[inline(always)]
    pub(crate) fn note(&self, now_ns: u64, key: &[Word; KEY_WORDS]) {
        for (place, word) in self.0[WAKER_KEY_WORD..].iter().zip(key) {
            place.store(word.load());
        }
        self.0[WOKE_WORD].store(now_ns);
    }

    /// When the thread was woken, if it was since this was asked last.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<u64> {
        let woke = self.0[WOKE_WORD].load();
        self.0[WOKE_WORD].store(0);
        Some(woke).filter(|&woke| woke != 0)
    }

    /// The waker's key.
    #[inline(always)]
    pub(crate) fn key(&self) -> impl Iterator<Item = u64> {
        self.0[WAKER_KEY_WORD..].iter().map(Word::load)
    }
}
