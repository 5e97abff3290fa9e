//! Threads that are off the CPU: how many there is room for, those that were before the recording began,
//! and those that still are when it ends.

use super::counters::CounterMap;
use super::errors::{missing, rejected};
use super::programs::Programs;
use super::store::{Blocks, Store};
use super::{Request, Result, asleep, btf};
use crate::probe::{Probe, Waits};
use crate::profile::raw::{RawProfile, RawSample, RawStack};
use aya::maps::{HashMap, MapData, MapError};
use aya::programs::Iter;
use profiler_common::abi::{
    AwaitedLock, CallWeight, Counter, LastRequest, ProgramId, SampleKey, StackPosition, Stamp,
    Switches, ThreadEntry, ThreadState, WAKE_RACE_NS, WakerEntry, Zero as _,
};
use profiler_common::wait_sampling::Chance;
use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use super::asleep::Sleeping;

/// Memory of one entry of a hash: key, value, and the kernel's own data with each (56 bytes of
/// `struct htab_elem`, and two buckets' 16 bytes at worst).
const fn entry_bytes<V>() -> u64 {
    (size_of::<u32>() as u64).next_multiple_of(8) + size_of::<V>() as u64 + 56 + 2 * 16
}

/// Memory of each CPU for kernel stacks that were walked lately: 128 of them in 32 words each, and
/// 1.5 KiB for the one that is looked at.
pub(super) const KERNEL_STACK_BYTES: u64 = 128 * 32 * 8 + 1536;

/// The part of the memory limit that goes to the table: one eighth.
const SHARE: u64 = 8;

/// Threads that there is room for at least.
const FEWEST: u64 = 256;

/// How many threads there is room for, and what each takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadRoom {
    /// Of threads that are off the CPU, or in a call.
    pub(super) threads: u32,
    /// Of those that woke them.
    pub(super) wakers: u32,
    /// Of threads that ask for memory.
    pub(super) requests: u32,
    /// Memory of all of them, in bytes.
    pub(super) bytes: u64,
}

impl ThreadRoom {
    /// The room that a recording needs, within its limit on memory.
    pub(super) fn new(request: &Request) -> Self {
        let none = Self {
            threads: 1,
            wakers: 1,
            requests: 1,
            bytes: 0,
        };
        let room = |each: u64| {
            let room = (request.map_memory / SHARE / each).max(FEWEST);
            let room = u32::try_from(room).unwrap_or(u32::MAX);
            (room, u64::from(room) * each)
        };
        if request.timed_weight().is_none() {
            let (requests, bytes) = room(entry_bytes::<LastRequest>());
            return match request.keeps_threads() {
                true => Self {
                    requests,
                    bytes,
                    ..none
                },
                false => none,
            };
        }
        let of_waker = match request.has_wakers() {
            true => entry_bytes::<WakerEntry>(),
            false => 0,
        };
        let (threads, bytes) = room(entry_bytes::<ThreadEntry>() + of_waker);
        Self {
            threads,
            wakers: if of_waker == 0 { 1 } else { threads },
            bytes,
            ..none
        }
    }
}

/// The table of threads.
pub(super) struct Threads {
    /// Whether threads that are off the CPU already can be looked for.
    listing: Result<()>,
    /// None where the probe has no use for it.
    table: Option<HashMap<MapData, u32, ThreadEntry>>,
    /// Wakers of these threads; none where they are not wanted.
    wakers: Option<HashMap<MapData, u32, WakerEntry>>,
    /// Memory for threads and for kernel stacks that were walked lately, in bytes.
    pub(super) bytes: u64,
    /// Parts of each sample that are wanted.
    switches: Switches,
    /// Which waits are wanted.
    waits: Waits,
    /// Weight of firings that begin with one run and end with another.
    weight: Option<CallWeight>,
    /// Whether what is waited for are locks.
    of_locks: bool,
    /// Whether all of the threads' time is wanted.
    all_time: bool,
    /// When the probe was attached and detached, by the kernel half's clock.
    began_ns: u64,
    ended_ns: u64,
}

