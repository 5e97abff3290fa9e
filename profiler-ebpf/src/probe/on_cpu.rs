//! On-CPU: one firing per tick of a clock or overflow of a counter; weight one, or the period.

use crate::{
    platform::config::{self, config},
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    task,
};
use aya_ebpf::programs::PerfEventContext;
use profiler_common::abi::{Counter, Switches};

/// One firing of an event: opens the counters, samples, closes the counters.
#[inline(always)]
pub(crate) fn fire<const EVENT: u32>(ctx: &PerfEventContext) {
    let started = task::now();
    let cpu_slot = context::cpu_slot(EVENT);
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    counters::open(counters);
    let outcome = sample::<EVENT>(ctx, cpu_slot, started);
    counters::add(
        counters,
        Counter::RunTime,
        task::now().wrapping_sub(started),
    );
    counters::close(counters, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn sample<const EVENT: u32>(ctx: &PerfEventContext, cpu_slot: u32, now: u64) -> Outcome {
    let ids = if EVENT == 0 {
        filter::current().map_err(Outcome::from)
    } else {
        filter::current_shared()
    };
    let ids = match ids {
        Ok(ids) => ids,
        Err(outcome) => return outcome,
    };
    let in_kernel = !task::in_user_mode(ctx);
    if !in_kernel && !config::has(Switches::USER_STACKS) {
        return Counter::FilteredUserMode.into();
    }
    // A tick is never interrupted by another of the same event.
    SampleContext::new(cpu_slot, ids, now).keep();
    if let Some(outcome) = record::walk(ctx, cpu_slot, in_kernel) {
        return outcome;
    }
    let weight = if config!(weighed) >> EVENT & 1 != 0 {
        task::period(ctx)
    } else {
        1
    };
    record::take(EVENT, cpu_slot, weight)
}
