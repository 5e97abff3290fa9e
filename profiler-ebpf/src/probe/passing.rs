//! A tracepoint of the kernel, or a function of a program: one firing each time that a thread comes by;
//! weight one, or what it asks for.

use crate::{
    apart,
    counter::{self, Outcome},
    filter, sample, task,
    walk::Subject,
};
use profiler_common::abi::Counter;

/// One firing: opens the books, has `walk` put the stacks into the scratch memory, records, closes the books.
#[inline(always)]
pub(crate) fn fire(weight: u64, walk: impl FnOnce(Subject) -> Option<Outcome>) {
    let started = task::now();
    let seat = task::cpu();
    let Some(books) = counter::books(seat) else {
        return;
    };
    counter::open(books);
    let outcome = match filter::current() {
        Ok(ids) => take(sample::subject(seat, ids, started), weight, walk),
        Err(filtered) => filtered.into(),
    };
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::close(books, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn take(subject: Subject, weight: u64, walk: impl FnOnce(Subject) -> Option<Outcome>) -> Outcome {
    // A function's program may be put aside for another thread, and a tracepoint's be interrupted.
    if !sample::begin(subject.seat) {
        return Counter::LostReentered.into();
    }
    let outcome = walk(subject).unwrap_or_else(|| apart::take(subject, weight));
    sample::end(subject.seat);
    outcome
}
