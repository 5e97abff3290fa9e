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
pub(crate) fn fire(ctx: &PerfEventContext) {
    let started = task::now();
    // Which event it is, is what the program was attached with there.
    let event = if config::has(Switches::SEVERAL_EVENTS) {
        task::cookie(ctx) as u32
    } else {
        0
    };
    let cpu_slot = context::cpu_slot(event);
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    counters::open(counters);
    let outcome = sample(ctx, event, cpu_slot, started);
    counters::add(
        counters,
        Counter::RunTime,
        task::now().wrapping_sub(started),
    );
    counters::close(counters, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn sample(ctx: &PerfEventContext, event: u32, cpu_slot: u32, now: u64) -> Outcome {
    let ids = match filter::current() {
        Ok(ids) => ids,
        Err(counter) => return counter.into(),
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
    let weight = if config!(weighed) >> (event & 31) & 1 != 0 {
        task::period(ctx)
    } else {
        1
    };
    record::take(event, cpu_slot, weight)
}
