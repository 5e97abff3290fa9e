//! A tracepoint of the kernel, or a function of a program: one firing each time that a thread comes by;
//! weight one, or what it asks for.

use crate::{
    apart,
    counter::{self, Outcome},
    sample, task,
    walk::Subject,
};
use aya_ebpf::programs::{ProbeContext, RawTracePointContext};
use profiler_common::abi::Counter;

/// A thread comes by a track's tracepoint.
#[inline(always)]
pub(crate) fn tracepoint<const TRACK: u32>(ctx: &RawTracePointContext) {
    fire::<TRACK>(TRACK, 1, |subject| sample::walk(ctx, subject, true));
}

/// A thread calls a function. Which track's it is, is what the program was attached with there.
#[inline(always)]
pub(crate) fn function(ctx: &ProbeContext) {
    let track = task::cookie(ctx) as u32;
    called(track, 1, ctx);
}

/// A firing at the first instruction of a function.
#[inline(always)]
pub(crate) fn called(track: u32, weight: u64, ctx: &ProbeContext) {
    fire::<0>(track, weight, |subject| {
        sample::at_entry(subject.seat);
        sample::walk(ctx, subject, false)
    });
}

/// One firing of a track, in the program that the track `OWNER` has for itself: opens the books, has `walk` put the stacks
/// into the scratch memory, records, closes the books.
#[inline(always)]
pub(crate) fn fire<const OWNER: u32>(
    track: u32,
    weight: u64,
    walk: impl FnOnce(Subject) -> Option<Outcome>,
) {
    let started = task::now();
    let seat = sample::seat(track);
    let Some(books) = counter::books(seat) else {
        return;
    };
    counter::open(books);
    let outcome = match sample::whom::<OWNER>() {
        Ok(ids) => {
            let subject = sample::subject_of::<OWNER>(seat, ids, started);
            take(track, subject, weight, walk)
        }
        Err(outcome) => outcome,
    };
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::close(books, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn take(
    track: u32,
    subject: Subject,
    weight: u64,
    walk: impl FnOnce(Subject) -> Option<Outcome>,
) -> Outcome {
    // A function's program may be put aside for another thread, and a tracepoint's be interrupted.
    if !sample::begin(subject.seat) {
        return Counter::LostReentered.into();
    }
    let outcome = walk(subject).unwrap_or_else(|| apart::take(track, subject, weight));
    sample::end(subject.seat);
    outcome
}
