//! On-CPU: one firing per tick of a clock or overflow of a counter; weight one, or the period.

use crate::{
    apart,
    platform::config::{self, config},
    sample::{
        self,
        counters::{self, Outcome},
    },
    task,
};
use aya_ebpf::programs::PerfEventContext;
use profiler_common::abi::{Counter, Switches};

/// One firing of a event's event: opens the counters, samples, closes the counters.
#[inline(always)]
pub(crate) fn fire<const EVENT: u32>(ctx: &PerfEventContext) {
    let started = task::now();
    let cpu_slot = sample::cpu_slot(EVENT);
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
    let ids = match sample::whom::<EVENT>() {
        Ok(ids) => ids,
        Err(outcome) => return outcome,
    };
    let in_kernel = !task::in_user_mode(ctx);
    if !in_kernel && !config::has(Switches::USER_STACKS) {
        return Counter::FilteredUserMode.into();
    }
    let subject = sample::subject_of::<EVENT>(cpu_slot, ids, now);
    if let Some(outcome) = sample::walk(ctx, subject, in_kernel) {
        return outcome;
    }
    let weight = if config!(weighed) >> EVENT & 1 != 0 {
        task::period(ctx)
    } else {
        1
    };
    apart::take(EVENT, subject, weight)
}