/// Activity of a thread, as its entry says.
enum Activity {
    /// It is off the CPU, or in what it began, since then.
    Away(u64),
    /// It has been on a CPU since then.
    Runs(u64),
    /// Nothing is known.
    Unknown,
}

impl Activity {
    fn of(entry: &ThreadEntry) -> Self {
        match entry {
            ThreadEntry { since: 1.., .. } => Self::Away(entry.since),
            ThreadEntry { arrived: 1.., .. } => Self::Runs(entry.arrived),
            _ => Self::Unknown,
        }
    }
}

/// Nanoseconds of the clock that the kernel half reads.
pub(super) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let whole = Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    );
    u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX)
}

impl Threads {
    /// The table of these maps.
    pub(super) fn new(
        request: &Request,
        table: Option<HashMap<MapData, u32, ThreadEntry>>,
        wakers: Option<HashMap<MapData, u32, WakerEntry>>,
        bytes: u64,
    ) -> Self {
        Self {
            listing: Ok(()),
            table,
            wakers,
            bytes,
            switches: request.switches,
            waits: request.waits().cloned().unwrap_or_default(),
            weight: request.timed_weight(),
            of_locks: request.has(|probe| matches!(probe, Probe::Locks(_))),
            all_time: request.is_wall(),
            began_ns: 0,
            ended_ns: 0,
        }
    }

