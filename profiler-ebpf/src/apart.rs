//! The parts of a walk that the verifier checks apart.
//!
//! A function whose name is kept (a *global* function, Linux 5.6) is verified once, for any arguments, and
//! not again at each call for all that may be known there. Arguments and results are numbers: what is
//! larger goes through the scratch memory of the firing's seat.
#![expect(
    unsafe_code,
    reason = "names that are kept are what makes functions global"
)]

use crate::{
    aggregate::Counted,
    code,
    config::config,
    counter::{self, Outcome},
    file, mapping,
    maps::{FOUND, Found, SCRATCH},
    memory::UserMemory,
    notice,
    probe::{allocation, call, off_cpu, wall},
    sample,
    stack::Sealed,
    table,
    task::{CallRegisters, Ids},
    tell, timed,
    walk::{self, Subject},
    word::Word,
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{
        Allocator, Counter, Doing, Header, LeafKind, LeafWord, NoticeKind, Rule, StackEnd,
        StackPosition, WantedCalls,
    },
    intern::Hash,
    walk::native,
};

/// What [`leave_by_rule`] returns when it has found the caller; no [`StackEnd`].
const FOUND_CALLER: u64 = u8::MAX as u64;

/// No [`Rule`].
const NO_TABLE: u64 = u64::MAX;

/// What lies at an address of the process `space`: noted at `place`, counted through the answers for all
/// processes. Of code that has not been published,
/// returns the hash of its file.
#[inline(always)]
pub(crate) fn ask(seat: u32, space: u64, address: u64, place: u32, now: u64) -> Option<Hash> {
    match ask_what_lies_at(seat, space, address, place, now) {
        0 => None,
        hash => Some(Hash(hash)),
    }
}

/// The rule for an object's own `address`, whose page's rows are found from `pages` on; none if the table
/// is not there.
#[inline(always)]
pub(crate) fn rule(seat: u32, pages: u32, address: u64) -> Option<Rule> {
    match find_rule(seat, pages, address) {
        NO_TABLE => None,
        rule => Some(Rule(rule)),
    }
}

/// Puts the caller of the frame in the scratch memory in its place, or says why there is none.
#[inline(always)]
pub(crate) fn leave(seat: u32, rule: Rule) -> ControlFlow<u64> {
    match leave_by_rule(seat, rule.0) {
        FOUND_CALLER => ControlFlow::Continue(()),
        end => ControlFlow::Break(end),
    }
}

