//! Keeping the books: one count per reason, on the CPU where the firing happened.

use crate::maps::{BOOKS, Books};
use core::hint::black_box;
use profiler_common::abi::{BOOK_WORDS, Counter};

/// The books of one seat: of one probe on one CPU. See [`crate::maps::BOOKS`].
#[inline(always)]
pub(crate) fn books(seat: u32) -> Option<&'static Books> {
    BOOKS.get(seat)
}

/// Opens a firing.
///
/// A full barrier, so that user space, once it has switched the live sides, can tell who may still be
/// writing to the old ones: a firing that is not yet counted here will see the new sides.
#[inline(always)]
pub(crate) fn open(books: &Books) {
    books[Counter::Fired as usize].fetch_add(1);
}

/// What became of a firing, as a number: the place of a [`Counter`].
#[derive(Clone, Copy)]
pub(crate) struct Outcome(pub(crate) u32);

impl From<Counter> for Outcome {
    #[inline(always)]
    fn from(counter: Counter) -> Self {
        Self(counter as u32)
    }
}

/// Closes a firing.
#[inline(always)]
pub(crate) fn close(books: &Books, outcome: Outcome) {
    // The verifier knows nothing of counters. The compiler does, and would leave out the mask.
    if let Some(word) = books.get(black_box(outcome.0 as usize) & (BOOK_WORDS - 1)) {
        word.add(1);
    }
}

/// Closes a firing that has come to something.
#[inline(always)]
pub(crate) fn close_if(books: &Books, outcome: Option<Outcome>) {
    if let Some(outcome) = outcome {
        close(books, outcome);
    }
}

/// Opens a look at a switch, whose firing will last longer than the look: as [`open`], but counted apart.
#[inline(always)]
pub(crate) fn enter(books: &Books) {
    books[Counter::Entered as usize].fetch_add(1);
}

/// Adds one to a counter.
#[inline(always)]
pub(crate) fn bump(books: &Books, counter: Counter) {
    add(books, counter, 1);
}

/// Adds to a counter.
#[inline(always)]
pub(crate) fn add(books: &Books, counter: Counter, amount: u64) {
    books[counter as usize].add(amount);
}
