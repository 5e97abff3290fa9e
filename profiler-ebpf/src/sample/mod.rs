//! One sample of the running task: its stacks, walked into the scratch memory, are stored, and the firing is
//! counted.

pub(crate) mod counters;
pub(crate) mod filter;

use crate::{
    apart,
    platform::{
        config::{self, config},
        maps::{CONTROL, SCRATCH},
        word::Word,
    },
    sample::counters::Outcome,
    store::tallies::{self, Counted},
    task::{self, Ids},
    walk::{
        kstack_cache::{self, RECOGNIZED},
        user::{self, SampleContext},
    },
};
use aya_ebpf::{EbpfContext, programs::RawTracePointContext};
use profiler_common::abi::{
    Counter, Header, KEY_WORDS, Live, SampleKey, StackPosition, Stamp, Switches, ThreadState,
};

/// The name under which the idle tasks of all CPUs are one; the kernel's has the CPU's number behind it.
const IDLE_COMM: [u8; 16] = *b"swapper\0\0\0\0\0\0\0\0\0";

/// The CPU slot of a event on this CPU: its counters, and its scratch memory.
#[inline(always)]
pub(crate) fn cpu_slot(event: u32) -> u32 {
    let cpu = task::cpu();
    if event == 0 {
        cpu
    } else {
        cpu.wrapping_add(event.wrapping_mul(config!(cpus)))
    }
}

/// Takes the CPU's scratch memory, for a firing that another may interrupt or displace on its CPU; false if
/// one has it that was interrupted. To be given back by [`end`].
#[inline(always)]
pub(crate) fn begin(cpu_slot: u32) -> bool {
    SCRATCH
        .get(cpu_slot)
        .is_some_and(|scratch| scratch.taken.take(1))
}

/// Notes that firings on this CPU slot find programs at the first instruction of a function. It stays so: a CPU slot is of one
/// event, whose firings are alike.
#[inline(always)]
pub(crate) fn at_entry(cpu_slot: u32) {
    if let Some(scratch) = SCRATCH.get(cpu_slot) {
        scratch.walk.at_entry.store(1);
    }
}

/// Gives the CPU's scratch memory back.
#[inline(always)]
pub(crate) fn end(cpu_slot: u32) {
    if let Some(scratch) = SCRATCH.get(cpu_slot) {
        scratch.taken.store(0);
    }
}

/// Whom a firing of a event's program found, or what became of the firing if that is nobody wanted. The first event's
/// programs have all of it to themselves, for speed; the others share it, so that there is little to each of them.
#[inline(always)]
pub(crate) fn whom<const EVENT: u32>() -> Result<Ids, Outcome> {
    if EVENT == 0 {
        filter::current().map_err(Outcome::from)
    } else {
        apart::current()
    }
}

/// As [`subject`], for a event's program.
#[inline(always)]
pub(crate) fn subject_of<const EVENT: u32>(cpu_slot: u32, ids: Ids, now: u64) -> SampleContext {
    if EVENT == 0 {
        subject(cpu_slot, ids, now)
    } else {
        SampleContext {
            ids,
            incarnation: apart::incarnation(),
            cpu_slot,
            now,
        }
    }
}

/// Whom a firing found.
#[inline(always)]
pub(crate) fn subject(cpu_slot: u32, ids: Ids, now: u64) -> SampleContext {
    SampleContext {
        ids,
        incarnation: if ids.tid == 0 { 0 } else { task::incarnation() },
        cpu_slot,
        now,
    }
}

/// Walks the running task's stacks, as far as they are wanted, into the scratch memory; a kernel stack only
/// where the firing found the CPU `in_kernel`. Returns what became of the firing if that is not possible.
#[inline(always)]
pub(crate) fn walk(
    ctx: &impl EbpfContext,
    subject: SampleContext,
    in_kernel: bool,
) -> Option<Outcome> {
    let Some(scratch) = SCRATCH.get(subject.cpu_slot) else {
        return Some(Counter::LostStackStore.into());
    };
    if config::has(Switches::KERNEL_STACKS) && in_kernel {
        user::kernel::<0>(ctx, &scratch.kernel);
    } else {
        scratch.kernel[0].store(0);
    }
    if config::has(Switches::USER_STACKS) {
        apart::walk(subject);
    } else {
        scratch.user[0].store(0);
    }
    None
}

