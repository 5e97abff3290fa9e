//! On-CPU: one firing per tick of a clock or overflow of a counter; weight one, or the period.

use crate::{
    platform::{
        config::{self, config},
        maps::Scratch,
    },
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    task::{self, Ids},
};
use aya_ebpf::programs::PerfEventContext;
use profiler_common::abi::{Counter, Switches, TargetKind};

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

/// The IDs of the idle tasks.
const IDLE: Ids = Ids { tgid: 0, tid: 0 };

/// Whether an interrupt of an idle CPU is to be recorded.
#[inline(always)]
fn is_interrupt(ctx: &PerfEventContext, cpu_slot: u32) -> bool {
    config!(target) == TargetKind::All as u32
        && config::has(Switches::KERNEL_STACKS)
        && Scratch::of(cpu_slot).is_some_and(|scratch| task::in_interrupt(ctx, &scratch.kernel[0]))
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn sample(ctx: &PerfEventContext, event: u32, cpu_slot: u32, now: u64) -> Outcome {
    let ids = match filter::current() {
        Ok(ids) => ids,
        Err(Counter::FilteredIdle) if is_interrupt(ctx, cpu_slot) => IDLE,
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
