//! Entries of threads, with data kept while they are off the CPU.
//!
//! An entry is made at a thread's first switch and taken away at its last. In between it is only looked
//! up: at most one CPU has to do with a thread at a time, so its words need no more care than others.
#![expect(
    unsafe_code,
    reason = "a hash map's values are reached through raw pointers"
)]

use crate::platform::{
    config::{self, config},
    maps::{REQUESTS, THREADS, WAKERS},
    word::Word,
};
use profiler_common::abi::{
    FaultPhase, KEY_WORDS, LastRequest, PageFault, Switches, ThreadEntry, WakerEntry, Zero as _,
};
use profiler_common::wait_sampling::Chance;

/// A thread's entry.
pub(crate) struct Entry(&'static ThreadEntry<Word>);

/// The entry of a thread that is on a CPU. In memory of its own: the BPF stack is short, and walking needs it.
static NEW: &ThreadEntry = &ThreadEntry::ZERO;

/// The entry of a thread, by its ID in the initial namespace.
#[inline(always)]
pub(crate) fn find(id: u32) -> Option<Entry> {
    let value = THREADS.get_ptr_mut(id)?;
    // SAFETY: the map's values are of this type, whose words are all aligned; an entry's memory stays the map's, and is
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
    let _full_or_there = THREADS.insert(id, NEW, UNLESS_THERE);
    find(id)
}

/// Forgets a thread that has ended.
#[inline(always)]
pub(crate) fn forget(id: u32) {
    let _was_unknown = THREADS.remove(id);
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
        entry.set_fault_phase(FaultPhase::None);
    }
}

/// Whether not every wait is looked at, now or later.
#[inline(always)]
pub(crate) fn samples_waits() -> bool {
    config!(wait_sample_period_ns) != 0 || config::has(Switches::VARYING_WAITS)
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
        set(&self.0.since)
    }

    /// The thread's `AwaitedLock`; zero of a call.
    #[inline(always)]
    pub(crate) fn awaited(&self) -> u64 {
        self.0.awaited.load()
    }

    /// Notes what the thread waits for.
    #[inline(always)]
    pub(crate) fn await_this(&self, what: u64) {
        self.0.awaited.store(what);
    }

    /// Notes that the thread leaves, and for which key its time is to be counted.
    #[inline(always)]
    pub(crate) fn leave(&self, now_ns: u64, key: &[Word; KEY_WORDS]) {
        self.belong(key);
        if samples_waits() {
            // A thread without an entry has one now; otherwise it says so already.
            self.0.left.store(now_ns);
        } else {
            self.0.woken.store(0);
        }
        if config!(faults.task_unhandled) != 0 {
            self.set_fault_phase(FaultPhase::None);
        }
        self.0.since.store(now_ns);
    }

    /// Notes whose the entry is.
    #[inline(always)]
    pub(crate) fn belong(&self, key: &[Word; KEY_WORDS]) {
        copy(key, &self.0.key);
    }

    /// Notes a page fault of the thread's, which is in no call.
    #[inline(always)]
    pub(crate) fn begin_fault(&self, fault: &PageFault) {
        self.0.fault.begun.store(fault.begun);
        self.0.fault.switches.store(fault.switches);
        self.0.fault.place.store(fault.place);
        self.0.fault.address.store(fault.address);
        self.0.fault.phase.store(fault.phase);
    }

    /// How far the thread's page fault has come.
    #[inline(always)]
    pub(crate) fn fault_phase(&self) -> FaultPhase {
        FaultPhase::from_code(self.0.fault.phase.load())
    }

    /// Notes how far it has come.
    #[inline(always)]
    pub(crate) fn set_fault_phase(&self, phase: FaultPhase) {
        self.0.fault.phase.store(phase as u64);
    }

    /// The thread's page fault; the last one if it is in none.
    #[inline(always)]
    pub(crate) fn fault(&self) -> &'static PageFault<Word> {
        &self.0.fault
    }

    /// Notes that what follows of the thread's page fault begins now.
    #[inline(always)]
    pub(crate) fn restart_fault(&self, now_ns: u64) {
        self.set_fault_phase(FaultPhase::Decided);
        self.0.fault.begun.store(now_ns);
    }

    /// When the thread's last wait began, zero if that was not seen; and notes that one begins now. Only where not all
    /// waits are looked at.
    #[inline(always)]
    pub(crate) fn left_before(&self, now_ns: u64) -> u64 {
        let before = self.0.left.load();
        self.0.left.store(now_ns);
        before
    }

    /// The chance that the thread's last wait had of being looked at; see [`ThreadEntry::chance`].
    #[inline(always)]
    pub(crate) fn chance(&self) -> Chance {
        Chance(self.0.chance.load())
    }

    /// Notes that.
    #[inline(always)]
    pub(crate) fn set_chance(&self, chance: Chance) {
        self.0.chance.store(chance.0);
    }

    /// Notes that nothing more is known of what the thread waits for.
    #[inline(always)]
    pub(crate) fn forsake(&self) {
        self.0.since.store(0);
    }

    /// Notes that the thread is back, and puts the key that it left under into `key`.
    #[inline(always)]
    pub(crate) fn arrive(&self, key: &[Word; KEY_WORDS]) {
        self.0.since.store(0);
        copy(&self.0.key, key);
    }

    /// Notes that the thread, if it is off the CPU, could go on from now on.
    #[inline(always)]
    pub(crate) fn wake(&self, now_ns: u64) {
        if self.0.since.load() != 0 && self.0.woken.load() == 0 {
            self.0.woken.store(now_ns);
        }
    }

    /// When the thread was woken since it left; none if it was not.
    #[inline(always)]
    pub(crate) fn woken_ns(&self) -> Option<u64> {
        set(&self.0.woken)
    }

    /// Since when the thread is on a CPU; none if that was not seen.
    #[inline(always)]
    pub(crate) fn arrived_ns(&self) -> Option<u64> {
        set(&self.0.arrived)
    }

    /// Notes since when the thread is on a CPU; zero when it leaves.
    #[inline(always)]
    pub(crate) fn set_arrived(&self, now_ns: u64) {
        self.0.arrived.store(now_ns);
    }
}

