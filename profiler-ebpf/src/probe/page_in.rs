//! Page-ins: one firing each time that a thread waits in a page fault for a page of a mapped file to be read; its weight is the
//! nanoseconds that it waits, or one, or the bytes of a page.
//!
//! A fault begins at a tracepoint, where nothing is known of it but the address. So every fault of a target passes here, and
//! few are firings:
//!
//! - When it is over, the kernel says whether it was a major one: whether this thread had a page read.
//! - It may as well wait for a page that is being read already. Where mappings have locks of their own, such a fault is then begun
//!   anew under the lock of all mappings, and is a minor one. Whether the thread has left the CPU is seen when it asks for that
//!   lock, and that the fault is over when it gives it back.
//!
//! Code of the kernel: each machine's `fault.c`, `mm_account_fault` in `mm/memory.c`, `filemap_fault` in
//! `mm/filemap.c`.
//!
//! State of a fault is in the thread's entry among the [`threads`]. A fault in the midst of a call
//! that is waited for is part of that call.

use super::{syscall::put_named_leaf, timed};
use crate::{
    platform::{
        maps::Scratch,
        subprog::{Scalar, subprog},
    },
    record,
    sample::{
        context::{self, SampleContext},
        counters::{self, Outcome},
        filter,
    },
    store::threads,
    task::{self, files::FoundFile},
    walk::mappings,
};
use aya_ebpf::programs::{PerfEventContext, RawTracePointContext};
use profiler_common::abi::{Counter, FaultPhase, FrameTag, FrameWord, PAGE_BYTES, PageFault};

/// A thread begins to handle a fault at the address that is the first argument.
#[inline(always)]
pub(crate) fn begin(ctx: &RawTracePointContext, in_kernel: bool) {
    let address: u64 = ctx.arg(0);
    // The kernel's own memory has no files. Nothing may be noted of a fault that is not handled: it may come in the middle of
    // one that is.
    if in_kernel && (address as i64 <= 0 || task::does_without_memory()) {
        return;
    }
    if filter::current().is_err() {
        return;
    }
    let Some(entry) = threads::make(task::initial_id()) else {
        return;
    };
    if entry.since_ns().is_some() {
        if in_kernel {
            return;
        }
        // A program that runs is in no call: the end of its last one was not seen.
        if let Some(counters) = counters::counters(task::cpu()) {
            timed::begins_again(counters);
        }
    }
    // Faults in the kernel know but one lock.
    let (phase, switches, place) = if in_kernel || !threads::has_two_fault_locks() {
        (FaultPhase::Decided, 0, 0)
    } else {
        let place = task::interrupted_at().unwrap_or(0);
        (FaultPhase::Begun, task::switches(), place)
    };
    let fault = PageFault {
        phase: phase as u64,
        begun: task::now(),
        switches,
        place,
        address,
    };
    entry.begin_fault(&fault);
}

/// A thread has handled a fault for which a page was read.
#[inline(always)]
pub(crate) fn end(ctx: &PerfEventContext) {
    fire(end_fault(), task::address(ctx));
}

/// A thread asks for the lock of its process's mappings.
///
/// The first time that it does so in a fault, it has had the mapping's own lock before, or is one of the few faults that take no
/// other; later, it may have waited for this lock as well.
#[inline(always)]
pub(crate) fn locks() {
    let Some(entry) = threads::find(task::initial_id()) else {
        return;
    };
    if entry.since_ns().is_some() {
        return;
    }
    // The fault that is noted may be over, and the thread be interrupted by something else.
    let fault = entry.fault();
    if entry.fault_phase() != FaultPhase::Begun
        || task::interrupted_at() != Some(fault.place.load())
    {
        return;
    }
    let has_waited = task::switches() != fault.switches.load();
    entry.set_fault_phase(if has_waited {
        FaultPhase::HasWaited
    } else {
        FaultPhase::Decided
    });
}

/// A thread gives the lock of its process's mappings back. If the kernel has not said yet that a page was read in the fault, it
/// will not.
#[inline(always)]
pub(crate) fn unlocks() {
    fire(end_waiting_fault(), NOTED);
}

/// How the running thread's page fault ended.
#[derive(Clone, Copy)]
enum End {
    /// There was none that is a firing.
    None,
    /// There was no room to keep when it began.
    NoRoom,
    /// It began then.
    Of(u64),
}

impl End {
    const NONE: u64 = 0;
    const NO_ROOM: u64 = 1;
}

