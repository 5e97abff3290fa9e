//! Machine code, and the assembly of the interpreter where that has moved its stack pointer: both run in the native frame of the
//! interpreter, which lies somewhat above.

use super::{
    LuaJit,
    chain::is_interpreter,
    layout::{FRAME_FLAGS, FRAME_STEP, MAX_FRAME_STEPS, STATE_FRAME, at},
};
use crate::{
    runtime::{ChainFrame, CodeOwner, Described, Process, arch::luajit::DISPATCH},
    walk::{
        Memory,
        native::{Frame, Kept, Reached},
    },
};
use core::ops::ControlFlow;

impl CodeOwner for LuaJit {
    const TURNS: u32 = MAX_FRAME_STEPS;

    /// The code of the first instruction, from the table that machine code has in a register.
    #[inline(always)]
    fn anchor(memory: &impl Memory, register: impl Fn(u8) -> u64) -> Option<u64> {
        let [code] = memory.read(register(DISPATCH))?;
        Some(code)
    }

    /// The interpreter calls subroutines of its own.
    #[inline(always)]
    fn misplaces_stack_pointer(file: &impl Described, address: u64) -> bool {
        is_interpreter(file, address)
    }

    #[inline(always)]
    fn search_from(_: &impl Process, frame: &Frame) -> u64 {
        frame.sp.wrapping_add(FRAME_STEP - 1) & !(FRAME_STEP - 1)
    }

    #[inline(always)]
    fn search(process: &impl Process, place: u64) -> ControlFlow<u64, u64> {
        if is_frame(process, place) {
            ControlFlow::Break(place)
        } else {
            ControlFlow::Continue(place.wrapping_add(FRAME_STEP))
        }
    }

    /// The interpreter, at whichever instruction: one row holds for all.
    #[inline(always)]
    fn leave(process: &impl Process, _: &Frame, found: u64) -> Option<(Frame, Option<ChainFrame>)> {
        let interpreter = process.bias().wrapping_add(process.descriptor(at::LOOP));
        let caller = Frame {
            ip: interpreter.wrapping_add(1),
            sp: found,
            fp: Kept::LOST,
            saved: Kept::LOST,
            reached: Reached::Called,
        };
        Some((caller, None))
    }
}

/// Whether the interpreter has a native frame at an address: its `lua_State` says so.
#[inline(always)]
pub(super) fn is_frame(memory: &impl Memory, address: u64) -> bool {
    let Some([state]) = memory.read(address.wrapping_add(16)) else {
        return false;
    };
    if state == 0 || state & 7 != 0 {
        return false;
    }
    match memory.read(state.wrapping_add(STATE_FRAME)) {
        Some([frame]) => frame & !FRAME_FLAGS == address,
        None => false,
    }
}
