//! The kernel half of flame-bpf: it supplies memory, maps and loops to the decisions that live in
//! `profiler-common`, and decides nothing itself.
//!
//! In: firings of perf events. Out: tallies, stacks, counters and events in BPF maps ([`platform::maps`]).
//! Compiled by `cargo xtask bpf` alone; the object that it makes ships in `profiler-ebpf/prebuilt`.
#![no_std]
#![no_main]

mod events;
mod platform;
mod probe;
mod record;
mod run;
mod sample;
mod store;
mod symbol;
mod task;
mod walk;

use aya_ebpf::{
    macros::{perf_event, raw_tracepoint, uprobe},
    programs::{PerfEventContext, ProbeContext, RawTracePointContext},
};
use platform::replacement;
use profiler_common::abi::ProgramId;

/// Makes an entry point of each program, which runs the function of its name in [`run`].
macro_rules! entry_points {
    ($($(#[$doc:meta])+ $kind:ident $($tracepoint:literal)? $name:ident $id:ident $($walks:ident)?;)+) => {
        $(entry_points!(@$kind $($tracepoint)? [$(#[$doc])+] $name $id);)+
    };
    (@perf_event [$($doc:tt)+] $name:ident $id:ident) => {
        $($doc)+
        #[perf_event]
        pub(crate) fn $name(ctx: PerfEventContext) -> u32 {
            replacement::run_of_perf_event(&ctx, ProgramId::$id);
            run::$name(&ctx);
            0
        }
    };
    (@uprobe [$($doc:tt)+] $name:ident $id:ident) => {
        $($doc)+
        #[uprobe]
        pub(crate) fn $name(ctx: ProbeContext) -> u32 {
            replacement::run_of_uprobe(&ctx, ProgramId::$id);
            run::$name(&ctx);
            0
        }
    };
    (@raw_tracepoint $tracepoint:literal [$($doc:tt)+] $name:ident $id:ident) => {
        $($doc)+
        #[raw_tracepoint(tracepoint = $tracepoint)]
        pub(crate) fn $name(ctx: RawTracePointContext) -> i32 {
            replacement::run_of_raw_tracepoint(&ctx, ProgramId::$id);
            run::$name(&ctx);
            0
        }
    };
    (@task_iterator [$($doc:tt)+] $name:ident $id:ident) => {
        $($doc)+
        #[expect(unsafe_code, reason = "aya has no macro for this kind of program")]
        #[unsafe(link_section = "iter/task")]
        #[unsafe(no_mangle)]
        pub(crate) fn $name(ctx: &task::Iteration) -> i32 {
            run::$name(ctx);
            0
        }
    };
}

profiler_common::programs!(entry_points);

/// Some of the helpers that we call are only for programs under a GPL-compatible licence.
#[expect(unsafe_code, reason = "the loader finds the licence by its section")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Unreachable in an object that the verifier accepts: it lets no program loop for ever.
    loop {}
}