/// As [`walk`], of a thread that begins to wait; or has been preempted. The first of the tracepoint's own `arguments` is where
/// the thread's kernel stack is looked at from.
#[inline(always)]
pub(crate) fn walk_waiting(
    ctx: &RawTracePointContext,
    subject: SampleContext,
    is_preempted: impl FnOnce() -> bool,
) -> Option<Outcome> {
    let Some(scratch) = SCRATCH.get(subject.cpu_slot) else {
        return Some(Counter::LostStackStore.into());
    };
    if !config::has(Switches::KERNEL_STACKS) {
        scratch.kernel[0].store(0);
    } else if is_preempted() {
        user::kernel::<0>(ctx, &scratch.kernel);
    } else {
        kstack_cache::begin(ctx.as_ptr());
        if apart::is_known() {
            scratch.kernel[0].store(RECOGNIZED);
        } else {
            user::kernel::<0>(ctx, &scratch.kernel);
            apart::learn(subject.cpu_slot);
        }
    }
    if config::has(Switches::USER_STACKS) {
        apart::walk(subject);
    } else {
        scratch.user[0].store(0);
    }
    None
}

/// Counts the firing for a event, of a thread that runs, with what is in the scratch memory; or says what became of it.
#[inline(always)]
pub(crate) fn take(
    event: u32,
    cpu_slot: u32,
    ids: Ids,
    incarnation: u64,
    weight: u64,
) -> Result<Counted, Counter> {
    key(cpu_slot, ids, incarnation, ThreadState::Running, event)?;
    count(cpu_slot, weight)
}

/// Counts a firing for the key in the scratch memory.
#[inline(always)]
pub(crate) fn count(cpu_slot: u32, weight: u64) -> Result<Counted, Counter> {
    let scratch = SCRATCH.get(cpu_slot).ok_or(Counter::LostTallyTable)?;
    let control = CONTROL.get(0).ok_or(Counter::LostTallyTable)?;
    let side = Live(control.live.load()).tallies();
    tallies::count(cpu_slot, scratch, side, weight).ok_or(Counter::LostTallyTable)
}

/// Stores the stacks in the scratch memory, and puts the key of the running task there.
#[inline(always)]
pub(crate) fn key(
    cpu_slot: u32,
    ids: Ids,
    incarnation: u64,
    thread_state: ThreadState,
    event: u32,
) -> Result<(), Counter> {
    let scratch = SCRATCH.get(cpu_slot).ok_or(Counter::LostStackStore)?;
    let control = CONTROL.get(0).ok_or(Counter::LostTallyTable)?;
    let live = Live(control.live.load());
    let side = live.stacks();
    let user = match scratch.user[0].load() {
        0 if !config::has(Switches::KERNEL_STACKS) => return Err(Counter::FilteredNoUserStack),
        0 => StackPosition::NONE,
        header => {
            apart::keep_user(cpu_slot, side, Header(header)).ok_or(Counter::LostStackStore)?
        }
    };
    let kernel = match scratch.kernel[0].load() {
        0 => StackPosition::NONE,
        RECOGNIZED => apart::keep_recognized(cpu_slot, live).ok_or(Counter::LostStackStore)?,
        header => {
            apart::keep_kernel(cpu_slot, side, Header(header)).ok_or(Counter::LostStackStore)?
        }
    };
    let stamp = Stamp::new(live.epoch(), thread_state).of_event(event);
    let key = SampleKey {
        user,
        kernel,
        ..owner(ids, incarnation, stamp)
    };
    put(&scratch.key, &key);
    Ok(())
}

/// The key of the running task, without stacks.
#[inline(always)]
fn owner(ids: Ids, incarnation: u64, stamp: Stamp) -> SampleKey {
    SampleKey {
        incarnation,
        tgid: ids.tgid,
        tid: if config::has(Switches::PER_THREAD) {
            ids.tid
        } else {
            0
        },
        cpu: if config::has(Switches::PER_CPU) {
            task::cpu()
        } else {
            0
        },
        user: StackPosition::NONE,
        kernel: StackPosition::NONE,
        stamp,
        comm: if ids.tid == 0 {
            IDLE_COMM
        } else {
            task::comm()
        },
    }
}

/// Puts the key of the running task, without stacks, into the scratch memory.
#[inline(always)]
pub(crate) fn key_without_stacks(
    place: &[Word; KEY_WORDS],
    ids: Ids,
    incarnation: u64,
    thread_state: ThreadState,
) {
    put(place, &owner(ids, incarnation, Stamp::new(0, thread_state)));
}

/// As [`key_without_stacks`], of the thread at a kernel address.
#[inline(always)]
pub(crate) fn key_of(place: &[Word; KEY_WORDS], task: u64, ids: Ids, thread_state: ThreadState) {
    let key = SampleKey {
        incarnation: task::incarnation_of(task),
        tgid: ids.tgid,
        tid: if config::has(Switches::PER_THREAD) {
            ids.tid
        } else {
            0
        },
        cpu: 0,
        user: StackPosition::NONE,
        kernel: StackPosition::NONE,
        stamp: Stamp::new(0, thread_state),
        comm: task::comm_of(task),
    };
    put(place, &key);
}

#[inline(always)]
fn put(place: &[Word; KEY_WORDS], key: &SampleKey) {
    for (place, word) in place.iter().zip(key.words()) {
        place.store(word);
    }
}
