//! On-CPU: one firing per tick of a clock or overflow of a counter; weight one, or the period.

use crate::{
    apart,
    config::{self, config},
    counter::{self, Outcome},
    sample, task,
};
use aya_ebpf::programs::PerfEventContext;
use profiler_common::abi::{Counter, Switches};

/// One firing of a track's event: opens the books, samples, closes the books.
#[inline(always)]
pub(crate) fn fire<const TRACK: u32>(ctx: &PerfEventContext) {
    let started = task::now();
    let seat = sample::seat(TRACK);
    let Some(books) = counter::books(seat) else {
        return;
    };
    counter::open(books);
    let outcome = sample::<TRACK>(ctx, seat, started);
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::close(books, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn sample<const TRACK: u32>(ctx: &PerfEventContext, seat: u32, now: u64) -> Outcome {
    let ids = match sample::whom::<TRACK>() {
        Ok(ids) => ids,
        Err(outcome) => return outcome,
    };
    let in_kernel = !task::in_user_mode(ctx);
    if !in_kernel && !config::has(Switches::USER_STACKS) {
        return Counter::FilteredUserMode.into();
    }
    let subject = sample::subject_of::<TRACK>(seat, ids, now);
    if let Some(outcome) = sample::walk(ctx, subject, in_kernel) {
        return outcome;
    }
    let weight = if config!(weighed) >> TRACK & 1 != 0 {
        task::period(ctx)
    } else {
        1
    };
    apart::take(TRACK, subject, weight)
}
