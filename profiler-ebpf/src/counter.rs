//! Keeping the books: one count per reason, on the CPU where the firing happened.

use crate::maps::{BOOKS, Books};
use profiler_common::abi::Counter;

/// The books of one CPU.
#[inline(always)]
pub(crate) fn books(cpu: u32) -> Option<&'static Books> {
    BOOKS.get(cpu)
}

/// Opens a firing.
///
/// A full barrier, so that user space, once it has switched the live sides, can tell who may still be
/// writing to the old ones: a firing that is not yet counted here will see the new sides.
#[inline(always)]
pub(crate) fn open(books: &Books) {
    books[Counter::Fired as usize].fetch_add(1);
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
