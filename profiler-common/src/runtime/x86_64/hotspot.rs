//! HotSpot: registers and frames of its code, and the first and last instructions of methods.

use crate::{
    runtime::Process,
    walk::{
        arch::innermost::{POP_FP, PUSH_FP, RET},
        native::Frame,
    },
};

/// The registers, by their DWARF numbers, in which the interpreter has the bytecode (r13), and all code the thread (r15).
pub(in crate::runtime) const BYTECODE: u8 = 13;
/// See [`BYTECODE`].
pub(in crate::runtime) const THREAD: u8 = 15;

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
const JUMP_ABOVE: u64 = 0x870f;
const JUMP_ABOVE_NEAR: u64 = 0x77;
const VZEROUPPER: u64 = 0x77_f8c5;

/// Instructions that are looked at behind the end of a frame.
const MOST_AHEAD: u32 = 4;

/// Where the return address of an innermost frame is that is not there yet, or no more; zero if it is there. `is_complete` tells
/// whether the function's first instructions are behind it.
#[inline(always)]
pub(in crate::runtime) fn without_frame(
    process: &impl Process,
    frame: &Frame,
    is_complete: bool,
) -> u64 {
    let Some([before, at]) = process.read::<2>(frame.ip.wrapping_sub(8)) else {
        return 0;
    };
    if !is_complete {
        // `push rbp` is the last one before, where it has run.
        let is_pushed = (before >> 56) as u8 == PUSH_FP;
        let subtracts = at & 0xff_ffff == SUB_BYTE || at & 0xff_ffff == SUB;
        return if is_pushed && subtracts {
            frame.sp.wrapping_add(8)
        } else {
            frame.sp
        };
    }
    let (mut place, mut sp) = (frame.ip, frame.sp);
    for _ in 0..MOST_AHEAD {
        let Some([bytes]) = process.read::<1>(place) else {
            return 0;
        };
        let length = if bytes as u8 == RET {
            return sp;
        } else if bytes as u8 == POP_FP {
            sp = sp.wrapping_add(8);
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
