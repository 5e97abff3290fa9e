//! Leaves what LuaJIT runs where no unwind rows lead on: machine code that it made, and the assembly of its interpreter where
//! that has moved its stack pointer.
//!
//! In: the frame that is looked at. Out: in its place, the interpreter's own native frame, which lies somewhat above on the same
//! stack and is told by its `lua_State` ([`profiler_common::runtime::luajit`]).

use crate::{
    platform::{
        loops::{Turn, repeat},
        maps::{Descriptor, RUNTIMES, Scratch, Walk},
        memory::UserMemory,
        subprog::subprog,
    },
    walk::{code_cache, runtime},
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::CodeState,
    runtime::{
        RuntimeKind,
        luajit::{DISPATCH, FRAME_STEP, MOST_FRAME_STEPS, at, is_frame},
    },
    walk::{
        Memory, is_user_address,
        native::{Frame, Kept, Reached},
    },
};

/// In the first word of the first descriptor, which is no file's: whether there is a file with LuaJIT.
const SEEN: u64 = 1 << RuntimeKind::LuaJit as u64;

/// Replaces the frame, in code without rows, by the interpreter's, if LuaJIT made that code.
#[inline(always)]
pub(crate) fn leave(cpu_slot: u32, scratch: &'static Scratch, is_first: bool) -> bool {
    let is_seen = |words: &Descriptor| words[0].load() & SEEN != 0;
    if !RUNTIMES.get(0).is_some_and(is_seen) {
        return false;
    }
    // Which object the interpreter lies in is found here, because that needs more stack than is left further down.
    let is_known = runtime::known(scratch).is_some_and(|known| known.runtime.load() != 0);
    if !is_known && (!is_first || find_runtime(cpu_slot, scratch).is_none()) {
        return false;
    }
    leave_machine_code(cpu_slot)
}

subprog! {
    /// See [`leave`].
    fn leave_machine_code(cpu_slot: u32) -> bool {
        Scratch::of(cpu_slot).is_some_and(|scratch| to_interpreter(scratch).is_some())
    }
}

subprog! {
    /// Where the first instruction's code is, by the table that machine code has in a register; zero if it has none.
    fn handler(cpu_slot: u32) -> u64 {
        let table = Scratch::of(cpu_slot)
            .map_or(0, |scratch| scratch.walk.registers[usize::from(DISPATCH)].load());
        let [handler] = UserMemory.read(table).unwrap_or([0]);
        handler
    }
}

/// Finds out which object the interpreter lies in.
#[inline(always)]
fn find_runtime(cpu_slot: u32, scratch: &'static Scratch) -> Option<()> {
    let handler = handler(cpu_slot);
    if !is_user_address(handler) {
        return None;
    }
    let found = code_cache::look_up(cpu_slot, scratch, handler)?;
    let descriptor = CodeState(found.kind.load()).runtime();
    let known = runtime::known(scratch)?;
    known.runtime.store(u64::from(descriptor));
    known.bias.store(0u64.wrapping_sub(found.shift.load()));
    (descriptor != 0).then_some(())
}

subprog! {
    /// Sets the stack pointer of the first frame, at an address of its object's own, if that is in LuaJIT's interpreter: where
    /// it calls its own subroutines, rows are wrong.
    pub(crate) fn settle_first(cpu_slot: u32, descriptor: u32, address: u64) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            settle(&scratch.walk, descriptor, address);
        }
    }
}

#[inline(always)]
fn settle(walk: &'static Walk, descriptor: u32, address: u64) -> Option<()> {
    let words = RUNTIMES.get(descriptor)?;
    let is_inside = words[0].load() & 0xff == RuntimeKind::LuaJit as u64
        && words[at::LOOP].load() <= address
        && address < words[at::LOOP + 1].load();
    if !is_inside {
        return None;
    }
    let place = find_frame(walk)?;
    walk.put(Frame {
        sp: place,
        ..walk.frame()
    });
    Some(())
}

#[inline(always)]
fn to_interpreter(scratch: &'static Scratch) -> Option<()> {
    let known = runtime::known(scratch)?;
    let words = RUNTIMES.get(known.runtime.load() as u32)?;
    if words[0].load() & 0xff != RuntimeKind::LuaJit as u64 {
        return None;
    }
    let place = find_frame(&scratch.walk)?;
    // Whichever instruction of the interpreter: one row holds for all.
    let interpreter = known.bias.load().wrapping_add(words[at::LOOP].load());
    scratch.walk.put(Frame {
        ip: interpreter.wrapping_add(1),
        sp: place,
        fp: Kept::LOST,
        bx: Kept::LOST,
        reached: Reached::Called,
    });
    Some(())
}

/// The interpreter's native frame at the stack pointer or a little above.
#[inline(always)]
fn find_frame(walk: &Walk) -> Option<u64> {
    let mut search = Search {
        place: walk.sp().wrapping_add(FRAME_STEP - 1) & !(FRAME_STEP - 1),
        found: 0,
    };
    repeat(MOST_FRAME_STEPS, &mut search);
    (search.found != 0).then_some(search.found)
}

struct Search {
    place: u64,
    found: u64,
}

impl Turn for Search {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        if is_frame(&UserMemory, self.place) {
            self.found = self.place;
            return ControlFlow::Break(());
        }
        self.place = self.place.wrapping_add(FRAME_STEP);
        ControlFlow::Continue(())
    }
}
