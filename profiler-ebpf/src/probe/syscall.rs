//! System calls: one firing each time that a thread makes one; weight one, or the time or the bytes until it
//! returns.

use super::{page_in, passing};
use crate::{
    apart,
    platform::config::{self, config},
    probe::timed,
    sample::{
        self,
        counters::{self, Outcome},
        filter,
    },
    task::{self, CallRegisters},
    walk::user::SampleContext,
};
use aya_ebpf::programs::RawTracePointContext;
use profiler_common::abi::{Counter, WantedCalls, waits_for_lock};

/// A thread makes a call, which is counted at once.
#[inline(always)]
pub(crate) fn made(ctx: &RawTracePointContext) {
    passing::fire::<0>(0, 1, |subject| walk(ctx, subject, 0));
}

/// Walks the thread's user stack, and puts what it calls at its leaf.
#[inline(always)]
fn walk(ctx: &RawTracePointContext, subject: SampleContext, file: u64) -> Option<Outcome> {
    if let Some(outcome) = sample::walk(ctx, subject, false) {
        return Some(outcome);
    }
    apart::name_call(subject.cpu_slot, ctx.arg(1), ctx.arg(0), file);
    None
}

/// A thread begins a call.
#[inline(always)]
pub(crate) fn begin(ctx: &RawTracePointContext) {
    let Ok(ids) = filter::current() else { return };
    let cpu_slot = task::cpu();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    page_in::end_before_call();
    let mut file = 0;
    if config!(calls.wanted) != WantedCalls::All as u32 {
        // A call that is not meant costs no more than this.
        file = apart::find_call(ctx.arg(1), ctx.arg(0));
        if file == NOT_MEANT {
            return;
        }
    }
    let subject = sample::subject(cpu_slot, ids, task::now());
    timed::begins_again(counters);
    let left_out = (file == OTHER_KIND).then_some(Counter::FilteredFileKind);
    timed::run(counters, subject, 0, left_out, || walk(ctx, subject, file));
}

/// What [`find`] says of a call that is none of those wanted.
pub(crate) const NOT_MEANT: u64 = 1;

/// What it says of one about a file of another kind.
pub(crate) const OTHER_KIND: u64 = 2;

/// Whether a call is one of those wanted, and the address of the file that it is about, if it is about one.
#[inline(always)]
pub(crate) fn find(number: u64, registers: CallRegisters) -> u64 {
    if config!(calls.wanted) == WantedCalls::Io as u32 {
        if crate::task::files::wanted(number).is_none() || !registers.is_native() {
            return NOT_MEANT;
        }
        return match crate::task::files::of_call(number, registers) {
            0 => OTHER_KIND,
            file => file,
        };
    }
    if waits_for_lock(number, registers.argument(1)) && registers.is_native() {
        0
    } else {
        NOT_MEANT
    }
}

/// A thread returns from a call.
#[inline(always)]
pub(crate) fn end(ctx: &RawTracePointContext) {
    let returned = ctx.arg::<u64>(1) as i64;
    timed::end(0, if returned > 0 { returned as u64 } else { 0 });
}

/// Whether the file's name is wanted.
#[inline(always)]
pub(crate) fn names_files() -> bool {
    config::has(profiler_common::abi::Switches::FILE_NAMES)
}
