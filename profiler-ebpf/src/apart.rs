//! What the verifier checks apart.
//!
//! A function whose name is kept (a *global* function, Linux 5.6) is verified once, for any arguments, and
//! not again at each call for all that may be known there. Arguments and results are numbers: what is
//! larger goes through the scratch memory of the firing's CPU slot.
#![expect(
    unsafe_code,
    reason = "names that are kept are what makes functions global"
)]

mod recognizing;
mod waking;
mod walking;

pub(crate) use recognizing::{is_known, keep_recognized, learn};
pub(crate) use waking::{note_waker, owner, settle_woken};
pub(crate) use walking::{
    ask, leave, put_path, recall, rule, tell, tell_stack, walk, walk_by_pointers,
};

use crate::{
    events,
    platform::{
        config::config,
        maps::{SCRATCH, Scratch},
        word::Word,
    },
    probe::{alloc, off_cpu, page_in, syscall, timed, wall},
    sample::{
        self,
        counters::{self, Outcome},
        filter,
    },
    store::{stacks::Sealed, tallies::Counted},
    task::{self, CallRegisters, Ids, files},
    walk::user::SampleContext,
};
use profiler_common::abi::{
    Allocator, Counter, FrameTag, FrameWord, Header, NoticeKind, SampleKey, StackPosition,
    ThreadState, WantedCalls,
};

/// Where the user stack is stored whose record is in the scratch memory; none if the store is full.
#[inline(always)]
pub(crate) fn keep_user(cpu_slot: u32, side: u32, header: Header) -> Option<StackPosition> {
    position(keep_user_stack(cpu_slot, side, header.0))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn keep_user_stack(cpu_slot: u32, side: u32, header: u64) -> u32 {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return 0;
    };
    keep(cpu_slot, side, header, &scratch.user)
}

/// As [`keep_user`], of the kernel stack.
#[inline(always)]
pub(crate) fn keep_kernel(cpu_slot: u32, side: u32, header: Header) -> Option<StackPosition> {
    position(keep_kernel_stack(cpu_slot, side, header.0))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn keep_kernel_stack(cpu_slot: u32, side: u32, header: u64) -> u32 {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return 0;
    };
    keep(cpu_slot, side, header, &scratch.kernel)
}

#[inline(always)]
fn keep<const WORDS: usize>(
    cpu_slot: u32,
    side: u32,
    header: u64,
    record: &'static [Word; WORDS],
) -> u32 {
    let stored = counters::counters(cpu_slot)
        .and_then(|counters| Sealed::new(record, Header(header))?.intern(counters, side));
    stored.map_or(StackPosition::NONE.0, |position| position.0)
}

#[inline(always)]
fn position(number: u32) -> Option<StackPosition> {
    (number != StackPosition::NONE.0).then_some(StackPosition(number))
}

/// See [`filter::current`].
#[inline(always)]
pub(crate) fn current() -> Result<Ids, Outcome> {
    match current_ids() {
        outcome if outcome & LEFT_OUT != 0 => Err(Outcome(outcome as u32)),
        ids => Ok(two(ids)),
    }
}

/// Stands in what [`current_ids`] returns before what became of the firing: process IDs are positive.
const LEFT_OUT: u64 = 1 << 63;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn current_ids() -> u64 {
    match filter::current() {
        Ok(ids) => one(ids),
        Err(counter) => LEFT_OUT | u64::from(Outcome::from(counter).0),
    }
}

/// The running task's incarnation; see [`sample::subject`].
#[inline(always)]
pub(crate) fn incarnation() -> u64 {
    current_incarnation()
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn current_incarnation() -> u64 {
    if task::initial_id() == 0 {
        0
    } else {
        task::incarnation()
    }
}

/// See [`sample::take`].
#[inline(always)]
pub(crate) fn take(event: u32, subject: SampleContext, weight: u64) -> Outcome {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        ..
    } = subject;
    let outcome = take_sample(cpu_slot, one(ids), incarnation, weight, event);
    if outcome & FIRST != 0 {
        // From here, and not from there, where much of the BPF stack is taken.
        if !tell_stack(cpu_slot, ids.tgid, incarnation) {
            announce_process(cpu_slot, ids.tgid, incarnation);
        }
    }
    Outcome(outcome & !FIRST)
}

/// Stands in what [`take_sample`] returns with the outcome if the key was not counted before.
const FIRST: u32 = 1 << 16;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn take_sample(
    cpu_slot: u32,
    ids: u64,
    incarnation: u64,
    weight: u64,
    event: u32,
) -> u32 {
    match sample::take(event, cpu_slot, two(ids), incarnation, weight) {
        Ok(Counted::First) => Outcome::from(Counter::Recorded).0 | FIRST,
        Ok(Counted::Again) => Outcome::from(Counter::Recorded).0,
        Err(counter) => Outcome::from(counter).0,
    }
}

