//! A tracepoint of the kernel, or a function of a program: one firing each time that a thread comes by;
//! weight one.

use crate::{apart, counter, filter, sample, task, task::Ids};
use aya_ebpf::EbpfContext;
use profiler_common::abi::Counter;

/// One firing, in the kernel or in user mode: opens the books, samples, closes the books.
#[inline(always)]
pub(crate) fn fire(ctx: &impl EbpfContext, in_kernel: bool) {
    let started = task::now();
    let seat = task::cpu();
    let Some(books) = counter::books(seat) else {
        return;
    };
    counter::open(books);
    let outcome = match filter::current() {
        Ok(ids) => take(ctx, seat, ids, started, in_kernel),
        Err(filtered) => filtered.into(),
    };
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::close(books, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn take(
    ctx: &impl EbpfContext,
    seat: u32,
    ids: Ids,
    now: u64,
    in_kernel: bool,
) -> counter::Outcome {
    // A function's program may be put aside for another thread, and a tracepoint's be interrupted.
    if !sample::begin(seat) {
        return Counter::LostReentered.into();
    }
    let subject = sample::subject(seat, ids, now);
    let outcome = sample::walk(ctx, subject, in_kernel).unwrap_or_else(|| apart::take(subject, 1));
    sample::end(seat);
    outcome
}
