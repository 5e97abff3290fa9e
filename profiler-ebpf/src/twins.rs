//! The programs of all events but the first, for events and tracepoints.
//!
//! In: firings of what user space attaches them to. Out: as those of the first event, each of its own. A program knows
//! its event by its making, since kernels tell neither a perf event's nor a raw tracepoint's program what it was attached
//! with, or only new ones do. What it calls is shared by all.

use crate::probe::{on_cpu, passing};
use aya_ebpf::{
    macros::{perf_event, raw_tracepoint},
    programs::{PerfEventContext, RawTracePointContext},
};
use profiler_common::abi::MAX_EVENTS;

macro_rules! events {
    ($($event:literal: $on_cpu:ident, $tracepoint:ident;)+) => {
        $(
            /// As `on_cpu`, for another event.
            #[perf_event]
            pub(crate) fn $on_cpu(ctx: PerfEventContext) -> u32 {
                on_cpu::fire::<$event>(&ctx);
                0
            }

            /// As `tracepoint`, for another event.
            #[raw_tracepoint(tracepoint = "sched_switch")]
            pub(crate) fn $tracepoint(ctx: RawTracePointContext) -> i32 {
                passing::tracepoint::<$event>(&ctx);
                0
            }
        )+
        const _: () = assert!(MAX_EVENTS == 1 + [$($event),+].len());
    };
}

events! {
    1: on_cpu_1, tracepoint_1;
    2: on_cpu_2, tracepoint_2;
    3: on_cpu_3, tracepoint_3;
    4: on_cpu_4, tracepoint_4;
    5: on_cpu_5, tracepoint_5;
    6: on_cpu_6, tracepoint_6;
    7: on_cpu_7, tracepoint_7;
}
