//! The parts of a walk that the verifier checks apart: what lies where, which rule holds, who called; and telling
//! user space of it. See [`super`].
#![expect(
    unsafe_code,
    reason = "names that are kept are what makes functions global"
)]

use super::{one, two};
use crate::{
    events::mapping_event,
    platform::{
        maps::{FOUND, Found, SCRATCH},
        memory::UserMemory,
    },
    walk::{
        code_index, mappings, tables,
        user::{self, SampleContext},
    },
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{Rule, StackEnd},
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
pub(crate) fn ask(cpu_slot: u32, space: u64, address: u64, place: u32, now: u64) -> Option<Hash> {
    match ask_what_lies_at(cpu_slot, space, address, place, now) {
        0 => None,
        hash => Some(Hash(hash)),
    }
}

/// The rule for an object's own `address`, whose page's rows are found from `pages` on; none if the table
/// is not there.
#[inline(always)]
pub(crate) fn rule(cpu_slot: u32, pages: u32, address: u64) -> Option<Rule> {
    match find_rule(cpu_slot, pages, address) {
        NO_TABLE => None,
        rule => Some(Rule(rule)),
    }
}

/// Puts the caller of the frame in the scratch memory in its place, or says why there is none.
#[inline(always)]
pub(crate) fn leave(cpu_slot: u32, rule: Rule) -> ControlFlow<u64> {
    match leave_by_rule(cpu_slot, rule.0) {
        FOUND_CALLER => ControlFlow::Continue(()),
        end => ControlFlow::Break(end),
    }
}

/// See [`user::user`].
#[inline(always)]
pub(crate) fn walk(subject: SampleContext) {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        now,
    } = subject;
    walk_user_stack(cpu_slot, one(ids), incarnation, now);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn walk_user_stack(cpu_slot: u32, ids: u64, incarnation: u64, now: u64) -> u32 {
    user::user(SampleContext {
        ids: two(ids),
        incarnation,
        cpu_slot,
        now,
    });
    0
}

/// See [`user::recall`].
#[inline(always)]
pub(crate) fn recall(subject: SampleContext) -> bool {
    let SampleContext {
        ids,
        incarnation,
        cpu_slot,
        now,
    } = subject;
    recall_what_lies_where(cpu_slot, one(ids), incarnation, now) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn recall_what_lies_where(cpu_slot: u32, ids: u64, incarnation: u64, now: u64) -> u32 {
    u32::from(user::recall(SampleContext {
        ids: two(ids),
        incarnation,
        cpu_slot,
        now,
    }))
}

/// See [`user::by_pointers`].
#[inline(always)]
pub(crate) fn walk_by_pointers(cpu_slot: u32) {
    walk_user_stack_by_pointers(cpu_slot);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn walk_user_stack_by_pointers(cpu_slot: u32) -> u32 {
    user::by_pointers(cpu_slot);
    0
}

/// See [`mapping_event::stack`].
#[inline(always)]
pub(crate) fn tell_stack(cpu_slot: u32, tgid: u32, incarnation: u64) -> bool {
    tell_of_stack(cpu_slot, tgid, incarnation) != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn tell_of_stack(cpu_slot: u32, tgid: u32, incarnation: u64) -> u32 {
    u32::from(mapping_event::stack(cpu_slot, tgid, incarnation))
}

/// See [`mapping_event::address`].
#[inline(always)]
pub(crate) fn tell(cpu_slot: u32, space: u64, address: u64, tgid: u32, incarnation: u64) -> u32 {
    tell_what_lies_at(cpu_slot, space, address, tgid, incarnation)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn tell_what_lies_at(
    cpu_slot: u32,
    space: u64,
    address: u64,
    tgid: u32,
    incarnation: u64,
) -> u32 {
    mapping_event::address(cpu_slot, space, address, tgid, incarnation)
}

/// See [`mapping_event::path`].
#[inline(always)]
pub(crate) fn put_path(cpu_slot: u32, vma: u64) {
    put_path_of_mapping(cpu_slot, vma);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn put_path_of_mapping(cpu_slot: u32, vma: u64) -> u32 {
    mapping_event::path(cpu_slot, vma);
    0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn ask_what_lies_at(
    cpu_slot: u32,
    space: u64,
    address: u64,
    place: u32,
    now: u64,
) -> u64 {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
        return 0;
    };
    let known = scratch.walk.known.get(place as usize / FOUND);
    let Some(found) = known.and_then(|known| known.found.get(place as usize % FOUND)) else {
        return 0;
    };
    found.start.store(address);
    found.end.store(address.wrapping_add(1));
    found.kind.store(Found::NOWHERE);
    let Some(mapping) = mappings::find(space, scratch, address) else {
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
    match code_index::find(key, address.wrapping_add(in_file)) {
        Some(slot) => {
            code_index::note_use(slot, now);
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
            code_index::hash(key).0 | 1
        }
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn find_rule(cpu_slot: u32, pages: u32, address: u64) -> u64 {
    let rule = SCRATCH
        .get(cpu_slot)
        .and_then(|scratch| tables::remembered_rule(&scratch.walk, pages, address));
    rule.map_or(NO_TABLE, |rule| rule.0)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn leave_by_rule(cpu_slot: u32, rule: u64) -> u64 {
    let Some(scratch) = SCRATCH.get(cpu_slot) else {
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
