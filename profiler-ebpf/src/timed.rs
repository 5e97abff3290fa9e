//! A firing that lasts: it begins with one run of a program and ends with another, on the same thread, and
//! weighs what went by or came of it in between.
//!
//! The stack is walked at the beginning, and stays the same until the end; that the thread has begun, and for
//! which key, is kept in the table of [`sleepers`]. Whatever has no end is settled by user space.

use crate::{
    apart,
    config::config,
    counter::{self, Outcome},
    filter,
    maps::{Books, SCRATCH},
    sample, sleepers,
    task::{self, Ids},
    walk::Subject,
};
use profiler_common::abi::{AwaitedLock, CallWeight, Counter, Doing};

/// Puts the running thread down as one that has begun. Its stacks are walked, in scratch memory that was
/// taken. Says what became of the firing if it ends here.
#[inline(always)]
pub(crate) fn begin(seat: u32, ids: Ids, incarnation: u64, awaited: u64) -> Option<Outcome> {
    if let Some(entry) = sleepers::make(task::initial_id()) {
        entry.await_this(awaited);
    }
    // What walking took is no part of the time.
    apart::key_of(seat, ids, incarnation, Doing::Blocked)
        .or_else(|| apart::fall_asleep(seat, task::now()))
}

/// One run of a program with which a firing of the subject's begins, unless it is left out: `walk` puts the stacks
/// into scratch memory that was taken.
#[inline(always)]
pub(crate) fn run(
    books: &'static Books,
    subject: Subject,
    awaited: u64,
    left_out: Option<Counter>,
    walk: impl FnOnce() -> Option<Outcome>,
) {
    counter::enter(books);
    counter::bump(books, Counter::Fired);
    let outcome = if let Some(counter) = left_out {
        Some(counter.into())
    } else if sample::begin(subject.seat) {
        let outcome = walk().or_else(|| apart::begin(subject, awaited));
        sample::end(subject.seat);
        outcome
    } else {
        Some(Counter::LostReentered.into())
    };
    counter::close_if(books, outcome);
    let spent = task::now().wrapping_sub(subject.now);
    counter::add(books, Counter::RunTime, spent);
    counter::bump(books, Counter::Left);
}

/// The running thread, if it is a target, has come to the end of what it began. `awaited`: of this and nothing
/// else; `moved`: the bytes that came of it, if that is what counts.
#[inline(always)]
pub(crate) fn end(awaited: u64, moved: u64) {
    if filter::current().is_err() {
        return;
    }
    let seat = task::cpu();
    if let Some(books) = counter::books(seat) {
        end_on(seat, books, awaited, moved);
    }
}

#[inline(always)]
fn end_on(seat: u32, books: &'static Books, awaited: u64, moved: u64) {
    let Some(entry) = sleepers::find(task::initial_id()) else {
        return;
    };
    let Some(since) = entry.since_ns() else {
        return;
    };
    if !AwaitedLock(entry.awaited()).is_at(awaited) {
        return;
    }
    let now = task::now();
    counter::enter(books);
    counter::close(books, settle(seat, &entry, now.wrapping_sub(since), moved));
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(now));
    counter::bump(books, Counter::Left);
}

/// Counts what a thread had begun, and says what became of the firing.
#[inline(always)]
fn settle(seat: u32, entry: &sleepers::Entry, spent_ns: u64, moved: u64) -> Outcome {
    let Some(scratch) = SCRATCH.get(seat) else {
        return Counter::LostTallyTable.into();
    };
    if !sample::begin(seat) {
        entry.forsake();
        return Counter::LostReentered.into();
    }
    entry.arrive(&scratch.key);
    let outcome = apart::count(seat, weight(spent_ns, moved));
    sample::end(seat);
    outcome
}

/// What a firing weighs that took so long, and moved so many bytes.
#[inline(always)]
pub(crate) fn weight(spent_ns: u64, moved: u64) -> u64 {
    if config!(calls.weight) == CallWeight::Time as u32 {
        spent_ns
    } else if config!(calls.weight) == CallWeight::Bytes as u32 {
        moved
    } else {
        1
    }
}

/// The running thread ends, and whatever it had begun with it.
#[inline(always)]
pub(crate) fn thread_ends() {
    let seat = task::cpu();
    let Some(books) = counter::books(seat) else {
        return;
    };
    let id = task::initial_id();
    if let Some(entry) = sleepers::find(id) {
        end_on(seat, books, entry.awaited(), 0);
        sleepers::forget(id);
    }
}

/// The running thread begins what it has not ended, as far as was seen.
#[inline(always)]
pub(crate) fn begins_again(books: &Books) {
    if let Some(entry) = sleepers::find(task::initial_id())
        && entry.since_ns().is_some()
    {
        entry.forsake();
        counter::bump(books, Counter::LostPair);
    }
}
