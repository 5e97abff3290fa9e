//! The parts of looking at wakers that the verifier checks apart. See [`super`].
#![expect(
    unsafe_code,
    reason = "names that are kept are what makes functions global"
)]

use super::{one, thread_state_of, two};
use crate::{
    platform::maps::SCRATCH,
    probe::waker,
    sample::{self, counters::Outcome},
    walk::user::SampleContext,
};
use profiler_common::abi::ThreadState;

/// See [`sample::key_without_stacks`]. Leaves no stacks in the scratch memory, either.
#[inline(always)]
pub(crate) fn owner(subject: SampleContext, thread_state: ThreadState) {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        ..
    } = subject;
    make_owner(cpu_slot, one(ids), incarnation, thread_state as u32);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn make_owner(cpu_slot: u32, ids: u64, incarnation: u64, thread_state: u32) -> u32 {
    if let Some(scratch) = SCRATCH.get(cpu_slot) {
        scratch.user[0].store(0);
        scratch.kernel[0].store(0);
        sample::key_without_stacks(
            &scratch.key,
            two(ids),
            incarnation,
            thread_state_of(thread_state),
        );
    }
    0
}

/// See [`waker::note`].
#[inline(always)]
pub(crate) fn note_waker(subject: SampleContext, woken: u64) {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        now,
    } = subject;
    note_who_wakes(cpu_slot, one(ids), incarnation, now, woken);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn note_who_wakes(
    cpu_slot: u32,
    ids: u64,
    incarnation: u64,
    now: u64,
    woken: u64,
) -> u32 {
    let subject = SampleContext {
        ids: two(ids),
        incarnation,
        cpu_slot,
        now,
    };
    waker::note(subject, woken);
    0
}

/// See [`waker::settle`].
#[inline(always)]
pub(crate) fn settle_woken(cpu_slot: u32, id: u32, since: u64, until: u64, gap: u64) -> Outcome {
    Outcome(settle_with_waker(cpu_slot, id, since, until, gap))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn settle_with_waker(cpu_slot: u32, id: u32, since: u64, until: u64, gap: u64) -> u32 {
    waker::settle(cpu_slot, id, since, until, gap).0
}
