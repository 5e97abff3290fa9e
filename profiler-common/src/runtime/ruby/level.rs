//! Which level a native frame runs.

use super::{
    Ruby,
    chain::{self, Frame, word},
    layout::at,
};
use crate::runtime::{
    Begin, Chain, ChainFrame, Cursor, Described, NativeFrame, Process,
    arch::ruby::{FRAME_REGISTER, INSTRUCTION_REGISTER},
};

/// How many of the words are looked at that a called function saves.
const SAVED: usize = 3;
/// How many frames are looked at to find the end of a level that nothing runs yet.
const MAX_LOOK: usize = 4;

impl Chain for Ruby {
    const MAKES_CODE: bool = true;

    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, _: &NativeFrame) -> Begin {
        chain::begin(process, cursor)
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        file.is_within(at::LOOP, address) || file.is_within(at::EXECUTE, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        cursor.set(word::INSTRUCTION, 0);
        let is_innermost = cursor.get(word::HAS_BEGUN) == 0;
        if process.is_within(at::LOOP, native.address) {
            cursor.set(word::LOOP_END, native.caller_sp);
            cursor.set(word::HAS_BEGUN, 1);
            return is_loop_s(process, cursor, native, is_innermost);
        }
        if !process.is_within(at::EXECUTE, native.address) {
            return false;
        }
        cursor.set(word::HAS_BEGUN, 1);
        if native.sp == cursor.get(word::LOOP_END) {
            return false;
        }
        // It has not called the loop yet, or no more; or it looks who handles an exception. What it is called for is marked, and
        // unlinked before it returns.
        native.is_first == 0
            || process.descriptor(at::LOOP) == 0
            || is_last(process, cursor.get(word::FRAME))
    }

    /// The function is an `rb_iseq_constant_body`, the position the number of a word of its code.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        chain::step(process, cursor)
    }
}

#[inline(always)]
fn is_last(process: &impl Process, frame: u64) -> bool {
    matches!(Frame::read(process, frame), Some(frame) if frame.is_last())
}

/// Whether a native frame of the loop runs the level that comes next.
#[inline(always)]
fn is_loop_s(
    process: &impl Process,
    cursor: &impl Cursor,
    native: &NativeFrame,
    is_innermost: bool,
) -> bool {
    let body = process.descriptor(at::BODY);
    if body == 0 {
        return true;
    }
    if native.is_first != 0 {
        let is_new = process.descriptor(at::LOOP) <= native.address && native.address < body;
        return is_new || is_running(process, cursor);
    }
    if is_innermost {
        let saved = native.sp.wrapping_sub(8 + 8 * SAVED as u64);
        let saved = process.read(saved).unwrap_or([0; SAVED]);
        skip_unentered(process, cursor, &saved);
    }
    true
}

/// The loop itself runs, so its registers are known. If they do not hold one of its frames, it is about to return.
#[inline(always)]
fn is_running(process: &impl Process, cursor: &impl Cursor) -> bool {
    let (frame, head) = (process.register(FRAME_REGISTER), cursor.get(word::FRAME));
    if frame == head {
        cursor.set(word::INSTRUCTION, process.register(INSTRUCTION_REGISTER));
        return true;
    }
    if frame == head.wrapping_sub(process.descriptor(at::FRAME_BYTES)) {
        // Unlinked, and not left yet.
        if is_last(process, frame) {
            cursor.set(word::FRAME, frame);
        }
        return true;
    }
    is_frame(process, cursor, frame)
}

/// Whether a word is the address of a frame of the chain.
#[inline(always)]
fn is_frame(process: &impl Process, cursor: &impl Cursor, address: u64) -> bool {
    let (head, end) = (cursor.get(word::FRAME), cursor.get(word::END));
    let bytes = process.descriptor(at::FRAME_BYTES);
    head <= address && address <= end && end.wrapping_sub(address).checked_rem(bytes) == Some(0)
}

/// Between a frame's being linked and the loop's being called for it, the chain begins with a level that nothing runs. It has
/// begun if what the loop saved is a frame behind it.
#[inline(always)]
fn skip_unentered(process: &impl Process, cursor: &impl Cursor, saved: &[u64; SAVED]) {
    let mut running = 0;
    for &word in saved {
        if is_frame(process, cursor, word) {
            running = word;
        }
    }
    let mut frame = cursor.get(word::FRAME);
    for _ in 0..MAX_LOOK {
        if running <= frame {
            return;
        }
        let is_end = is_last(process, frame);
        frame = frame.wrapping_add(process.descriptor(at::FRAME_BYTES));
        if is_end {
            cursor.set(word::FRAME, frame);
            return;
        }
    }
}
