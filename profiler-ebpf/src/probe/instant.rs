//! A firing that is over at once: its stacks are walked and counted where it happens.

use crate::{
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    task,
};
use profiler_common::abi::Counter;

/// One firing of an event, in a program that is for itself if `OWNER` is zero: opens the counters, has `walk` put the stacks
/// into the scratch memory, records, closes the counters.
#[inline(always)]
pub(crate) fn fire<const OWNER: u32>(
    event: u32,
    weight: u64,
    walk: impl FnOnce(u32) -> Option<Outcome>,
) {
    let started = task::now();
    let cpu_slot = context::cpu_slot(event);
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    counters::open(counters);
    // The first one's program has this to itself, for speed; the others share it, so that there is little to each of them.
    let ids = if OWNER == 0 {
        filter::current().map_err(Outcome::from)
    } else {
        filter::current_shared()
    };
    let outcome = match ids {
        Ok(ids) => take(
            event,
            SampleContext::new(cpu_slot, ids, started),
            weight,
            walk,
        ),
        Err(outcome) => outcome,
    };
    counters::add(
        counters,
        Counter::RunTime,
        task::now().wrapping_sub(started),
    );
    counters::close(counters, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn take(
    event: u32,
    context: SampleContext,
    weight: u64,
    walk: impl FnOnce(u32) -> Option<Outcome>,
) -> Outcome {
    let cpu_slot = context.cpu_slot;
    // A function's program may be put aside for another thread, and a tracepoint's be interrupted.
    if !context::claim(cpu_slot) {
        return Counter::LostReentered.into();
    }
    context.keep();
    let outcome = walk(cpu_slot).unwrap_or_else(|| record::take(event, cpu_slot, weight));
    context::release(cpu_slot);
    outcome
}
