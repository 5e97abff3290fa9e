//! Tracepoints of the kernel: one firing each time that a thread comes by; weight one.

use super::instant;
use crate::record;
use aya_ebpf::programs::RawTracePointContext;

/// A thread comes by an event's tracepoint.
#[inline(always)]
pub(crate) fn fire<const EVENT: u32>(ctx: &RawTracePointContext) {
    instant::fire::<EVENT>(EVENT, 1, |cpu_slot| record::walk(ctx, cpu_slot, true));
}
