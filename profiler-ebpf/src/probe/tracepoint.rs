//! Any tracepoint: one firing each time that the kernel comes by; weight one.

use crate::{
    apart, config,
    counter::{self, Outcome},
    filter,
    maps::SCRATCH,
    sample, task, walk,
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{Counter, Switches};

/// One firing: opens the books, samples, closes the books.
#[inline(always)]
pub(crate) fn fire(ctx: &RawTracePointContext) {
    let started = task::now();
    let cpu = task::cpu();
    let Some(books) = counter::books(cpu) else {
        return;
    };
    counter::open(books);
    let outcome = match filter::current() {
        Ok(ids) => {
            let subject = sample::subject(cpu, ids, started);
            walk_stacks(ctx, subject).unwrap_or_else(|| apart::take(subject, 1))
        }
        Err(filtered) => filtered.into(),
    };
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::close(books, outcome);
}

/// Walks the running thread's stacks, as far as they are wanted, into the scratch memory: a tracepoint finds
/// it in the kernel. Returns what became of the firing if that is not possible.
#[inline(always)]
pub(super) fn walk_stacks(ctx: &RawTracePointContext, subject: walk::Subject) -> Option<Outcome> {
    let Some(scratch) = SCRATCH.get(subject.cpu) else {
        return Some(Counter::LostStackStore.into());
    };
    if config::has(Switches::KERNEL_STACKS) {
        walk::kernel(ctx, &scratch.kernel);
    } else {
        scratch.kernel[0].store(0);
    }
    if config::has(Switches::USER_STACKS) {
        apart::walk(subject);
    } else {
        scratch.user[0].store(0);
    }
    None
}
