//! The parts of looking at wakers that the verifier checks apart. See [`super`].
#![expect(
    unsafe_code,
    reason = "names that are kept are what makes functions global"
)]

use super::{doing_of, one, two};
use crate::{counter::Outcome, maps::SCRATCH, probe::wake, sample, walk::Subject};
use profiler_common::abi::Doing;

/// See [`sample::key_without_stacks`]. Leaves no stacks in the scratch memory, either.
#[inline(always)]
pub(crate) fn owner(subject: Subject, doing: Doing) {
    let Subject {
        ids,
        incarnation,
        seat,
        ..
    } = subject;
    make_owner(seat, one(ids), incarnation, doing as u32);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn make_owner(seat: u32, ids: u64, incarnation: u64, doing: u32) -> u32 {
    if let Some(scratch) = SCRATCH.get(seat) {
        scratch.user[0].store(0);
        scratch.kernel[0].store(0);
        sample::key_without_stacks(&scratch.key, two(ids), incarnation, doing_of(doing));
    }
    0
}

/// See [`wake::note`].
#[inline(always)]
pub(crate) fn note_waker(subject: Subject, woken: u64) {
    let Subject {
        ids,
        incarnation,
        seat,
        now,
    } = subject;
    note_who_wakes(seat, one(ids), incarnation, now, woken);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn note_who_wakes(seat: u32, ids: u64, incarnation: u64, now: u64, woken: u64) -> u32 {
    let subject = Subject {
        ids: two(ids),
        incarnation,
        seat,
        now,
    };
    wake::note(subject, woken);
    0
}

/// See [`wake::settle`].
#[inline(always)]
pub(crate) fn settle_woken(seat: u32, id: u32, since: u64, until: u64, gap: u64) -> Outcome {
    Outcome(settle_with_waker(seat, id, since, until, gap))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn settle_with_waker(seat: u32, id: u32, since: u64, until: u64, gap: u64) -> u32 {
    wake::settle(seat, id, since, until, gap).0
}
