//! Kernel events: what user space should know before the next drain.

pub(crate) mod cgroup_event;
pub(crate) mod function_event;
pub(crate) mod mapping_event;
pub(crate) mod scratch;

use crate::{
    events::scratch::REPORT_WORDS,
    platform::{
        config::{self, config},
        maps::{ANNOUNCED, ANNOUNCED_SLOTS, Counters, KERNEL_EVENTS, Scratch},
        memory,
        subprog::subprog,
        word::Word,
    },
    sample::{context::SampleContext, counters},
};
use aya_ebpf::bindings::{
    BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP, BPF_RB_RING_SIZE,
};
use core::hint::black_box;
use profiler_common::{
    abi::{Counter, KernelEventKind, KernelEventRecord, SampleKey, Switches, used_clock},
    intern::Hash,
};

subprog! {
    /// Announces the process whose key is in the scratch memory and of which nothing else is reported, unless it was
    /// announced recently: its mappings are best read while it lives.
    pub(crate) fn announce_process(cpu_slot: u32) {
        if let (Some(scratch), Some(counters)) = (Scratch::of(cpu_slot), counters::counters(cpu_slot)) {
            let tgid = scratch.key[SampleKey::TGID_WORD].load() as u32;
            let incarnation = scratch.key[SampleKey::INCARNATION_WORD].load();
            new_process(counters, tgid, incarnation);
        }
    }
}

#[inline(always)]
fn new_process(counters: &Counters, tgid: u32, incarnation: u64) {
    let hash = Hash::new(config!(seed))
        .with(u64::from(tgid))
        .with(incarnation);
    once(hash, || {
        send(counters, KernelEventKind::NewProcess, tgid, incarnation, 0)
    });
}

/// Does what was not done lately for this hash. `act` says whether it could.
#[inline(always)]
fn once(hash: Hash, act: impl FnOnce() -> bool) {
    let Some(slot) = ANNOUNCED.get(hash.slot(0, ANNOUNCED_SLOTS - 1)) else {
        return;
    };
    if slot.load() != hash.0 && act() {
        slot.store(hash.0);
    }
}

/// Announces code at `address` of the context's process of which something is not installed, unless it was announced a moment
/// ago. `hash`: the file's.
#[inline(always)]
pub(crate) fn code(kind: KernelEventKind, context: SampleContext, address: u64, hash: Hash) {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        now,
    } = context;
    // If this process has ended and cannot help, another may later.
    let hash = hash.with(u64::from(ids.tgid)).with(used_clock(now));
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    once(hash, || {
        send(counters, kind, ids.tgid, incarnation, address)
    });
}

/// Asks for a drain.
#[inline(always)]
pub(crate) fn half_full(counters: &Counters) {
    send(counters, KernelEventKind::HalfFull, 0, 0, 0);
}

#[inline(always)]
fn send(
    counters: &Counters,
    kind: KernelEventKind,
    tgid: u32,
    incarnation: u64,
    address: u64,
) -> bool {
    let sent = queue_event(kind, tgid, incarnation, address);
    if !sent {
        counters::bump(counters, Counter::KernelEventsDropped);
    }
    sent
}

subprog! {
    /// Puts an event into the queue; false if it is full.
    fn queue_event(kind: KernelEventKind, tgid: u32, incarnation: u64, address: u64) -> bool {
        let event = KernelEventRecord {
            kind: kind as u32,
            tgid,
            incarnation,
            address,
        };
        // A process need not be looked at immediately if its mappings are reported, or not wanted.
        let can_wait = config::has(Switches::MAPPING_EVENTS) || !config::has(Switches::USER_STACKS);
        let is_priority = match KernelEventKind::from_code(event.kind) {
            Some(KernelEventKind::NewProcess) => !can_wait,
            // Walks go on without what it asks for.
            Some(KernelEventKind::UndescribedCode) => false,
            _ => true,
        };
        KERNEL_EVENTS.output::<KernelEventRecord>(&event, wake_up(is_priority)).is_ok()
    }
}

/// Whether to wake user space, which polls the queue anyway. Waking it for each of thousands of processes a second would
/// cost more than everything else.
#[inline(always)]
pub(crate) fn wake_up(is_priority: bool) -> u64 {
    let filled = KERNEL_EVENTS.query(u64::from(BPF_RB_AVAIL_DATA));
    u64::from(
        if is_priority || filled > KERNEL_EVENTS.query(u64::from(BPF_RB_RING_SIZE)) / 4 {
            BPF_RB_FORCE_WAKEUP
        } else {
            BPF_RB_NO_WAKEUP
        },
    )
}

/// Wakes user space; false if the queue is full, when it was woken before.
#[inline(always)]
fn wake() -> bool {
    // Nothing else does it than a record, which may be withdrawn.
    match KERNEL_EVENTS.reserve::<u64>(0) {
        Some(record) => {
            record.discard(u64::from(BPF_RB_FORCE_WAKEUP));
            true
        }
        None => false,
    }
}

/// Puts a record of so many words, with so many bytes behind it, into the queue; false if that is full.
#[inline(always)]
pub(crate) fn send_record<const WORDS: usize>(
    record: &'static [Word; REPORT_WORDS],
    length: &Word,
    is_priority: bool,
) -> bool {
    // From memory, and hidden from the compiler: the verifier must see the comparison.
    let bytes = black_box(WORDS * 8 + length.load() as usize);
    if bytes > REPORT_WORDS * 8 {
        return false;
    }
    KERNEL_EVENTS
        .output::<[u8]>(memory::first_bytes(record, bytes), wake_up(is_priority))
        .is_ok()
}
