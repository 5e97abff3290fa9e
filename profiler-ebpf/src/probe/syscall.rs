//! System calls: one firing each time that a thread makes one; weight one, or the time or the bytes until it
//! returns.

use super::{instant, timed};
use crate::{
    platform::{
        config::{self, config},
        maps::Scratch,
        subprog::subprog,
    },
    record,
    sample::{
        context::SampleContext,
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task::{
        self, CallRegisters,
        files::{self, FoundFile},
    },
    walk::kernel,
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{Counter, FrameTag, FrameWord, Switches, WantedCalls, waits_for_lock};

/// A thread makes a call, which is counted at once.
#[inline(always)]
pub(crate) fn made(ctx: &RawTracePointContext) {
    instant::fire::<0>(0, 1, |cpu_slot| walk(ctx, cpu_slot, 0));
}

/// Walks the thread's user stack, and puts what it calls at its leaf.
#[inline(always)]
fn walk(ctx: &RawTracePointContext, cpu_slot: u32, file: u64) -> Option<Outcome> {
    if let Some(outcome) = record::walk(ctx, cpu_slot, false) {
        return Some(outcome);
    }
    name_call(cpu_slot, ctx.arg(1), CallRegisters(ctx.arg(0)), file);
    None
}

subprog! {
    /// Puts a system call at the leaf of the stack in the scratch memory, and the file that it is about, if its
    /// name is wanted.
    fn name_call(cpu_slot: u32, number: u64, registers: CallRegisters, file: u64) {
        let tag = if config!(calls.wanted) == WantedCalls::Futex as u32 {
            FrameTag::UserLock
        } else if registers.is_native() {
            FrameTag::SystemCall
        } else {
            FrameTag::CompatSystemCall
        };
        if let Some(scratch) = Scratch::of(cpu_slot) {
            put_named_leaf(scratch, FrameWord::new(tag, number as u32), file);
        }
    }
}

/// Makes a word the kernel's record in the scratch memory, with the name of a file, if there is one and its name is wanted.
#[inline(always)]
pub(crate) fn put_named_leaf(scratch: &'static Scratch, leaf: FrameWord, file: u64) {
    let mut words = 0;
    if config::has(Switches::FILE_NAMES) && file != 0 {
        words = files::put_name(scratch, file);
    }
    kernel::put_leaf(scratch, leaf, words);
}

/// A thread begins a call.
#[inline(always)]
pub(crate) fn begin(ctx: &RawTracePointContext) {
    let Ok(ids) = filter::current() else { return };
    let cpu_slot = task::cpu();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    threads::end_fault_before_call(task::initial_id());
    let mut found = FoundFile::At(0);
    if config!(calls.wanted) != WantedCalls::All as u32 {
        found = find_call(ctx.arg(1), CallRegisters(ctx.arg(0)));
    }
    let (file, left_out) = match found {
        // A call that is not wanted costs no more than this.
        FoundFile::None => return,
        FoundFile::OtherKind => (0, Some(Counter::FilteredFileKind)),
        FoundFile::At(file) => (file, None),
    };
    let context = SampleContext::new(cpu_slot, ids, task::now());
    timed::begins_again(counters);
    timed::run(counters, context, 0, left_out, || walk(ctx, cpu_slot, file));
}

subprog! {
    /// Whether a call is one of those wanted, and the file that it is about, if it is about one.
    fn find_call(number: u64, registers: CallRegisters) -> FoundFile {
        find(number, registers)
    }
}

#[inline(always)]
fn find(number: u64, registers: CallRegisters) -> FoundFile {
    if config!(calls.wanted) == WantedCalls::Io as u32 {
        return if registers.is_native() {
            files::of_call(number, registers)
        } else {
            FoundFile::None
        };
    }
    if waits_for_lock(number, registers.argument(1)) && registers.is_native() {
        FoundFile::At(0)
    } else {
        FoundFile::None
    }
}

/// A thread returns from a call.
#[inline(always)]
pub(crate) fn end(ctx: &RawTracePointContext) {
    let returned = ctx.arg::<u64>(1) as i64;
    timed::end(0, if returned > 0 { returned as u64 } else { 0 });
}
