//! V8: registers of its code, and the first and last instructions of functions that its compilers made.

use crate::{
    abi::Rule,
    runtime::Process,
    walk::{
        arch::innermost::{self, POP_FP, PUSH_FP},
        native::Frame,
    },
};

/// The registers, by their DWARF numbers, in which code is called with the function (rdi), and in which the interpreter has the
/// offset in the bytecode (r9), the bytecode (r12) and the roots of the isolate (r13), as compiled code has.
pub(in crate::runtime) const CALLED: u8 = 5;
/// See [`CALLED`].
pub(in crate::runtime) const OFFSET: u8 = 9;
/// See [`CALLED`].
pub(in crate::runtime) const BYTECODE: u8 = 12;
/// See [`CALLED`].
pub(in crate::runtime) const ROOTS: u8 = 13;

/// Beside the place of a return address: there is no frame yet. Without one of these bits, it is a frame pointer.
pub(in crate::runtime) const NO_FRAME_YET: u64 = 1;
/// See [`NO_FRAME_YET`].
pub(in crate::runtime) const FRAME_LEFT: u64 = 2;
/// See [`NO_FRAME_YET`].
pub(in crate::runtime) const PLACE: u64 = !7;

/// `leave`, which leaves a frame as `pop rbp` does.
const LEAVE: u8 = 0xc9;
/// `cmp imm8, rcx` and `cmp imm32, rcx`: a function that has left its frame compares the number of arguments.
const COMPARE_BYTE: u64 = 0xf9_8348;
/// See [`COMPARE_BYTE`].
const COMPARE: u64 = 0xf9_8148;

/// Where the return address of an innermost frame is that is not there, and which of the bits above holds.
#[inline(always)]
pub(in crate::runtime) fn without_frame(process: &impl Process, frame: &Frame) -> Option<u64> {
    let [before, at] = process.read::<2>(frame.ip.wrapping_sub(8))?;
    let last = (before >> 56) as u8;
    let compares = at & 0xff_ffff == COMPARE_BYTE || at & 0xff_ffff == COMPARE;
    if (last == POP_FP || last == LEAVE) && compares {
        return Some(frame.sp & PLACE | FRAME_LEFT);
    }
    let rule = innermost::rule(before, at)?;
    if rule.0 == Rule::FRAME_POINTER_PUSHED.0 {
        return Some(frame.sp.wrapping_add(8) & PLACE | NO_FRAME_YET);
    }
    let state = if at as u8 == PUSH_FP {
        NO_FRAME_YET
    } else {
        FRAME_LEFT
    };
    Some(frame.sp & PLACE | state)
}
