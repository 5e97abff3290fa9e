//! Locks of the kernel: one firing each time that a thread has to wait for one; its weight is the nanoseconds
//! until it has it.
//!
//! A thread that waits may be interrupted, and the interrupt wait for another lock; that is part of the first
//! wait. One lock may be waited for in two phases, of which the second has no end of its own. And the end of
//! what an interrupt waited for is not told if the interrupt came while the program of ends was running.

use super::timed;
use crate::{
    platform::maps::Scratch,
    record,
    sample::{
        context::SampleContext,
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task,
    walk::kernel,
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{AwaitedLock, Counter, FrameTag, FrameWord};

/// A thread begins to wait for the lock that is the first argument, of the kind that the second tells.
#[inline(always)]
pub(crate) fn begin(ctx: &RawTracePointContext) {
    let Ok(ids) = filter::current_shared() else {
        return;
    };
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
    let context = SampleContext::new(cpu_slot, ids, now);
    let awaited = AwaitedLock::new(lock, ctx.arg::<u64>(1) as u32).0;
    timed::run(counters, context, awaited, None, || walk(ctx, cpu_slot));
}

/// Walks both stacks, and puts the kind of lock at the leaf.
#[inline(always)]
fn walk(ctx: &RawTracePointContext, cpu_slot: u32) -> Option<Outcome> {
    if let Some(outcome) = record::walk(ctx, cpu_slot, false) {
        return Some(outcome);
    }
    let leaf = FrameWord::new(FrameTag::KernelLock, ctx.arg::<u64>(1) as u32);
    kernel::walk_behind(ctx, Scratch::of(cpu_slot)?, leaf);
    None
}

/// A thread has the lock that is the first argument, or has given up.
#[inline(always)]
pub(crate) fn end(ctx: &RawTracePointContext) {
    timed::end(ctx.arg(0), 0);
}
