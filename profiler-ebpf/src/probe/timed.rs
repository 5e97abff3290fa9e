//! A firing that lasts: it begins with one run of a program and ends with another, on the same thread, and
//! weighs what went by or came of it in between.
//!
//! The stack is walked at the beginning, and stays the same until the end; that the thread has begun, and for
//! which key, is kept in the table of [`threads`]. Whatever has no end is settled by user space.

use crate::{
    platform::{
        config::config,
        maps::{Counters, SCRATCH},
        subprog::subprog,
    },
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task,
};
use profiler_common::abi::{AwaitedLock, CallWeight, Counter, ThreadState};

subprog! {
    /// Puts the running thread down as one that has begun. Its stacks are walked, in scratch memory that was
    /// claimed. Says what became of the firing if it ends here.
    fn begin_timed(cpu_slot: u32, awaited: u64) -> Option<Outcome> {
        if let Some(entry) = threads::make(task::initial_id()) {
            entry.await_this(awaited);
        }
        // The time that walking took is not counted.
        match record::make_key(cpu_slot, ThreadState::Blocked) {
            Ok(()) => record::begin_wait(cpu_slot, task::now()),
            Err(outcome) => Some(outcome),
        }
    }
}

/// One run of a program with which a firing of the context's begins, unless it is left out: `walk` puts the stacks
/// into scratch memory that was claimed.
#[inline(always)]
pub(crate) fn run(
    counters: &'static Counters,
    context: SampleContext,
    awaited: u64,
    left_out: Option<Counter>,
    walk: impl FnOnce() -> Option<Outcome>,
) {
    let cpu_slot = context.cpu_slot;
    counters::enter(counters);
    counters::bump(counters, Counter::Fired);
    let outcome = if let Some(counter) = left_out {
        Some(counter.into())
    } else if context::claim(cpu_slot) {
        context.keep();
        let outcome = walk().or_else(|| begin_timed(cpu_slot, awaited));
        context::release(cpu_slot);
        outcome
    } else {
        Some(Counter::LostReentered.into())
    };
    counters::close_if(counters, outcome);
    let spent = task::now().wrapping_sub(context.now);
    counters::add(counters, Counter::RunTime, spent);
    counters::bump(counters, Counter::Left);
}

/// The running thread, if it is a target, has come to the end of what it began. `awaited`: of this and nothing
/// else; `moved`: the bytes that came of it, if that is what counts.
#[inline(always)]
pub(crate) fn end(awaited: u64, moved: u64) {
    if filter::current().is_err() && !filter::may_have_been() {
        return;
    }
    let cpu_slot = task::cpu();
    if let Some(counters) = counters::counters(cpu_slot) {
        end_on(cpu_slot, counters, awaited, moved);
    }
}

#[inline(always)]
fn end_on(cpu_slot: u32, counters: &'static Counters, awaited: u64, moved: u64) {
    let Some(entry) = threads::find(task::initial_id()) else {
        return;
    };
    let Some(since) = entry.since_ns() else {
        return;
    };
    if !AwaitedLock(entry.awaited()).is_at(awaited) {
        return;
    }
    let now = task::now();
    counters::enter(counters);
    counters::close(
        counters,
        settle(cpu_slot, &entry, now.wrapping_sub(since), moved),
    );
    counters::add(counters, Counter::RunTime, task::now().wrapping_sub(now));
    counters::bump(counters, Counter::Left);
}

/// Counts what a thread had begun, and says what became of the firing.
#[inline(always)]
fn settle(cpu_slot: u32, entry: &threads::Entry, spent_ns: u64, moved: u64) -> Outcome {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return Counter::LostTallyTable.into();
    };
    if !context::claim(cpu_slot) {
        entry.forsake();
        return Counter::LostReentered.into();
    }
    entry.arrive(&scratch.key);
    let outcome = record::count_key(cpu_slot, weight(spent_ns, moved));
    context::release(cpu_slot);
    outcome
}

/// Weight of a firing that took so long, and moved so many bytes.
#[inline(always)]
pub(crate) fn weight(spent_ns: u64, moved: u64) -> u64 {
    if config!(calls.weight) == CallWeight::Time as u32 {
        spent_ns
    } else if config!(calls.weight) == CallWeight::Bytes as u32 {
        moved
    } else {
        1
    }
}

/// The running thread ends, and whatever it had begun with it.
#[inline(always)]
pub(crate) fn thread_ends() {
    let cpu_slot = task::cpu();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    let id = task::initial_id();
    if let Some(entry) = threads::find(id) {
        end_on(cpu_slot, counters, entry.awaited(), 0);
        threads::forget(id);
    }
    threads::forget_requests(id);
}

/// The running thread begins what it has not ended, as far as was seen.
#[inline(always)]
pub(crate) fn begins_again(counters: &Counters) {
    if let Some(entry) = threads::find(task::initial_id())
        && entry.since_ns().is_some()
    {
        entry.forsake();
        counters::bump(counters, Counter::LostPair);
    }
}
