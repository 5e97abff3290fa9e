//! A tracepoint of the kernel, or a function of a program: one firing each time that a thread comes by;
//! weight one, or what it asks for.

use crate::{
    apart,
    sample::{
        self,
        counters::{self, Outcome},
    },
    task,
    walk::user::SampleContext,
};
use aya_ebpf::programs::{ProbeContext, RawTracePointContext};
use profiler_common::abi::Counter;

/// A thread comes by a event's tracepoint.
#[inline(always)]
pub(crate) fn tracepoint<const EVENT: u32>(ctx: &RawTracePointContext) {
    fire::<EVENT>(EVENT, 1, |subject| sample::walk(ctx, subject, true));
}

/// A thread calls a function. Which event's it is, is what the program was attached with there.
#[inline(always)]
pub(crate) fn function(ctx: &ProbeContext) {
    let event = task::cookie(ctx) as u32;
    called(event, 1, ctx);
}

/// A firing at the first instruction of a function.
#[inline(always)]
pub(crate) fn called(event: u32, weight: u64, ctx: &ProbeContext) {
    fire::<0>(event, weight, |subject| {
        sample::at_entry(subject.cpu_slot);
        sample::walk(ctx, subject, false)
    });
}

/// One firing of a event, in the program that the event `OWNER` has for itself: opens the counters, has `walk` put the stacks
/// into the scratch memory, records, closes the counters.
#[inline(always)]
pub(crate) fn fire<const OWNER: u32>(
    event: u32,
    weight: u64,
    walk: impl FnOnce(SampleContext) -> Option<Outcome>,
) {
    let started = task::now();
    let cpu_slot = sample::cpu_slot(event);
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    counters::open(counters);
    let outcome = match sample::whom::<OWNER>() {
        Ok(ids) => {
            let subject = sample::subject_of::<OWNER>(cpu_slot, ids, started);
            take(event, subject, weight, walk)
        }
        Err(outcome) => outcome,
    };
    counters::add(
        counters,
        Counter::RunTime,
        task::now().wrapping_sub(started),
    );
    counters::close(counters, outcome);
}

/// Records one sample, and says what became of it.
#[inline(always)]
fn take(
    event: u32,
    subject: SampleContext,
    weight: u64,
    walk: impl FnOnce(SampleContext) -> Option<Outcome>,
) -> Outcome {
    // A function's program may be put aside for another thread, and a tracepoint's be interrupted.
    if !sample::begin(subject.cpu_slot) {
        return Counter::LostReentered.into();
    }
    let outcome = walk(subject).unwrap_or_else(|| apart::take(event, subject, weight));
    sample::end(subject.cpu_slot);
    outcome
}
