//! Wall time: besides how long a thread was off the CPU, how long it was on one, and from when on it only waited
//! for one. Each such span is a firing. Where a thread was while it ran is told by samples of `on_cpu`.

use crate::{
    platform::{
        config,
        maps::{CONTROL, Counters, Scratch},
        subprog::subprog,
        word::Word,
    },
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    store::threads::{self, Entry},
    task::{self, Ids},
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{Counter, KEY_WORDS, SampleKey, Switches, ThreadState};

/// A thread was woken, and is ready to be given a CPU.
#[inline(always)]
pub(crate) fn woken(ctx: &RawTracePointContext) {
    let task: u64 = ctx.arg(0);
    let Some(ids) = filter::task(task) else {
        return;
    };
    let now = task::now();
    match threads::find(task::initial_id_of(task)) {
        Some(entry) => entry.wake(now),
        None => woken_unknown(task, ids, now),
    }
}

/// A thread that nothing is known of was asleep since before the recording began, and was not looked at in time: where it
/// slept will not be known.
#[inline(always)]
fn woken_unknown(task: u64, ids: Ids, now: u64) {
    let cpu_slot = context::switch_cpu_slot();
    let (Some(counters), Some(Scratch { key, .. }), Some(control)) = (
        counters::counters(cpu_slot),
        Scratch::of(cpu_slot),
        CONTROL.get(0),
    ) else {
        return;
    };
    // A command that was held did not wait for anything of its own.
    if task::age_ns(task) <= since_beginning(now) || config::has(Switches::FOLLOW_CHILDREN) {
        return;
    }
    record::key_of(key, task, ids, ThreadState::Blocked);
    // Without room, its next switch is counted as lost.
    if let Some(entry) = threads::make(task::initial_id_of(task)) {
        counters::bump(counters, Counter::Fired);
        counters::bump(counters, Counter::WaitingBefore);
        entry.leave(control.began.load(), key);
        entry.wake(now);
    }
}

subprog! {
    /// The context's thread leaves the CPU: counts the time that it had it.
    pub(crate) fn count_run(cpu_slot: u32) {
        if let Some(context) = SampleContext::of(cpu_slot) {
            ran(context);
        }
    }
}

#[inline(always)]
fn ran(context: SampleContext) {
    let SampleContext { cpu_slot, now, .. } = context;
    let (Some(counters), Some(Scratch { key, .. })) =
        (counters::counters(cpu_slot), Scratch::of(cpu_slot))
    else {
        return;
    };
    let spent_ns = match threads::find(task::initial_id()) {
        Some(entry) => {
            let arrived = entry.arrived_ns();
            entry.set_arrived(0);
            match (entry.since_ns(), arrived) {
                (None, Some(arrived)) => now.wrapping_sub(arrived),
                // Not seen to come: the scheduler knows, unless that does not fit.
                (Some(since), _) => fitting(now.wrapping_sub(since)),
                (None, None) => fitting(since_beginning(now)),
            }
        }
        // It was running when the recording began.
        None => fitting(since_beginning(now)),
    };
    if spent_ns == 0 {
        return;
    }
    counters::bump(counters, Counter::Fired);
    record::key_without_stacks(key, context, ThreadState::Ran);
    counters::close(counters, record::count_key(cpu_slot, spent_ns));
}

/// For how long the running thread has had the CPU, as the scheduler has it, but not longer than this.
#[inline(always)]
fn fitting(longest_ns: u64) -> u64 {
    let ran = task::ran_ns();
    if ran < longest_ns { ran } else { longest_ns }
}

#[inline(always)]
fn since_beginning(now: u64) -> u64 {
    CONTROL
        .get(0)
        .map_or(0, |control| now.wrapping_sub(control.began.load()))
}

/// A thread that nothing is known of is given the CPU, for which it has waited since it was made, or since before the
/// recording began: had it been asleep, its waking would have been seen. Returns its entry if something is known of it
/// after all: that it was asleep, which user space has noted just now.
#[inline(always)]
pub(crate) fn begin(counters: &Counters, cpu_slot: u32, task: u64, now: u64) -> Option<Entry> {
    let (Scratch { key, .. }, ids) = (Scratch::of(cpu_slot)?, task::of(task)?);
    let (age, recorded) = (task::age_ns(task), since_beginning(now));
    let is_new = age <= recorded;
    record::key_of(key, task, ids, ThreadState::Runnable);
    let Some(entry) = threads::make(task::initial_id_of(task)) else {
        counters::bump(counters, Counter::Fired);
        counters::bump(counters, Counter::LostThreadTable);
        return None;
    };
    if entry.since_ns().is_some() {
        return Some(entry);
    }
    entry.belong(key);
    entry.set_arrived(now);
    // A command that was held did not wait for anything of its own.
    if !is_new && config::has(Switches::FOLLOW_CHILDREN) {
        return None;
    }
    counters::bump(counters, Counter::Fired);
    let spent_ns = if is_new { age } else { recorded };
    counters::close(counters, record::count_key(cpu_slot, spent_ns));
    None
}

/// Counts the time that a thread was away, whose key is in the scratch memory: as blocked until it was woken, as
/// waiting for a CPU from then on. Says what became of the first of both.
#[inline(always)]
pub(crate) fn settle(
    counters: &Counters,
    cpu_slot: u32,
    key: &[Word; KEY_WORDS],
    woken: Option<u64>,
    since: u64,
    until: u64,
) -> Outcome {
    let stamp = &key[SampleKey::STAMP_WORD];
    let is_blocked = SampleKey::stamp_in(stamp.load()).thread_state() == ThreadState::Blocked;
    match woken {
        Some(woken) if is_blocked && woken > since && woken < until => {
            counters::bump(counters, Counter::Fired);
            let blocked = record::count_key(cpu_slot, woken - since);
            counters::close(counters, blocked);
            stamp.store(SampleKey::with_thread_state(
                stamp.load(),
                ThreadState::Runnable,
            ));
            record::count_key(cpu_slot, until - woken)
        }
        _ => record::count_key(cpu_slot, until.wrapping_sub(since)),
    }
}
