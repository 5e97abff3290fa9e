//! One sample of the running task: its stacks, walked into the scratch memory, are stored, and the firing is
//! counted.

use crate::{
    aggregate::{self, Counted},
    apart,
    config::{self, config},
    counter::Outcome,
    filter,
    maps::{CONTROL, SCRATCH},
    recognize::{self, RECOGNIZED},
    task::{self, Ids},
    walk::{self, Subject},
    word::Word,
};
use aya_ebpf::{EbpfContext, programs::RawTracePointContext};
use profiler_common::abi::{
    Counter, Doing, Header, KEY_WORDS, Live, SampleKey, StackPosition, Stamp, Switches,
};

/// The name under which the idle tasks of all CPUs are one; the kernel's has the CPU's number behind it.
const IDLE_COMM: [u8; 16] = *b"swapper\0\0\0\0\0\0\0\0\0";

/// The seat of a track on this CPU: its books, and its scratch memory.
#[inline(always)]
pub(crate) fn seat(track: u32) -> u32 {
    let cpu = task::cpu();
    if track == 0 {
        cpu
    } else {
        cpu.wrapping_add(track.wrapping_mul(config!(cpus)))
    }
}

/// Takes the CPU's scratch memory, for a firing that another may interrupt or displace on its CPU; false if
/// one has it that was interrupted. To be given back by [`end`].
#[inline(always)]
pub(crate) fn begin(seat: u32) -> bool {
    SCRATCH
        .get(seat)
        .is_some_and(|scratch| scratch.taken.take(1))
}

/// Notes that firings on this seat find programs at the first instruction of a function. It stays so: a seat is of one
/// track, whose firings are alike.
#[inline(always)]
pub(crate) fn at_entry(seat: u32) {
    if let Some(scratch) = SCRATCH.get(seat) {
        scratch.walk.at_entry.store(1);
    }
}

/// Gives the CPU's scratch memory back.
#[inline(always)]
pub(crate) fn end(seat: u32) {
    if let Some(scratch) = SCRATCH.get(seat) {
        scratch.taken.store(0);
    }
}

/// Whom a firing of a track's program found, or what became of the firing if that is nobody wanted. The first track's
/// programs have all of it to themselves, for speed; the others share it, so that there is little to each of them.
#[inline(always)]
pub(crate) fn whom<const TRACK: u32>() -> Result<Ids, Outcome> {
    if TRACK == 0 {
        filter::current().map_err(Outcome::from)
    } else {
        apart::current()
    }
}

/// As [`subject`], for a track's program.
#[inline(always)]
pub(crate) fn subject_of<const TRACK: u32>(seat: u32, ids: Ids, now: u64) -> Subject {
    if TRACK == 0 {
        subject(seat, ids, now)
    } else {
        Subject {
            ids,
            incarnation: apart::incarnation(),
            seat,
            now,
        }
    }
}

/// Whom a firing found.
#[inline(always)]
pub(crate) fn subject(seat: u32, ids: Ids, now: u64) -> Subject {
    Subject {
        ids,
        incarnation: if ids.tid == 0 { 0 } else { task::incarnation() },
        seat,
        now,
    }
}

/// Walks the running task's stacks, as far as they are wanted, into the scratch memory; a kernel stack only
/// where the firing found the CPU `in_kernel`. Returns what became of the firing if that is not possible.
#[inline(always)]
pub(crate) fn walk(ctx: &impl EbpfContext, subject: Subject, in_kernel: bool) -> Option<Outcome> {
    let Some(scratch) = SCRATCH.get(subject.seat) else {
        return Some(Counter::LostStackStore.into());
    };
    if config::has(Switches::KERNEL_STACKS) && in_kernel {
        walk::kernel::<0>(ctx, &scratch.kernel);
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
    subject: Subject,
    is_preempted: impl FnOnce() -> bool,
) -> Option<Outcome> {
    let Some(scratch) = SCRATCH.get(subject.seat) else {
        return Some(Counter::LostStackStore.into());
    };
    if !config::has(Switches::KERNEL_STACKS) {
        scratch.kernel[0].store(0);
    } else if is_preempted() {
        walk::kernel::<0>(ctx, &scratch.kernel);
    } else {
        recognize::begin(ctx.as_ptr());
        if apart::is_known() {
            scratch.kernel[0].store(RECOGNIZED);
        } else {
            walk::kernel::<0>(ctx, &scratch.kernel);
            apart::learn(subject.seat);
        }
    }
    if config::has(Switches::USER_STACKS) {
        apart::walk(subject);
    } else {
        scratch.user[0].store(0);
    }
    None
}

/// Counts the firing for a track, of a thread that runs, with what is in the scratch memory; or says what became of it.
#[inline(always)]
pub(crate) fn take(
    track: u32,
    seat: u32,
    ids: Ids,
    incarnation: u64,
    weight: u64,
) -> Result<Counted, Counter> {
    key(seat, ids, incarnation, Doing::Running, track)?;
    count(seat, weight)
}

/// Counts a firing for the key in the scratch memory.
#[inline(always)]
pub(crate) fn count(seat: u32, weight: u64) -> Result<Counted, Counter> {
    let scratch = SCRATCH.get(seat).ok_or(Counter::LostTallyTable)?;
    let control = CONTROL.get(0).ok_or(Counter::LostTallyTable)?;
    let side = Live(control.live.load()).tallies();
    aggregate::count(seat, scratch, side, weight).ok_or(Counter::LostTallyTable)
}

/// Stores the stacks in the scratch memory, and puts the key of the running task there.
#[inline(always)]
pub(crate) fn key(
    seat: u32,
    ids: Ids,
    incarnation: u64,
    doing: Doing,
    track: u32,
) -> Result<(), Counter> {
    let scratch = SCRATCH.get(seat).ok_or(Counter::LostStackStore)?;
    let control = CONTROL.get(0).ok_or(Counter::LostTallyTable)?;
    let live = Live(control.live.load());
    let side = live.stacks();
    let user = match scratch.user[0].load() {
        0 if !config::has(Switches::KERNEL_STACKS) => return Err(Counter::FilteredNoUserStack),
        0 => StackPosition::NONE,
        header => apart::keep_user(seat, side, Header(header)).ok_or(Counter::LostStackStore)?,
    };
    let kernel = match scratch.kernel[0].load() {
        0 => StackPosition::NONE,
        RECOGNIZED => apart::keep_recognized(seat, live).ok_or(Counter::LostStackStore)?,
        header => apart::keep_kernel(seat, side, Header(header)).ok_or(Counter::LostStackStore)?,
    };
    let stamp = Stamp::new(live.epoch(), doing).of_track(track);
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
    doing: Doing,
) {
    put(place, &owner(ids, incarnation, Stamp::new(0, doing)));
}

/// As [`key_without_stacks`], of the thread at a kernel address.
#[inline(always)]
pub(crate) fn key_of(place: &[Word; KEY_WORDS], task: u64, ids: Ids, doing: Doing) {
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
        stamp: Stamp::new(0, doing),
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
