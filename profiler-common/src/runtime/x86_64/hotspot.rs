//! HotSpot: registers and frames of its code, and the first and last instructions of methods.

use crate::{
    runtime::Process,
    walk::{
        arch::innermost::{self, POP_FP, PUSH_FP, RET},
        native::Frame,
    },
};

/// The registers, by their DWARF numbers, in which the interpreter has the bytecode (r13), and all code the thread (r15).
pub(in crate::runtime) const BYTECODE: u8 = 13;
/// See [`BYTECODE`].
pub(in crate::runtime) const THREAD: u8 = 15;
/// The register, by its DWARF number, in which the exception blob has the address that was returned to (rdx).
pub(in crate::runtime) const RETURNED: u8 = 1;

/// Below the frame pointer of an interpreter's frame: its caller's stack pointer, its method and its bytecode (`frame_x86.hpp`).
pub(in crate::runtime) const SENDER_BELOW: u64 = 8;
/// See [`SENDER_BELOW`].
pub(in crate::runtime) const METHOD_BELOW: u64 = 24;
/// See [`SENDER_BELOW`].
pub(in crate::runtime) const BYTECODE_BELOW: u64 = 64;

/// `sub` of 8 and of 32 bits from rsp, with which methods begin.
const SUB_BYTE: u64 = 0xec_8348;
const SUB: u64 = 0xec_8148;
/// `cmp poll(%r15), %rsp` with a distance of 32 and of 8 bits, and the jumps behind it; `vzeroupper`.
const POLL: u64 = 0xa7_3b49;
const POLL_NEAR: u64 = 0x67_3b49;
const JUMP: u8 = 0xe9;
const JUMP_ABOVE: u64 = 0x870f;
const JUMP_ABOVE_NEAR: u64 = 0x77;
const VZEROUPPER: u64 = 0x77_f8c5;

/// `mov rbp, …(%rsp)` with a distance of 8 and of 32 bits, with which methods save it behind `sub`.
const SAVE_FP: u64 = 0x246c_8948;
const SAVE_FP_FAR: u64 = 0x24ac_8948;
/// `cmp …, …(%r15)` with a distance of 8 and of 32 bits: where methods ask whether they may go on, behind all that makes their frame.
const BARRIER: u64 = 0x7f_8141;
const BARRIER_FAR: u64 = 0xbf_8141;

/// Instructions that are looked at behind the end of a frame.
const MAX_AHEAD: u32 = 4;

/// Beside the place of a return address: the caller's frame pointer is in the register.
pub(in crate::runtime) const FP_IN_REGISTER: u64 = 1;
/// See [`FP_IN_REGISTER`].
pub(in crate::runtime) const PLACE: u64 = !7;

/// Where the return address of an innermost frame is that is not complete yet, or no more, with [`FP_IN_REGISTER`]; zero if it
/// is complete, of `frame_words` words. `is_past_prologue` tells whether the function's first instructions are behind it.
#[inline(always)]
pub(in crate::runtime) fn without_frame(
    process: &impl Process,
    frame: &Frame,
    frame_words: u64,
    is_past_prologue: bool,
) -> u64 {
    let Some([before, at]) = process.read::<2>(frame.ip.wrapping_sub(8)) else {
        return 0;
    };
    let nowhere = frame.sp & PLACE | FP_IN_REGISTER;
    if !is_past_prologue {
        let (three, four) = (at & 0xff_ffff, at & 0xffff_ffff);
        let has_asked = before & 0xff_ffff == BARRIER;
        let has_saved = (before >> 24) as u32 as u64 == SAVE_FP;
        return if has_asked || has_saved || three == BARRIER || three == BARRIER_FAR {
            0
        } else if four == SAVE_FP || four == SAVE_FP_FAR {
            nowhere.wrapping_add(8 * frame_words).wrapping_sub(8)
        } else if (before >> 56) as u8 == PUSH_FP && (three == SUB_BYTE || three == SUB) {
            // The last one has pushed it.
            frame.sp.wrapping_add(8) & PLACE
        } else {
            nowhere
        };
    }
    let (mut place, mut sp) = (frame.ip, nowhere);
    for _ in 0..MAX_AHEAD {
        let Some([bytes]) = process.read::<1>(place) else {
            return 0;
        };
        // Where an exception goes on to the caller, a stub is jumped to.
        let has_popped = sp != nowhere || (before >> 56) as u8 == POP_FP;
        let length = if bytes as u8 == RET || has_popped && bytes as u8 == JUMP {
            return sp;
        } else if bytes as u8 == POP_FP {
            sp = (sp & PLACE).wrapping_add(8);
            1
        } else if bytes & 0xff_ffff == POLL {
            7
        } else if bytes & 0xff_ffff == POLL_NEAR {
            4
        } else if bytes & 0xffff == JUMP_ABOVE {
            6
        } else if bytes & 0xff == JUMP_ABOVE_NEAR {
            2
        } else if bytes & 0xff_ffff == VZEROUPPER {
            3
        } else {
            return 0;
        };
        place = place.wrapping_add(length);
    }
    0
}

/// As [`without_frame`], of a stub that has frame pointers.
#[inline(always)]
pub(in crate::runtime) fn stub_without_frame(process: &impl Process, frame: &Frame) -> u64 {
    let Some([before, at]) = process.read::<2>(frame.ip.wrapping_sub(8)) else {
        return 0;
    };
    let Some(rule) = innermost::rule(before, at) else {
        return 0;
    };
    let above = innermost::return_address_at(rule);
    let fp = if above == 0 { FP_IN_REGISTER } else { 0 };
    frame.sp.wrapping_add(above) & PLACE | fp
}