/// No fault begins in the first nanosecond after boot.
impl Scalar for End {
    #[inline(always)]
    fn into_word(self) -> u64 {
        match self {
            Self::None => Self::NONE,
            Self::NoRoom => Self::NO_ROOM,
            Self::Of(begun) => begun,
        }
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        match word {
            Self::NONE => Self::None,
            Self::NO_ROOM => Self::NoRoom,
            begun => Self::Of(begun),
        }
    }
}

/// Stands for the address that is noted.
const NOTED: u64 = 0;

subprog! {
    /// The running thread's fault is over: when it began.
    fn end_fault() -> End {
        let id = task::initial_id();
        match threads::find(id) {
            Some(entry) if entry.since_ns().is_some() => End::None,
            Some(entry) => {
                let phase = entry.fault_phase();
                entry.set_fault_phase(FaultPhase::None);
                match phase {
                    FaultPhase::None => End::None,
                    _ => End::Of(entry.fault().begun.load()),
                }
            }
            None if filter::current().is_err() => End::None,
            // It began before the recording did.
            None if threads::make(id).is_some() => End::None,
            None => End::NoRoom,
        }
    }
}

subprog! {
    /// When the running thread's fault began, if it has waited for a page that is there now.
    fn end_waiting_fault() -> End {
        let Some(entry) = threads::find(task::initial_id()) else {
            return End::None;
        };
        if entry.fault_phase() != FaultPhase::HasWaited || entry.since_ns().is_some() {
            return End::None;
        }
        let begun = entry.fault().begun.load();
        // Should another page be read in the same fault after all, that is another firing.
        entry.restart_fault(task::now());
        End::Of(begun)
    }
}

/// One firing, if the address is that of a mapped file.
#[inline(always)]
fn fire(end: End, address: u64) {
    if let End::None = end {
        return;
    }
    let Ok(ids) = filter::current() else { return };
    let cpu_slot = task::cpu();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    let context = SampleContext::new(cpu_slot, ids, task::now());
    counters::enter(counters);
    let outcome = take(context, end, address);
    if outcome.0 != NO_FIRING {
        counters::bump(counters, Counter::Fired);
        counters::close(counters, outcome);
    }
    let spent = task::now().wrapping_sub(context.now);
    counters::add(counters, Counter::RunTime, spent);
    counters::bump(counters, Counter::Left);
}

/// Result of [`take`] without a firing. Not an option, whose number would be undefined then: the
/// compiler may copy it all the same, and the verifier does not let it.
const NO_FIRING: u32 = u32::MAX;

/// Records a firing, if it is one, and says what became of it.
#[inline(always)]
fn take(context: SampleContext, end: End, address: u64) -> Outcome {
    let cpu_slot = context.cpu_slot;
    if !context::claim(cpu_slot) {
        return Counter::LostReentered.into();
    }
    let outcome = match (find_page_in(cpu_slot, address), end) {
        (FoundFile::None, _) | (_, End::None) => Outcome(NO_FIRING),
        (FoundFile::OtherKind, _) => Counter::FilteredFileKind.into(),
        (_, End::NoRoom) => Counter::LostThreadTable.into(),
        (_, End::Of(begun)) => record(context, begun),
    };
    context::release(cpu_slot);
    outcome
}

#[inline(always)]
fn record(context: SampleContext, begun: u64) -> Outcome {
    let cpu_slot = context.cpu_slot;
    let Some(scratch) = Scratch::of(cpu_slot) else {
        return Counter::LostStackStore.into();
    };
    context.keep();
    // Not `record::walk`, which would begin the kernel's record anew, in which the page-in stands.
    record::walk_user(scratch, cpu_slot);
    let spent_ns = context.now.wrapping_sub(begun);
    record::take(0, cpu_slot, timed::weight(spent_ns, PAGE_BYTES))
}

subprog! {
    /// The file that is mapped at an address of the running process, or at that of its fault. Makes a page-in of it the kernel's
    /// record in the scratch memory, with the file's name, if that is wanted.
    fn find_page_in(cpu_slot: u32, address: u64) -> FoundFile {
        let Some(scratch) = Scratch::of(cpu_slot) else {
            return FoundFile::None;
        };
        let found = FoundFile::of(mapped_file(scratch, address));
        if let FoundFile::At(file) = found {
            put_named_leaf(scratch, FrameWord::new(FrameTag::PageIn, 0), file);
        }
        found
    }
}

#[inline(always)]
fn mapped_file(scratch: &'static Scratch, address: u64) -> u64 {
    let address = if address == NOTED {
        let entry = threads::find(task::initial_id());
        entry.map_or(0, |entry| entry.fault().address.load())
    } else {
        address
    };
    let mapping = mappings::find(mappings::space(), scratch, address);
    mapping.map_or(0, |mapping| mappings::file(mapping.vma))
}
