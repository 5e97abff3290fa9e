//! On-CPU: one firing per tick of a clock or overflow of a counter; weight one, or the period.

use crate::{
    apart, config,
    counter::{self, Outcome},
    filter, sample, task,
};
use aya_ebpf::programs::PerfEventContext;
use profiler_common::abi::{Counter, Switches};

/// One firing: opens the books, samples, closes the books.
#[inline(always)]
pub(crate) fn fire(ctx: &PerfEventContext) {
    let started = task::now();
    let seat = task::cpu();
    let Some(books) = counter::books(seat) else {
        return;
    };
    counter::open(books);
    let outcome = sample(ctx, seat, started);
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::close(books, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn sample(ctx: &PerfEventContext, seat: u32, now: u64) -> Outcome {
    let ids = match filter::current() {
        Ok(ids) => ids,
        Err(filtered) => return filtered.into(),
    };
    let in_kernel = !task::in_user_mode(ctx);
    if !in_kernel && !config::has(Switches::USER_STACKS) {
        return Counter::FilteredUserMode.into();
    }
    let subject = sample::subject(seat, ids, now);
    if let Some(outcome) = sample::walk(ctx, subject, in_kernel) {
        return outcome;
    }
    let weight = if config::has(Switches::WEIGH_BY_PERIOD) {
        task::period(ctx)
    } else {
        1
    };
    apart::take(subject, weight)
}