/// See [`sample::key`]. None if the key is in the scratch memory; otherwise what became of the firing.
#[inline(always)]
pub(crate) fn key(subject: SampleContext, thread_state: ThreadState) -> Option<Outcome> {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        ..
    } = subject;
    key_of(cpu_slot, ids, incarnation, thread_state)
}

/// As [`key`].
#[inline(always)]
pub(crate) fn key_of(
    cpu_slot: u32,
    ids: Ids,
    incarnation: u64,
    thread_state: ThreadState,
) -> Option<Outcome> {
    let outcome = make_key(cpu_slot, one(ids), incarnation, thread_state as u32);
    (outcome != NOTHING).then_some(Outcome(outcome))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn make_key(cpu_slot: u32, ids: u64, incarnation: u64, thread_state: u32) -> u32 {
    match sample::key(
        cpu_slot,
        two(ids),
        incarnation,
        thread_state_of(thread_state),
        0,
    ) {
        Ok(()) => NOTHING,
        Err(outcome) => Outcome::from(outcome).0,
    }
}

/// What a thread does that is being looked at, from a number.
#[inline(always)]
fn thread_state_of(number: u32) -> ThreadState {
    const RUNNING: u32 = ThreadState::Running as u32;
    const RUNNABLE: u32 = ThreadState::Runnable as u32;
    match number {
        RUNNING => ThreadState::Running,
        RUNNABLE => ThreadState::Runnable,
        _ => ThreadState::Blocked,
    }
}

/// See [`off_cpu::depart`].
#[inline(always)]
pub(crate) fn depart(
    cpu_slot: u32,
    now: u64,
    state: u64,
    preempted: bool,
) -> Result<ThreadState, Option<Outcome>> {
    const BLOCKED: u32 = ThreadState::Blocked as u32;
    const RUNNABLE: u32 = ThreadState::Runnable as u32;
    let answer = depart_from_cpu(cpu_slot, now, state, u32::from(preempted));
    match answer & !THREAD_STATE {
        _ if answer == NOTHING => Err(None),
        BLOCKED if answer & THREAD_STATE != 0 => Ok(ThreadState::Blocked),
        RUNNABLE if answer & THREAD_STATE != 0 => Ok(ThreadState::Runnable),
        outcome => Err(Some(Outcome(outcome))),
    }
}

/// Stands in what [`depart_from_cpu`] returns before what the thread will be doing.
const THREAD_STATE: u32 = 1 << 16;

/// No firing, or one that goes on.
const NOTHING: u32 = u32::MAX;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn depart_from_cpu(cpu_slot: u32, now: u64, state: u64, preempted: u32) -> u32 {
    match off_cpu::depart(cpu_slot, now, state as u32, preempted != 0) {
        Ok(thread_state) => thread_state as u32 | THREAD_STATE,
        Err(outcome) => outcome.map_or(NOTHING, |outcome| outcome.0),
    }
}

/// See [`off_cpu::fall_asleep`].
#[inline(always)]
pub(crate) fn fall_asleep(cpu_slot: u32, now: u64) -> Option<Outcome> {
    let outcome = fall_asleep_now(cpu_slot, now);
    (outcome != NOTHING).then_some(Outcome(outcome))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn fall_asleep_now(cpu_slot: u32, now: u64) -> u32 {
    off_cpu::fall_asleep(cpu_slot, now).map_or(NOTHING, |outcome| outcome.0)
}

/// See [`off_cpu::arrive`].
#[inline(always)]
pub(crate) fn arrive(cpu_slot: u32, task: u64, now: u64) {
    arrive_on_cpu(cpu_slot, task, now);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn arrive_on_cpu(cpu_slot: u32, task: u64, now: u64) -> u32 {
    off_cpu::arrive(cpu_slot, task, now);
    0
}

/// See [`wall::ran`].
#[inline(always)]
pub(crate) fn ran(subject: SampleContext) {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        now,
    } = subject;
    ran_until(cpu_slot, one(ids), incarnation, now);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn ran_until(cpu_slot: u32, ids: u64, incarnation: u64, now: u64) -> u32 {
    wall::ran(cpu_slot, two(ids), incarnation, now);
    0
}

/// See [`timed::begin`].
#[inline(always)]
pub(crate) fn begin(subject: SampleContext, awaited: u64) -> Option<Outcome> {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        ..
    } = subject;
    let outcome = begin_timed(cpu_slot, one(ids), incarnation, awaited);
    (outcome != NOTHING).then_some(Outcome(outcome))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn begin_timed(cpu_slot: u32, ids: u64, incarnation: u64, awaited: u64) -> u32 {
    timed::begin(cpu_slot, two(ids), incarnation, awaited).map_or(NOTHING, |outcome| outcome.0)
}

/// See [`alloc::is_part`].
#[inline(always)]
pub(crate) fn is_part(entry: u64, stack: u64, function: Allocator) -> bool {
    is_part_of_asking(entry, stack, function.0) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_part_of_asking(entry: u64, stack: u64, function: u64) -> u32 {
    u32::from(alloc::is_part(entry, stack, Allocator(function)))
}

/// See [`syscall::find`].
#[inline(always)]
pub(crate) fn find_call(number: u64, registers: u64) -> u64 {
    find_wanted_call(number, registers)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_wanted_call(number: u64, registers: u64) -> u64 {
    syscall::find(number, CallRegisters(registers))
}

/// Puts a system call at the leaf of the stack in the scratch memory, and the file that it is about, if its
/// name is wanted.
#[inline(always)]
pub(crate) fn name_call(cpu_slot: u32, number: u64, registers: u64, file: u64) {
    name_call_at_leaf(cpu_slot, number, registers, file);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn name_call_at_leaf(cpu_slot: u32, number: u64, registers: u64, file: u64) -> u32 {
    let tag = if config!(calls.wanted) == WantedCalls::Futex as u32 {
        FrameTag::UserLock
    } else if CallRegisters(registers).is_native() {
        FrameTag::SystemCall
    } else {
        FrameTag::CompatSystemCall
    };
    put_leaf(cpu_slot, FrameWord::new(tag, number as u32), file);
    0
}

#[inline(always)]
fn put_leaf(cpu_slot: u32, leaf: FrameWord, file: u64) {
    let mut words = 0;
    if syscall::names_files() && file != 0 {
        words = files::put_name(cpu_slot, file);
    }
    files::put_leaf(cpu_slot, leaf, words);
}

/// See [`page_in::end_of`].
#[inline(always)]
pub(crate) fn end_fault() -> u64 {
    end_of_fault()
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn end_of_fault() -> u64 {
    page_in::end_of()
}

/// See [`page_in::end_of_waiting`].
#[inline(always)]
pub(crate) fn end_waiting_fault() -> u64 {
    end_of_waiting_fault()
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn end_of_waiting_fault() -> u64 {
    page_in::end_of_waiting()
}

/// See [`page_in::find`]. Makes a page-in the kernel's record in the scratch memory, with the file that is read, if its name is
/// wanted.
#[inline(always)]
pub(crate) fn find_page_in(cpu_slot: u32, address: u64) -> u64 {
    find_and_name_page_in(cpu_slot, address)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_and_name_page_in(cpu_slot: u32, address: u64) -> u64 {
    let file = page_in::find(cpu_slot, address);
    if file != syscall::NOT_MEANT && file != syscall::OTHER_KIND {
        put_leaf(cpu_slot, FrameWord::new(FrameTag::PageIn, 0), file);
    }
    file
}

/// See [`sample::count`]; says what became of the firing.
#[inline(always)]
pub(crate) fn count(cpu_slot: u32, weight: u64) -> Outcome {
    Outcome(count_key(cpu_slot, weight))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn count_key(cpu_slot: u32, weight: u64) -> u32 {
    let counted = sample::count(cpu_slot, weight);
    if let (Ok(Counted::First), Some(Scratch { key, .. })) = (counted, SCRATCH.get(cpu_slot)) {
        let tgid = key[SampleKey::TGID_WORD].load() as u32;
        announce_process(cpu_slot, tgid, key[SampleKey::INCARNATION_WORD].load());
    }
    Outcome::from(counted.err().unwrap_or(Counter::Recorded)).0
}

/// See [`events::new_process`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn announce_process(cpu_slot: u32, tgid: u32, incarnation: u64) -> u32 {
    if let Some(counters) = counters::counters(cpu_slot) {
        events::new_process(counters, tgid, incarnation);
    }
    0
}

/// Both IDs in one argument, of which there may be five.
#[inline(always)]
pub(crate) fn one(ids: Ids) -> u64 {
    u64::from(ids.tgid) << 32 | u64::from(ids.tid)
}

#[inline(always)]
pub(crate) fn two(ids: u64) -> Ids {
    Ids {
        tgid: (ids >> 32) as u32,
        tid: ids as u32,
    }
}

/// Puts a notice into the queue; false if that is full.
#[inline(always)]
pub(crate) fn send(kind: NoticeKind, tgid: u32, incarnation: u64, address: u64) -> bool {
    send_notice(kind as u32, tgid, incarnation, address) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn send_notice(kind: u32, tgid: u32, incarnation: u64, address: u64) -> u32 {
    u32::from(events::queue(kind, tgid, incarnation, address))
}
