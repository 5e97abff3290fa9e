//! Requests for memory: one firing each time that a program asks its C library for some; weight its bytes.

use super::uprobe;
use crate::{
    platform::{memory::UserMemory, subprog::subprog},
    sample::{counters, filter},
    store::threads,
    task::{self, Entered},
};
use aya_ebpf::programs::ProbeContext;
use profiler_common::{
    abi::{Allocator, Asking, Counter, LastRequest},
    walk::Memory as _,
};

/// One firing, unless it is part of the request before.
#[inline(always)]
pub(crate) fn fire(ctx: &ProbeContext) {
    let Entered {
        entry,
        stack,
        arguments,
    } = task::entered(ctx);
    let function = Allocator(task::cookie(ctx));
    if filter::current().is_ok() && is_part_of_request(entry, stack, function) {
        if let Some(counters) = counters::counters(task::cpu()) {
            counters::bump(counters, Counter::Nested);
        }
        return;
    }
    let weight = function.asked(arguments);
    uprobe::called(0, weight, ctx);
}

subprog! {
    /// Whether the running thread asks as part of what it asked for before. If nothing can be kept of it, it is
    /// taken for a request of its own.
    fn is_part_of_request(entry: u64, stack: u64, function: Allocator) -> bool {
        is_part(entry, stack, function)
    }
}

#[inline(always)]
fn is_part(entry: u64, stack: u64, function: Allocator) -> bool {
    let Some(kept) = threads::last_request(task::initial_id()) else {
        return false;
    };
    let Some([back]) = UserMemory.read::<1>(stack) else {
        return false;
    };
    let asking = Asking {
        entry,
        stack,
        back,
        function,
    };
    let last = LastRequest {
        stack: kept.stack.load(),
        back: kept.back.load(),
        number: kept.number.load(),
        start: kept.start.load(),
        end: kept.end.load(),
    };
    let is_part = asking.is_part_of(&last);
    let next = asking.keep(&last, is_part);
    kept.stack.store(next.stack);
    kept.back.store(next.back);
    kept.number.store(next.number);
    kept.start.store(next.start);
    kept.end.store(next.end);
    is_part
}
