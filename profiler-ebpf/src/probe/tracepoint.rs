//! Any tracepoint: one firing each time that the kernel comes by; weight one.

use crate::{apart, counter, filter, sample, task};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::Counter;

/// One firing: opens the books, samples, closes the books.
#[inline(always)]
pub(crate) fn fire(ctx: &RawTracePointContext) {
    let started = task::now();
    let seat = task::cpu();
    let Some(books) = counter::books(seat) else {
        return;
    };
    counter::open(books);
    let outcome = match filter::current() {
        Ok(ids) => {
            let subject = sample::subject(seat, ids, started);
            sample::walk(ctx, subject, true).unwrap_or_else(|| apart::take(subject, 1))
        }
        Err(filtered) => filtered.into(),
    };
    counter::add(books, Counter::RunTime, task::now().wrapping_sub(started));
    counter::close(books, outcome);
}
