//! Replacements of programs: the same programs, loaded later with more runtimes.
//!
//! Programs are loaded with code for the interpreters that are there. For another, user space loads
//! those that walk stacks again and puts them here: they run instead from the next firing on.
#![expect(unsafe_code, reason = "a tail call does not return")]

use crate::platform::{config, maps};
use aya_ebpf::{
    EbpfContext,
    maps::ProgramArray,
    programs::{PerfEventContext, ProbeContext, RawTracePointContext},
};
use profiler_common::abi::{ProgramId, Switches};

/// Runs the replacement of a program of perf events, if there is one, and does not return then.
#[inline(always)]
pub(crate) fn run_of_perf_event(ctx: &PerfEventContext, program: ProgramId) {
    run(&maps::NEXT_PERF_EVENT, ctx, program);
}

/// As [`run_of_perf_event`], of a uprobe's program.
#[inline(always)]
pub(crate) fn run_of_uprobe(ctx: &ProbeContext, program: ProgramId) {
    run(&maps::NEXT_UPROBE, ctx, program);
}

/// As [`run_of_perf_event`], of a raw tracepoint's program.
#[inline(always)]
pub(crate) fn run_of_raw_tracepoint(ctx: &RawTracePointContext, program: ProgramId) {
    run(&maps::NEXT_TRACEPOINT, ctx, program);
}

/// With a number that is known to the verifier, this is a jump that the kernel writes when there is a replacement, and an
/// instruction that does nothing before.
#[inline(always)]
fn run(replacements: &ProgramArray, ctx: &impl EbpfContext, program: ProgramId) {
    if program.walks() && config::has(Switches::REPLACEMENTS) {
        // SAFETY: the replacement has the same context; nothing has been done or taken yet that would have to be undone.
        unsafe { replacements.tail_call(ctx, program as u32) };
    }
}