/// A time that was noted; none if it was not.
#[inline(always)]
fn set(word: &Word) -> Option<u64> {
    Some(word.load()).filter(|&time| time != 0)
}

#[inline(always)]
fn copy(from: &[Word; KEY_WORDS], to: &[Word; KEY_WORDS]) {
    for (place, word) in to.iter().zip(from) {
        place.store(word.load());
    }
}

/// A thread without a request before.
static NO_REQUEST: &LastRequest = &LastRequest::ZERO;

/// The last request for memory of a thread, all zeros if it had none. None if the table is full.
#[inline(always)]
pub(crate) fn last_request(id: u32) -> Option<&'static LastRequest<Word>> {
    let find = || {
        let value = REQUESTS.get_ptr_mut(id)?;
        // SAFETY: as in `find`. A thread makes one request at a time.
        Some(unsafe { &*value.cast() })
    };
    if let Some(request) = find() {
        return Some(request);
    }
    let _full_or_there = REQUESTS.insert(id, NO_REQUEST, UNLESS_THERE);
    find()
}

/// Forgets the requests of a thread that has ended.
#[inline(always)]
pub(crate) fn forget_requests(id: u32) {
    let _had_none = REQUESTS.remove(id);
}

/// The waker of a thread.
pub(crate) struct WakerOf(&'static WakerEntry<Word>);

/// A waker that is yet to be noted.
static NOBODY: &WakerEntry = &WakerEntry::ZERO;

/// The last waker of a thread, if one was seen.
#[inline(always)]
pub(crate) fn waker(id: u32) -> Option<WakerOf> {
    let value = WAKERS.get_ptr_mut(id)?;
    // SAFETY: as in `find`. Who wakes a thread is done with its entry before the thread is given a CPU, and
    // nobody else wakes it meanwhile.
    Some(WakerOf(unsafe { &*value.cast() }))
}

/// A place to note who wakes a thread. None if the table is full.
#[inline(always)]
pub(crate) fn make_waker(id: u32) -> Option<WakerOf> {
    if let Some(entry) = waker(id) {
        return Some(entry);
    }
    let _full_or_there = WAKERS.insert(id, NOBODY, UNLESS_THERE);
    waker(id)
}

impl WakerOf {
    /// Notes who wakes the thread.
    #[inline(always)]
    pub(crate) fn note(&self, now_ns: u64, key: &[Word; KEY_WORDS]) {
        copy(key, &self.0.key);
        self.0.woke.store(now_ns);
    }

    /// When the thread was woken, if it was since this was asked last.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<u64> {
        let woke = set(&self.0.woke);
        self.0.woke.store(0);
        woke
    }

    /// The waker's key.
    #[inline(always)]
    pub(crate) fn key(&self) -> impl Iterator<Item = u64> {
        self.0.key.iter().map(Word::load)
    }
}
