//! Which level a native frame runs.

use super::{
    Php,
    chain::{self, Frame, word},
    function::{has_instruction, is_user, values},
    layout::{VALUE_BYTES, at},
};
use crate::runtime::{
    Begin, Chain, ChainFrame, Cursor, Described, NativeFrame, Process,
    arch::php::{FRAME_REGISTER, INSTRUCTION_REGISTER},
};

/// How many frames are looked at to find the one that the loop runs: the others are functions written in C.
const MAX_LOOK: usize = 4;

/// How many of the words are looked at that a called function saves.
const SAVED: usize = 3;

impl Chain for Php {
    const MAKES_CODE: bool = true;

    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, _: &NativeFrame) -> Begin {
        chain::begin(process, cursor)
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        file.is_within(at::LOOP, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        cursor.set(word::INSTRUCTION, 0);
        if !process.is_within(at::LOOP, native.address) {
            return false;
        }
        let body = process.descriptor(at::BODY);
        let is_innermost = cursor.get(word::HAS_BEGUN) == 0;
        cursor.set(word::HAS_BEGUN, 1);
        if body == 0 {
            return true;
        }
        if native.is_first == 0 {
            let saved = native.sp.wrapping_sub(8 + 8 * SAVED as u64);
            let saved = process.read(saved).unwrap_or([0; SAVED]);
            return is_called(process, cursor, &saved, is_innermost);
        }
        let entered = process.descriptor(at::LOOP) <= native.address && native.address < body;
        entered || is_running(process, cursor)
    }

    /// The position is the line.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        chain::step(process, cursor)
    }
}

/// The loop itself runs, so its registers are known. If they do not hold one of its frames, it is about to return: the frame
/// is unlinked and forgotten.
#[inline(always)]
fn is_running(process: &impl Process, cursor: &impl Cursor) -> bool {
    let frame = process.register(FRAME_REGISTER);
    let expected = running(process, cursor.get(word::FRAME));
    let is_known =
        frame == expected || unlink(process, cursor, frame) || is_caller(process, expected, frame);
    if frame == expected || cursor.get(word::UNLINKED) != 0 {
        let instruction = process.register(INSTRUCTION_REGISTER);
        set_instruction(process, cursor, frame, instruction);
    }
    is_known
}

/// Whether a frame called another in the same level: the loop links included code before it changes its registers.
#[inline(always)]
fn is_caller(process: &impl Process, callee: u64, frame: u64) -> bool {
    matches!(Frame::read(process, callee), Some(callee) if !callee.is_top && callee.previous == frame)
}

/// The loop has called a function, which saves the registers that it uses below its return address: from the end, perhaps
/// the frame pointer, then the instruction and the frame, or only the frame.
#[inline(always)]
fn is_called(
    process: &impl Process,
    cursor: &impl Cursor,
    saved: &[u64; SAVED],
    is_innermost: bool,
) -> bool {
    if unlink_in_place(process, cursor) {
        return true;
    }
    let expected = running(process, cursor.get(word::FRAME));
    for place in 0..SAVED {
        if saved[place] == expected {
            if is_innermost && place + 1 < SAVED {
                set_instruction(process, cursor, expected, saved[place + 1]);
            }
            return true;
        }
    }
    for &word in saved {
        if unlink(process, cursor, word) {
            return true;
        }
    }
    if is_innermost && expected != 0 {
        skip_unentered(process, cursor, expected, saved);
    }
    true
}

/// The first frame of the chain whose function is written in PHP; zero if there is none near.
#[inline(always)]
fn running(process: &impl Process, mut address: u64) -> u64 {
    for _ in 0..MAX_LOOK {
        let Some(frame) = Frame::read(process, address) else {
            return 0;
        };
        if is_user(process, frame.function) {
            return address;
        }
        address = frame.previous;
    }
    0
}

/// Takes a frame that the loop has unlinked but still runs, if it is one: the chain goes on with its caller.
#[inline(always)]
fn unlink(process: &impl Process, cursor: &impl Cursor, address: u64) -> bool {
    if address == 0 || address == cursor.get(word::LAST) {
        return false;
    }
    let Some(frame) = Frame::read(process, address) else {
        return false;
    };
    if frame.previous != cursor.get(word::FRAME) {
        return false;
    }
    // A generator begins as a frame on the stack, which still stands there after it has moved.
    let inner = Frame::read(process, cursor.get(word::LAST));
    if inner.is_some_and(|inner| inner.is_generator && inner.function == frame.function) {
        return false;
    }
    let is_unlinked = is_user(process, frame.function);
    if is_unlinked {
        cursor.set(word::UNLINKED, address);
        // It is shown once.
        cursor.set(word::LAST, address);
    }
    is_unlinked
}

/// As [`unlink`], whichever registers were saved. A frame stands behind its caller's, and that of what it has called behind
/// it, so the one that was unlinked fits between two that are linked.
#[inline(always)]
fn unlink_in_place(process: &impl Process, cursor: &impl Cursor) -> bool {
    let inner = cursor.get(word::LAST);
    if inner == 0 {
        return false;
    }
    let Some(address) = end(process, cursor.get(word::FRAME)) else {
        return false;
    };
    address != inner && end(process, address) == Some(inner) && unlink(process, cursor, address)
}

/// Where a frame ends.
#[inline(always)]
fn end(process: &impl Process, address: u64) -> Option<u64> {
    let frame = Frame::read(process, address)?;
    let values = values(process, frame.function, frame.arguments)?;
    Some(address.wrapping_add(values.wrapping_mul(VALUE_BYTES)))
}

/// Between a function's being linked and the loop's being called for it, and likewise behind, the chain begins with a level
/// that no native frame runs. It has begun with the one behind that if that is what the loop saved.
#[inline(always)]
fn skip_unentered(
    process: &impl Process,
    cursor: &impl Cursor,
    unentered: u64,
    saved: &[u64; SAVED],
) {
    let Some(frame) = Frame::read(process, unentered) else {
        return;
    };
    if !frame.is_top {
        return;
    }
    let behind = running(process, frame.previous);
    if behind != 0 && saved.contains(&behind) {
        cursor.set(word::FRAME, frame.previous);
    }
}

/// Sets the instruction that a frame is at, which the loop saves in the frame only before what may fail.
#[inline(always)]
fn set_instruction(process: &impl Process, cursor: &impl Cursor, frame: u64, instruction: u64) {
    let Some(frame) = Frame::read(process, frame) else {
        return;
    };
    if has_instruction(process, frame.function, instruction) {
        cursor.set(word::INSTRUCTION, instruction);
    }
}
