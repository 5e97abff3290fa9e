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
//! Code of the kernel: `do_user_addr_fault` in `arch/x86/mm/fault.c`, `mm_account_fault` in `mm/memory.c`, `filemap_fault` in
//! `mm/filemap.c`.
//!
//! What is known of a fault is in the thread's entry among the [`sleepers`]. A fault in the midst of a call that is waited for
//! is part of that.

use super::syscall::{NOT_MEANT, OTHER_KIND};
use crate::{
    apart,
    platform::{
        config::{self, config},
        maps::SCRATCH,
    },
    probe::timed,
    sample::{
        self,
        counters::{self, Outcome},
        filter,
    },
    store::threads::{self, Fault},
    task::{self, files},
    walk::{mappings, user::SampleContext},
};
use aya_ebpf::programs::{PerfEventContext, RawTracePointContext};
use profiler_common::abi::{Counter, FAULT_DECIDED, FAULT_HAS_WAITED, PAGE_BYTES, Switches};

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
    let (switches, place) = if in_kernel || !has_two_locks() {
        (FAULT_DECIDED, 0)
    } else {
        (task::switches(), task::interrupted_at().unwrap_or(0))
    };
    entry.begin_fault(&Fault {
        begun_ns: task::now(),
        switches,
        place,
        address,
    });
}

/// Whether mappings have locks of their own.
#[inline(always)]
fn has_two_locks() -> bool {
    config!(faults.task_switches) != 0
}

/// The running thread, a target, begins a call: it is in no fault. Most ends of faults are not seen.
#[inline(always)]
pub(crate) fn end_before_call() {
    if has_two_locks()
        && let Some(entry) = threads::find(task::initial_id())
    {
        entry.end_fault();
    }
}

/// A thread has handled a fault for which a page was read.
#[inline(always)]
pub(crate) fn end(ctx: &PerfEventContext) {
    let begun = apart::end_fault();
    if begun != NOTHING {
        fire(begun, task::address(ctx));
    }
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
    let Some(fault) = entry.fault() else { return };
    // The fault that is noted may be over, and the thread be interrupted by something else.
    if fault.switches >= FAULT_HAS_WAITED || task::interrupted_at() != Some(fault.place) {
        return;
    }
    let has_waited = task::switches() != fault.switches;
    entry.decide_fault(if has_waited {
        FAULT_HAS_WAITED
    } else {
        FAULT_DECIDED
    });
}

/// A thread gives the lock of its process's mappings back. If the kernel has not said yet that a page was read in the fault, it
/// will not.
#[inline(always)]
pub(crate) fn unlocks() {
    let begun = apart::end_waiting_fault();
    if begun != NOTHING {
        fire(begun, NOTED);
    }
}

/// What [`end_of`] and [`end_of_waiting`] say of what is no firing.
pub(crate) const NOTHING: u64 = 0;

/// What they say instead of when a fault began, if there was no room to keep it.
const NO_ROOM: u64 = 1;

/// Stands for the address that is noted.
const NOTED: u64 = 0;

/// When the running thread's fault began, which is over.
#[inline(always)]
pub(crate) fn end_of() -> u64 {
    let id = task::initial_id();
    match threads::find(id) {
        Some(entry) if entry.since_ns().is_some() => NOTHING,
        Some(entry) => {
            let fault = entry.fault();
            entry.end_fault();
            fault.map_or(NOTHING, |fault| fault.begun_ns)
        }
        None if filter::current().is_err() => NOTHING,
        // It began before the recording did.
        None if threads::make(id).is_some() => NOTHING,
        None => NO_ROOM,
    }
}

/// When the running thread's fault began, if it has waited for a page that is there now.
#[inline(always)]
pub(crate) fn end_of_waiting() -> u64 {
    let Some(entry) = threads::find(task::initial_id()) else {
        return NOTHING;
    };
    match entry.fault() {
        Some(fault) if fault.switches == FAULT_HAS_WAITED && entry.since_ns().is_none() => {
            // Should another page be read in the same fault after all, that is another firing.
            entry.restart_fault(task::now());
            fault.begun_ns
        }
        _ => NOTHING,
    }
}

/// One firing, if the address is that of a mapped file.
#[inline(always)]
fn fire(begun: u64, address: u64) {
    let Ok(ids) = filter::current() else { return };
    let cpu_slot = task::cpu();
    let Some(counters) = counters::counters(cpu_slot) else {
        return;
    };
    let subject = sample::subject(cpu_slot, ids, task::now());
    counters::enter(counters);
    let outcome = take(subject, begun, address);
    if outcome.0 != NO_FIRING {
        counters::bump(counters, Counter::Fired);
        counters::close(counters, outcome);
    }
    let spent = task::now().wrapping_sub(subject.now);
    counters::add(counters, Counter::RunTime, spent);
    counters::bump(counters, Counter::Left);
}

/// What [`take`] says where there was no firing. Not an option, whose number would be undefined then: the compiler may copy it
/// all the same, and the verifier does not let it.
const NO_FIRING: u32 = u32::MAX;

/// Records a firing, if it is one, and says what became of it.
#[inline(always)]
fn take(subject: SampleContext, begun: u64, address: u64) -> Outcome {
    if !sample::begin(subject.cpu_slot) {
        return Counter::LostReentered.into();
    }
    let outcome = match apart::find_page_in(subject.cpu_slot, address) {
        NOT_MEANT => Outcome(NO_FIRING),
        OTHER_KIND => Counter::FilteredFileKind.into(),
        _ if begun == NO_ROOM => Counter::LostSleeperTable.into(),
        _ => record(subject, begun),
    };
    sample::end(subject.cpu_slot);
    outcome
}

#[inline(always)]
fn record(subject: SampleContext, begun: u64) -> Outcome {
    let Some(scratch) = SCRATCH.get(subject.cpu_slot) else {
        return Counter::LostStackStore.into();
    };
    // Not `sample::walk`, which would begin the kernel's record anew, in which the leaf stands.
    if config::has(Switches::USER_STACKS) {
        apart::walk(subject);
    } else {
        scratch.user[0].store(0);
    }
    let spent_ns = subject.now.wrapping_sub(begun);
    apart::take(0, subject, timed::weight(spent_ns, PAGE_BYTES))
}

/// The address of the file that is mapped at an address of the running process, or at that of its fault, if it is of a wanted
/// kind; [`OTHER_KIND`] if it is not, [`NOT_MEANT`] if there is none.
#[inline(always)]
pub(crate) fn find(cpu_slot: u32, address: u64) -> u64 {
    let address = if address == NOTED {
        let entry = threads::find(task::initial_id());
        entry.map_or(0, |entry| entry.fault_address())
    } else {
        address
    };
    let mapping = SCRATCH
        .get(cpu_slot)
        .and_then(|scratch| mappings::find(mappings::space(), scratch, address));
    let file = mapping.map_or(0, |mapping| mappings::file(mapping.vma));
    match file {
        0 => NOT_MEANT,
        file if files::is_wanted(file) => file,
        _ => OTHER_KIND,
    }
}