    /// Notes when switches are seen for the first time.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
    }

    /// Notes when the last of them was.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.ended_ns = now_ns;
    }

    /// Loads the program that lists threads. Without it, threads are counted from their first switch on.
    pub(super) fn load_listing(&mut self, programs: &mut Programs) {
        self.listing = (|| {
            let types = btf::stand_in("bpf_iter_task").ok_or_else(|| missing("bpf_iter_task"))?;
            let program: &mut Iter = programs.get(ProgramId::Asleep)?;
            let loaded = program.load("task", &types);
            loaded.map_err(|error| rejected(ProgramId::Asleep, error))
        })();
    }

    /// Whether threads can be listed.
    pub(super) fn can_list(&self) -> bool {
        self.listing.is_ok()
    }

    /// The targets' threads that are off the CPU now, with what is known of them. What is done with the answer, once the probe is
    /// attached, is [`Threads::put_to_sleep`].
    pub(super) fn asleep(&mut self, programs: &mut Programs) -> Result<Vec<Sleeping>> {
        std::mem::replace(&mut self.listing, Ok(()))?;
        let program: &mut Iter = programs.get(ProgramId::Asleep)?;
        let listed = (|| {
            let link = program.attach()?;
            let mut bytes = Vec::new();
            program
                .take_link(link)?
                .into_file()
                .map_err(|error| std::io::Error::other(error.to_string()))
                .and_then(|mut file| file.read_to_end(&mut bytes))
                .map_err(|io_error| aya::sys::SyscallError {
                    call: "bpf_iter_create",
                    io_error,
                })?;
            Ok(bytes)
        })()
        .map_err(|error| rejected(ProgramId::Asleep, error))?;
        Ok(asleep::parse(&listed))
    }

    /// Unloads the program that lists threads.
    pub(super) fn end_listing(programs: &mut Programs) -> Result<()> {
        let program: &mut Iter = programs.get(ProgramId::Asleep)?;
        program
            .unload()
            .map_err(|error| rejected(ProgramId::Asleep, error))
    }

    /// Lets the time off the CPU of a thread that was asleep before the recording count from its
    /// beginning. Says whether it did: it is too late when the thread has been switched in meanwhile, and
    /// its stacks may then be any.
    pub(super) fn put_to_sleep(
        &mut self,
        sleeping: &Sleeping,
        user: Option<&RawStack>,
        store: &Store,
        counters: &mut CounterMap,
    ) -> Result<bool> {
        let stored = |stack: Option<&RawStack>| match stack {
            Some(stack) => store.append(stack),
            None => Ok(Some(StackPosition::NONE)),
        };
        let kernel = sleeping
            .kernel
            .as_ref()
            .filter(|_| self.switches.has(Switches::KERNEL_STACKS));
        let (user, kernel) = (stored(user)?, stored(kernel)?);
        // A span on the CPU is a firing when it ends.
        let runs = sleeping.thread_state == ThreadState::Ran;
        counters.add_lasting(Counter::Fired, u64::from(!runs));
        let (Some(user), Some(kernel)) = (user, kernel) else {
            counters.add_lasting(Counter::LostStackStore, 1);
            return Ok(false);
        };
        let key = SampleKey {
            incarnation: sleeping.incarnation,
            tgid: sleeping.tgid,
            tid: if self.switches.has(Switches::PER_THREAD) {
                sleeping.tid
            } else {
                0
            },
            cpu: 0,
            cgroup: sleeping.cgroup,
            user,
            kernel,
            stamp: Stamp::new(store.live().epoch(), sleeping.thread_state),
            comm: sleeping.comm,
        };
        let entry = ThreadEntry {
            since: if runs { 0 } else { self.began_ns },
            arrived: if runs { self.began_ns } else { 0 },
            key: key.words(),
            ..ThreadEntry::ZERO
        };
        /// Only if there is no entry yet (`include/uapi/linux/bpf.h`, `BPF_NOEXIST`).
        const NEW: u64 = 1;
        let Some(table) = &mut self.table else {
            return Ok(false);
        };
        match table.insert(sleeping.id, entry, NEW) {
            Ok(()) if has_ended(sleeping) => {
                // Since it was listed: nobody would see it leave.
                let _forgotten_meanwhile = table.remove(&sleeping.id);
                counters.take_back(Counter::Fired, u64::from(!runs));
                Ok(false)
            }
            Ok(()) => {
                counters.add_lasting(Counter::WaitingBefore, u64::from(!runs));
                Ok(true)
            }
            Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(EXISTS) => {
                // Its next wait is a firing of its own.
                counters.take_back(Counter::Fired, u64::from(!runs));
                Ok(false)
            }
            Err(_) => {
                counters.add_lasting(Counter::Fired, u64::from(runs));
                counters.add_lasting(Counter::LostThreadTable, 1);
                Ok(false)
            }
        }
    }

    /// Counts those that are still off the CPU up to the recording's end, after everything was detached; where all
    /// of their time is wanted, those that are on one, too.
    pub(super) fn flush_open(
        &self,
        store: &mut Store,
        counters: &mut CounterMap,
        into: &mut RawProfile,
    ) -> Result<()> {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let all: Vec<(u32, ThreadEntry)> =
            table.iter().filter_map(std::result::Result::ok).collect();
        let left: Vec<(&ThreadEntry, u64, Option<WakerEntry>)> = all
            .iter()
            .filter_map(|(id, entry)| match Activity::of(entry) {
                Activity::Away(since) => Some((entry, since, self.ended(*id, since))),
                Activity::Runs(_) | Activity::Unknown => None,
            })
            .collect();
        let keys: Vec<SampleKey> = left.iter().map(|(entry, ..)| key_of(entry)).collect();
        store.read_stacks(&keys)?;
        let wakers = left.iter().filter_map(|(_, _, waker)| *waker);
        let woke: Vec<SampleKey> = wakers.map(|waker| waker_key(&waker)).collect();
        store.read_stacks(&woke)?;
        let waits = &self.waits;
        for ((entry, since, waker), key) in left.into_iter().zip(&keys) {
            let end = waker.map_or(self.ended_ns, |waker| waker.woke);
            // Some leave between the last look at the clock and the last look at a switch.
            let spent = end.saturating_sub(since).max(1);
            let wanted = waits.shortest..=waits.longest;
            if !wanted.contains(&Duration::from_nanos(spent)) {
                counters.add_lasting(Counter::FilteredBlockTime, 1);
                continue;
            }
            let awaited = AwaitedLock(entry.awaited);
            if self.of_locks && awaited.must_be_over(spent) {
                counters.add_lasting(Counter::LostPair, 1);
                continue;
            }
            counters.add_lasting(Counter::Recorded, 1);
            counters.add_lasting(Counter::StillWaiting, 1);
            let weight = match self.weight {
                Some(CallWeight::Bytes) => 0,
                Some(CallWeight::One) => 1,
                Some(CallWeight::Time) | None => Chance(entry.chance).weight(spent),
            };
            let sample = store.sample(key, weight, 1, into);
            if let Some(waker) = waker {
                let woken = store.woken(sample, Some(&waker_key(&waker)), into);
                into.add_now(woken);
                continue;
            }
            let woken = entry.woken;
            if self.all_time
                && sample.thread_state == ThreadState::Blocked
                && woken > since
                && woken < self.ended_ns
            {
                counters.add_lasting(Counter::Fired, 1);
                counters.add_lasting(Counter::Recorded, 1);
                into.add_now(RawSample {
                    weight: woken - since,
                    ..sample
                });
                into.add_now(RawSample {
                    weight: self.ended_ns - woken,
                    thread_state: ThreadState::Runnable,
                    ..sample
                });
            } else {
                into.add_now(sample);
            }
        }
        for (_, entry) in &all {
            let Activity::Runs(arrived) = Activity::of(entry) else {
                continue;
            };
            if arrived >= self.ended_ns {
                continue;
            }
            counters.add_lasting(Counter::Fired, 1);
            counters.add_lasting(Counter::Recorded, 1);
            into.add_now(store.ran(&key_of(entry), self.ended_ns - arrived));
        }
        Ok(())
    }

    /// The waker of a thread that is off the CPU; none if none was seen before the recording's end.
    fn ended(&self, id: u32, since: u64) -> Option<WakerEntry> {
        let waker = self.wakers.as_ref()?.get(&id, 0).ok()?;
        let earliest = since.saturating_sub(WAKE_RACE_NS);
        (earliest < waker.woke && waker.woke < self.ended_ns).then_some(waker)
    }

    /// The stacks that threads off the CPU name, and those that woke them.
    pub(super) fn named(&self) -> Blocks {
        let table = self.table.iter().flat_map(HashMap::iter);
        let asleep = table
            .filter_map(|entry| entry.ok().map(|(_, entry)| entry))
            .filter(|entry| matches!(Activity::of(entry), Activity::Away(_)))
            .map(|entry| key_of(&entry));
        let mut named = Blocks::new();
        for key in asleep.chain(self.pending_wakers()) {
            for block in [key.user, key.kernel]
                .into_iter()
                .filter_map(StackPosition::block)
            {
                named.entry(key.stamp.epoch()).or_default().insert(block);
            }
        }
        named
    }

    /// The processes that woke threads which are not back yet: what was counted for these may come after a drain,
    /// although the processes have ended before it. By their IDs and incarnations.
    pub(super) fn waking(&self) -> HashSet<(u32, u64)> {
        self.pending_wakers()
            .map(|key| (key.tgid, key.incarnation))
            .collect()
    }

    /// The keys of those that woke threads which are not back yet.
    fn pending_wakers(&self) -> impl Iterator<Item = SampleKey> {
        let wakers = self.wakers.iter().flat_map(HashMap::iter);
        wakers
            .filter_map(|entry| entry.ok().map(|(_, waker)| waker))
            .filter(|waker| waker.woke != 0)
            .map(|waker| waker_key(&waker))
    }
}

fn key_of(entry: &ThreadEntry) -> SampleKey {
    SampleKey::from_words(&entry.key)
}

fn waker_key(waker: &WakerEntry) -> SampleKey {
    SampleKey::from_words(&waker.key)
}

/// Whether a thread is gone.
fn has_ended(sleeping: &Sleeping) -> bool {
    let (tgid, tid) = (sleeping.tgid, sleeping.tid);
    !Path::new(&format!("/proc/{tgid}/task/{tid}")).exists()
}

/// The kernel's answer to making an entry that is there (`EEXIST`).
const EXISTS: i32 = 17;
