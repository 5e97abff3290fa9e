//! Functions of programs: one firing each time that a thread calls one; weight one, or what the caller says.

use super::instant;
use crate::{record, sample::context, task};
use aya_ebpf::programs::ProbeContext;

/// A thread calls a function. Which event's it is, is what the program was attached with there.
#[inline(always)]
pub(crate) fn fire(ctx: &ProbeContext) {
    called(task::cookie(ctx) as u32, 1, ctx);
}

/// A firing at the first instruction of a function.
#[inline(always)]
pub(crate) fn called(event: u32, weight: u64, ctx: &ProbeContext) {
    instant::fire::<0>(event, weight, |cpu_slot| {
        context::at_entry(cpu_slot);
        record::walk(ctx, cpu_slot, false)
    });
}