/// Where the user stack is stored whose record is in the scratch memory; none if the store is full.
#[inline(always)]
pub(crate) fn keep_user(seat: u32, side: u32, header: Header) -> Option<StackPosition> {
    position(keep_user_stack(seat, side, header.0))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn keep_user_stack(seat: u32, side: u32, header: u64) -> u32 {
    let Some(scratch) = SCRATCH.get(seat) else {
        return 0;
    };
    keep(seat, side, header, &scratch.user)
}

/// As [`keep_user`], of the kernel stack.
#[inline(always)]
pub(crate) fn keep_kernel(seat: u32, side: u32, header: Header) -> Option<StackPosition> {
    position(keep_kernel_stack(seat, side, header.0))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn keep_kernel_stack(seat: u32, side: u32, header: u64) -> u32 {
    let Some(scratch) = SCRATCH.get(seat) else {
        return 0;
    };
    keep(seat, side, header, &scratch.kernel)
}

#[inline(always)]
fn keep<const WORDS: usize>(
    seat: u32,
    side: u32,
    header: u64,
    record: &'static [Word; WORDS],
) -> u32 {
    let stored = counter::books(seat)
        .and_then(|books| Sealed::new(record, Header(header))?.intern(books, side));
    stored.map_or(StackPosition::NONE.0, |position| position.0)
}

#[inline(always)]
fn position(number: u32) -> Option<StackPosition> {
    (number != StackPosition::NONE.0).then_some(StackPosition(number))
}

/// See [`walk::user`].
#[inline(always)]
pub(crate) fn walk(subject: Subject) {
    let Subject {
        ids,
        incarnation,
        seat,
        now,
    } = subject;
    walk_user_stack(seat, one(ids), incarnation, now);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn walk_user_stack(seat: u32, ids: u64, incarnation: u64, now: u64) -> u32 {
    walk::user(Subject {
        ids: two(ids),
        incarnation,
        seat,
        now,
    });
    0
}

/// See [`walk::recall`].
#[inline(always)]
pub(crate) fn recall(subject: Subject) -> bool {
    let Subject {
        ids,
        incarnation,
        seat,
        now,
    } = subject;
    recall_what_lies_where(seat, one(ids), incarnation, now) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn recall_what_lies_where(seat: u32, ids: u64, incarnation: u64, now: u64) -> u32 {
    u32::from(walk::recall(Subject {
        ids: two(ids),
        incarnation,
        seat,
        now,
    }))
}

/// See [`walk::by_pointers`].
#[inline(always)]
pub(crate) fn walk_by_pointers(seat: u32) {
    walk_user_stack_by_pointers(seat);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn walk_user_stack_by_pointers(seat: u32) -> u32 {
    walk::by_pointers(seat);
    0
}

/// See [`sample::take`].
#[inline(always)]
pub(crate) fn take(subject: Subject, weight: u64) -> Outcome {
    let Subject {
        ids,
        incarnation,
        seat,
        ..
    } = subject;
    let outcome = take_sample(seat, one(ids), incarnation, weight);
    if outcome & FIRST != 0 {
        // From here, and not from there, where much of the BPF stack is taken.
        tell_stack(seat, ids.tgid, incarnation);
    }
    Outcome(outcome & !FIRST)
}

/// Stands in what [`take_sample`] returns with the outcome if the key was not counted before.
const FIRST: u32 = 1 << 16;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn take_sample(seat: u32, ids: u64, incarnation: u64, weight: u64) -> u32 {
    match sample::take(seat, two(ids), incarnation, weight) {
        Ok(Counted::First) => Outcome::from(Counter::Recorded).0 | FIRST,
        Ok(Counted::Again) => Outcome::from(Counter::Recorded).0,
        Err(counter) => Outcome::from(counter).0,
    }
}

/// See [`sample::key`]. None if the key is in the scratch memory; otherwise what became of the firing.
#[inline(always)]
pub(crate) fn key(subject: Subject, doing: Doing) -> Option<Outcome> {
    let Subject {
        ids,
        incarnation,
        seat,
        ..
    } = subject;
    key_of(seat, ids, incarnation, doing)
}

/// As [`key`].
#[inline(always)]
pub(crate) fn key_of(seat: u32, ids: Ids, incarnation: u64, doing: Doing) -> Option<Outcome> {
    let outcome = make_key(seat, one(ids), incarnation, doing as u32);
    (outcome != NOTHING).then_some(Outcome(outcome))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn make_key(seat: u32, ids: u64, incarnation: u64, doing: u32) -> u32 {
    let doing = if doing == Doing::Runnable as u32 {
        Doing::Runnable
    } else {
        Doing::Blocked
    };
    match sample::key(seat, two(ids), incarnation, doing) {
        Ok(()) => NOTHING,
        Err(outcome) => Outcome::from(outcome).0,
    }
}

/// See [`off_cpu::depart`].
#[inline(always)]
pub(crate) fn depart(
    seat: u32,
    now: u64,
    state: u64,
    preempted: bool,
) -> Result<Doing, Option<Outcome>> {
    const BLOCKED: u32 = Doing::Blocked as u32;
    const RUNNABLE: u32 = Doing::Runnable as u32;
    let answer = depart_from_cpu(seat, now, state, u32::from(preempted));
    match answer & !DOING {
        _ if answer == NOTHING => Err(None),
        BLOCKED if answer & DOING != 0 => Ok(Doing::Blocked),
        RUNNABLE if answer & DOING != 0 => Ok(Doing::Runnable),
        outcome => Err(Some(Outcome(outcome))),
    }
}

/// Stands in what [`depart_from_cpu`] returns before what the thread will be doing.
const DOING: u32 = 1 << 16;

/// No firing, or one that goes on.
const NOTHING: u32 = u32::MAX;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn depart_from_cpu(seat: u32, now: u64, state: u64, preempted: u32) -> u32 {
    match off_cpu::depart(seat, now, state as u32, preempted != 0) {
        Ok(doing) => doing as u32 | DOING,
        Err(outcome) => outcome.map_or(NOTHING, |outcome| outcome.0),
    }
}

/// See [`off_cpu::fall_asleep`].
#[inline(always)]
pub(crate) fn fall_asleep(seat: u32, now: u64) -> Option<Outcome> {
    let outcome = fall_asleep_now(seat, now);
    (outcome != NOTHING).then_some(Outcome(outcome))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn fall_asleep_now(seat: u32, now: u64) -> u32 {
    off_cpu::fall_asleep(seat, now).map_or(NOTHING, |outcome| outcome.0)
}

/// See [`off_cpu::arrive`].
#[inline(always)]
pub(crate) fn arrive(seat: u32, task: u64, now: u64) {
    arrive_on_cpu(seat, task, now);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn arrive_on_cpu(seat: u32, task: u64, now: u64) -> u32 {
    off_cpu::arrive(seat, task, now);
    0
}

/// See [`wall::ran`].
#[inline(always)]
pub(crate) fn ran(subject: Subject) {
    let Subject {
        ids,
        incarnation,
        seat,
        now,
    } = subject;
    ran_until(seat, one(ids), incarnation, now);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn ran_until(seat: u32, ids: u64, incarnation: u64, now: u64) -> u32 {
    wall::ran(seat, two(ids), incarnation, now);
    0
}

/// See [`timed::begin`].
#[inline(always)]
pub(crate) fn begin(subject: Subject, awaited: u64) -> Option<Outcome> {
    let Subject {
        ids,
        incarnation,
        seat,
        ..
    } = subject;
    let outcome = begin_timed(seat, one(ids), incarnation, awaited);
    (outcome != NOTHING).then_some(Outcome(outcome))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn begin_timed(seat: u32, ids: u64, incarnation: u64, awaited: u64) -> u32 {
    timed::begin(seat, two(ids), incarnation, awaited).map_or(NOTHING, |outcome| outcome.0)
}

/// See [`allocation::is_part`].
#[inline(always)]
pub(crate) fn is_part(entry: u64, stack: u64, function: Allocator) -> bool {
    is_part_of_asking(entry, stack, function.0) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_part_of_asking(entry: u64, stack: u64, function: u64) -> u32 {
    u32::from(allocation::is_part(entry, stack, Allocator(function)))
}

/// See [`call::find`].
#[inline(always)]
pub(crate) fn find_call(number: u64, registers: u64) -> u64 {
    find_wanted_call(number, registers)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_wanted_call(number: u64, registers: u64) -> u64 {
    call::find(number, CallRegisters(registers))
}

/// Puts a system call at the leaf of the stack in the scratch memory, and the file that it is about, if its
/// name is wanted.
#[inline(always)]
pub(crate) fn name_call(seat: u32, number: u64, registers: u64, file: u64) {
    name_call_at_leaf(seat, number, registers, file);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn name_call_at_leaf(seat: u32, number: u64, registers: u64, file: u64) -> u32 {
    let kind = if config!(calls.wanted) == WantedCalls::Futex as u32 {
        LeafKind::UserLock
    } else if CallRegisters(registers).is_native() {
        LeafKind::Call
    } else {
        LeafKind::CompatCall
    };
    let mut words = 0;
    if call::names_files() && file != 0 {
        words = file::put_name(seat, file);
    }
    file::put_leaf(seat, LeafWord::new(kind, number as u32).named(words));
    0
}

/// See [`sample::count`]; says what became of the firing.
#[inline(always)]
pub(crate) fn count(seat: u32, weight: u64) -> Outcome {
    Outcome(count_key(seat, weight))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn count_key(seat: u32, weight: u64) -> u32 {
    let counted = sample::count(seat, weight);
    Outcome::from(counted.err().unwrap_or(Counter::Recorded)).0
}

/// Both IDs in one argument, of which there may be five.
#[inline(always)]
fn one(ids: Ids) -> u64 {
    u64::from(ids.tgid) << 32 | u64::from(ids.tid)
}

#[inline(always)]
fn two(ids: u64) -> Ids {
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
    u32::from(notice::queue(kind, tgid, incarnation, address))
}

/// See [`tell::stack`].
#[inline(always)]
pub(crate) fn tell_stack(seat: u32, tgid: u32, incarnation: u64) {
    tell_of_stack(seat, tgid, incarnation);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn tell_of_stack(seat: u32, tgid: u32, incarnation: u64) -> u32 {
    tell::stack(seat, tgid, incarnation);
    0
}

/// See [`tell::address`].
#[inline(always)]
pub(crate) fn tell(seat: u32, space: u64, address: u64, tgid: u32, incarnation: u64) -> u32 {
    tell_what_lies_at(seat, space, address, tgid, incarnation)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn tell_what_lies_at(
    seat: u32,
    space: u64,
    address: u64,
    tgid: u32,
    incarnation: u64,
) -> u32 {
    tell::address(seat, space, address, tgid, incarnation)
}

/// See [`tell::path`].
#[inline(always)]
pub(crate) fn put_path(seat: u32, vma: u64) {
    put_path_of_mapping(seat, vma);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn put_path_of_mapping(seat: u32, vma: u64) -> u32 {
    tell::path(seat, vma);
    0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn ask_what_lies_at(seat: u32, space: u64, address: u64, place: u32, now: u64) -> u64 {
    let Some(scratch) = SCRATCH.get(seat) else {
        return 0;
    };
    let known = scratch.walk.known.get(place as usize / FOUND);
    let Some(found) = known.and_then(|known| known.found.get(place as usize % FOUND)) else {
        return 0;
    };
    found.start.store(address);
    found.end.store(address.wrapping_add(1));
    found.kind.store(Found::NOWHERE);
    let Some(mapping) = mapping::find(space, scratch, address) else {
        return 0;
    };
    if !mapping.is_executable() {
        return 0;
    }
    found.start.store(mapping.start);
    found.end.store(mapping.end);
    let (key, offset) = mapping.code();
    if key.is_anonymous() {
        found.kind.store(Found::BARE);
        return 0;
    }
    // What to add to an address to have the place in the file.
    let in_file = offset.wrapping_sub(mapping.start);
    match code::find(key, address.wrapping_add(in_file)) {
        Some(slot) => {
            code::note_use(slot, now);
            let first = slot.start.load().wrapping_sub(in_file) as i64;
            if first > mapping.start as i64 {
                found.start.store(first as u64);
            }
            let end = slot.end.load().wrapping_sub(in_file) as i64;
            if end < mapping.end as i64 {
                found.end.store(end as u64);
            }
            found.shift.store(in_file.wrapping_add(slot.shift.load()));
            found.kind.store(slot.state.load());
            0
        }
        // Memory that the kernel itself maps, and that is not the vDSO.
        None if key.device == 0 => {
            found.kind.store(Found::BARE);
            0
        }
        None => {
            found.kind.store(Found::UNKNOWN);
            // Zero is another answer.
            code::hash(key).0 | 1
        }
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_rule(seat: u32, pages: u32, address: u64) -> u64 {
    let rule = SCRATCH
        .get(seat)
        .and_then(|scratch| table::remembered_rule(&scratch.walk, pages, address));
    rule.map_or(NO_TABLE, |rule| rule.0)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn leave_by_rule(seat: u32, rule: u64) -> u64 {
    let Some(scratch) = SCRATCH.get(seat) else {
        return StackEnd::BadRow as u64;
    };
    let walk = &scratch.walk;
    let register = |number: u8| {
        let word = walk.registers.get(usize::from(number & 15))?;
        Some(word.load())
    };
    let mut frame = walk.frame();
    match native::advance(Rule(rule), &mut frame, register, &UserMemory) {
        Ok(()) => {
            walk.put(frame);
            FOUND_CALLER
        }
        Err(end) => end as u64,
    }
}
