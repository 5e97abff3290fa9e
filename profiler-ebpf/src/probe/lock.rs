//! Locks of the kernel: one firing each time that a thread has to wait for one; its weight is the nanoseconds
//! until it has it.
//!
//! A thread that waits may be interrupted, and the interrupt wait for another lock; that is part of the first
//! wait. One lock may be waited for in two phases, of which the second has no end of its own. And the end of
//! what an interrupt waited for is not told if the interrupt came while the program of ends was running.

use crate::{
    platform::maps::SCRATCH,
    probe::timed,
    sample::{
        self,
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task,
    walk::user::{self, SampleContext},
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{AwaitedLock, Counter, FrameTag, FrameWord};

/// A thread begins to wait for the lock that is the first argument, of the kind that the second tells.
#[inline(always)]
pub(crate) fn begin(ctx: &RawTracePointContext) {
    let Ok(ids) = filter::current() else { return };
    // Idle tasks wait for locks, too, in interrupts. All have one ID, and no waits of their own.
    if ids.tid == 0 {
        return;
    }
    let cpu_slot = task::cpu();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    let lock: u64 = ctx.arg(0);
    let now = task::now();
    if let Some(entry) = threads::find(task::initial_id())
        && let Some(since) = entry.since_ns()
    {
        let awaited = AwaitedLock(entry.awaited());
        if !awaited.must_be_over(now.wrapping_sub(since)) {
            if !awaited.is_at(lock) {
                counters::bump(counters, Counter::Nested);
            }
            return;
        }
        timed::begins_again(counters);
    }
    let subject = sample::subject(cpu_slot, ids, now);
    let awaited = AwaitedLock::new(lock, ctx.arg::<u64>(1) as u32).0;
    timed::run(counters, subject, awaited, None, || walk(ctx, subject));
}

/// Walks both stacks, and puts the kind of lock at the leaf.
#[inline(always)]
fn walk(ctx: &RawTracePointContext, subject: SampleContext) -> Option<Outcome> {
    if let Some(outcome) = sample::walk(ctx, subject, false) {
        return Some(outcome);
    }
    let scratch = SCRATCH.get(subject.cpu_slot)?;
    let leaf = FrameWord::new(FrameTag::KernelLock, ctx.arg::<u64>(1) as u32);
    scratch.kernel[1].store(leaf.0);
    user::kernel::<1>(ctx, &scratch.kernel);
    if scratch.kernel[0].load() == 0 {
        scratch.kernel[0].store(1);
    }
    None
}

/// A thread has the lock that is the first argument, or has given up.
#[inline(always)]
pub(crate) fn end(ctx: &RawTracePointContext) {
    timed::end(ctx.arg(0), 0);
}
