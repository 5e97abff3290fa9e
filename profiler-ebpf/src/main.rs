//! The kernel half of flame-bpf: it supplies memory, maps and loops to the decisions that live in
//! `profiler-common`, and decides nothing itself.
//!
//! In: firings of perf events. Out: tallies, stacks, counters and notices in BPF maps ([`platform::maps`]).
//! Compiled by `cargo xtask bpf` alone; the object that it makes ships in `profiler-ebpf/prebuilt`.
#![no_std]
#![no_main]

mod apart;
mod events;
mod platform;
mod probe;
mod sample;
mod store;
mod symbol;
mod task;
mod twins;
mod walk;

use aya_ebpf::{
    macros::{perf_event, raw_tracepoint, uprobe},
    programs::{PerfEventContext, ProbeContext, RawTracePointContext},
};

/// A clock tick or a counter overflow: where is the CPU?
#[perf_event]
pub(crate) fn on_cpu(ctx: PerfEventContext) -> u32 {
    probe::on_cpu::fire::<0>(&ctx);
    0
}

/// A CPU goes from one task to another: for how long was the one away, and when did the other leave?
#[raw_tracepoint(tracepoint = "sched_switch")]
pub(crate) fn off_cpu(ctx: RawTracePointContext) -> i32 {
    probe::off_cpu::switch(&ctx);
    0
}

/// A thread is ready to run again.
#[raw_tracepoint(tracepoint = "sched_wakeup")]
pub(crate) fn woken(ctx: RawTracePointContext) -> i32 {
    probe::wall::woken(&ctx);
    0
}

/// A thread is being woken: by whom?
#[raw_tracepoint(tracepoint = "sched_waking")]
pub(crate) fn waking(ctx: RawTracePointContext) -> i32 {
    probe::waker::waking(&ctx);
    0
}

/// The kernel comes by a tracepoint, whichever user space attaches this to.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub(crate) fn tracepoint(ctx: RawTracePointContext) -> i32 {
    probe::passing::tracepoint::<0>(&ctx);
    0
}

/// A program calls a function, whichever user space attaches this to.
#[uprobe]
pub(crate) fn function(ctx: ProbeContext) -> u32 {
    probe::passing::function(&ctx);
    0
}

/// A program asks its C library for memory.
#[uprobe]
pub(crate) fn allocation(ctx: ProbeContext) -> u32 {
    probe::alloc::fire(&ctx);
    0
}

/// A thread makes a system call.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub(crate) fn call(ctx: RawTracePointContext) -> i32 {
    probe::syscall::made(&ctx);
    0
}

/// A thread makes a system call, and its return is waited for.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub(crate) fn call_begin(ctx: RawTracePointContext) -> i32 {
    probe::syscall::begin(&ctx);
    0
}

/// A thread returns from a system call.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub(crate) fn call_end(ctx: RawTracePointContext) -> i32 {
    probe::syscall::end(&ctx);
    0
}

/// A program touches memory that is not there, or not as it wants it.
#[raw_tracepoint(tracepoint = "page_fault_user")]
pub(crate) fn fault_begin(ctx: RawTracePointContext) -> i32 {
    probe::page_in::begin(&ctx, false);
    0
}

/// The kernel does, as a rule on behalf of a system call.
#[raw_tracepoint(tracepoint = "page_fault_kernel")]
pub(crate) fn fault_in_kernel(ctx: RawTracePointContext) -> i32 {
    probe::page_in::begin(&ctx, true);
    0
}

/// The memory is there, and a page had to be read.
#[perf_event]
pub(crate) fn fault_major(ctx: PerfEventContext) -> u32 {
    probe::page_in::end(&ctx);
    0
}

/// A thread has, or has not, the lock of its process's mappings: does it begin a page fault anew?
#[raw_tracepoint(tracepoint = "mmap_lock_acquire_returned")]
pub(crate) fn fault_locks(_: RawTracePointContext) -> i32 {
    probe::page_in::locks();
    0
}

/// A thread gives that lock back: is a page there that it has waited for?
#[raw_tracepoint(tracepoint = "mmap_lock_released")]
pub(crate) fn fault_unlocks(_: RawTracePointContext) -> i32 {
    probe::page_in::unlocks();
    0
}

/// A thread begins to wait for a lock of the kernel's.
#[raw_tracepoint(tracepoint = "contention_begin")]
pub(crate) fn lock_begin(ctx: RawTracePointContext) -> i32 {
    probe::lock::begin(&ctx);
    0
}

/// A thread does not wait for a lock of the kernel's any more.
#[raw_tracepoint(tracepoint = "contention_end")]
pub(crate) fn lock_end(ctx: RawTracePointContext) -> i32 {
    probe::lock::end(&ctx);
    0
}

/// A thread ends, perhaps within a call.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub(crate) fn thread_end(_: RawTracePointContext) -> i32 {
    probe::timed::thread_ends();
    0
}

/// Each task in turn: has it been off the CPU since before anybody looked?
#[expect(unsafe_code, reason = "aya has no macro for this kind of program")]
#[unsafe(link_section = "iter/task")]
#[unsafe(no_mangle)]
pub(crate) fn asleep(ctx: &task::Iteration) -> i32 {
    probe::task_iter::look(ctx);
    0
}

/// A task was made: is it a target?
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn fork(ctx: RawTracePointContext) -> i32 {
    sample::filter::forked(ctx.arg(0), ctx.arg(1));
    0
}

/// Not attached: user space runs it to have the kernel name an address.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn name_symbol(ctx: RawTracePointContext) -> i32 {
    symbol::name(ctx.arg(0));
    0
}

/// Not attached: user space runs it, to have noted how deep its own PID namespace lies.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn own_level(_: RawTracePointContext) -> i32 {
    task::note_own_level();
    0
}

/// Not attached: user space runs it to learn what the kernel knows a file by that it has mapped.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn code_key(ctx: RawTracePointContext) -> i32 {
    walk::mappings::note_code(ctx.arg(0));
    0
}

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
