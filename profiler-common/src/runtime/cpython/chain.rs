//! The chain of a thread's frames, and its levels.

use super::{
    CPython,
    layout::{Shape, at, shape},
    level::{enter, enter_cframe, enter_level, word},
    outer, seen,
};
use crate::runtime::{
    Begin, Chain, ChainFrame, Cursor, Described, FUNCTION_BITS, NativeFrame, Process,
};

/// `FRAME_OWNED_BY_CSTACK`, 3.14's `FRAME_OWNED_BY_INTERPRETER`: an entry frame (`pycore_frame.h`).
const OWNED_BY_LOOP: u64 = 3;
/// `FRAME_OWNED_BY_GENERATOR`.
const OWNED_BY_GENERATOR: u64 = 1;

/// Tag bits of a reference (3.14, `_PyStackRef`).
const REFERENCE_TAGS: u64 = 3;

/// The smallest frame that may hold an entry frame.
const ENTRY_FRAME_BYTES: u64 = 80;

impl Chain for CPython {
    const BOUNDARY: Option<usize> = Some(word::BOUNDARY);

    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, _: &NativeFrame) -> Begin {
        match outer::innermost(process, cursor) {
            Some(state) if enter(process, cursor, state).is_some() => Begin::Begun,
            _ => Begin::Nothing,
        }
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        // The others go by addresses in the native stack.
        !matches!(shape(file), Shape::FrameInLoop) || file.is_within(at::LOOP, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        cursor.set(word::SP, native.sp);
        cursor.set(word::CALLER_SP, native.caller_sp);
        let boundary = cursor.get(word::BOUNDARY);
        match shape(process) {
            Shape::FrameInLoop => process.is_within(at::LOOP, native.address),
            Shape::EntryFrame if boundary == 0 => {
                let tall = native.caller_sp.wrapping_sub(native.sp) >= ENTRY_FRAME_BYTES;
                tall && (process.descriptor(at::LOOP) == 0
                    || process.is_within(at::LOOP, native.address))
            }
            _ => native.sp <= boundary && boundary < native.caller_sp,
        }
    }

    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        if let Some(step) = outer::search(process, cursor) {
            return step;
        }
        let frame = cursor.get(word::FRAME);
        if frame == 0 {
            return end_of_chain(process, cursor);
        }
        match read_frame(process, frame) {
            Some(frame) => advance(process, cursor, frame),
            None => unbelievable(process, cursor),
        }
    }
}

/// Fields of a frame, as far as they are read.
#[derive(Clone, Copy)]
struct Frame {
    address: u64,
    code: u64,
    previous: u64,
    /// Of three words, in bytes.
    position: u64,
    owner: u64,
}

#[inline(always)]
fn read_frame(process: &impl Process, address: u64) -> Option<Frame> {
    let links = address.wrapping_add(process.descriptor(at::FRAME_LINKS));
    if !process.fetch(links, process.descriptor(at::FRAME_BYTES)) {
        return None;
    }
    let position = process.fetched_at(process.descriptor(at::FRAME_POSITION));
    let shape = shape(process);
    if let Shape::FrameInLoop | Shape::FrameAtAddress = shape {
        return Some(Frame {
            address,
            code: process.fetched(1),
            previous: process.fetched(0),
            position: position & 0xffff_ffff,
            owner: 0,
        });
    }
    let owner = process.fetched_at(process.descriptor(at::FRAME_OWNER)) & 0xff;
    let code = process.fetched(0);
    let (code, previous) = if let Shape::EntryFlag = shape {
        (code, process.fetched(2))
    } else {
        (code & !REFERENCE_TAGS, process.fetched(1))
    };
    Some(Frame {
        address,
        code,
        previous,
        position,
        owner,
    })
}

/// Shows a frame that was read, and puts what is behind it into the cursor.
#[inline(always)]
fn advance(process: &impl Process, cursor: &impl Cursor, frame: Frame) -> ChainFrame {
    let shape = shape(process);
    let is_entry = frame.owner == OWNED_BY_LOOP;
    match shape {
        Shape::EntryFrame if is_entry => return leave_entry_frame(process, cursor, frame),
        Shape::EntryAndAddress if is_entry => return leave_shared_level(process, cursor, frame),
        _ => {}
    }
    let shown = show(process, cursor, frame);
    if shown.flags & ChainFrame::BROKEN != 0 {
        return unbelievable(process, cursor);
    }
    cursor.set(word::FRAME, frame.previous);
    let ends = match shape {
        Shape::FrameInLoop => leave_frame(process, cursor, frame),
        Shape::FrameAtAddress => leave_frame_at_address(process, cursor, frame),
        // `is_entry` is a flag in the place of the owner.
        Shape::EntryFlag if frame.owner & 1 != 0 => leave_level(process, cursor, frame.previous),
        _ => 0,
    };
    if ends & ChainFrame::RETRACT != 0 {
        return ChainFrame::none(ends);
    }
    ChainFrame {
        flags: shown.flags | ends,
        ..shown
    }
}

/// A frame that is a level of its own, found by the loop's code.
#[inline(always)]
fn leave_frame(process: &impl Process, cursor: &impl Cursor, frame: Frame) -> u32 {
    enter_level(cursor, frame.previous);
    level_ends(process, cursor, frame.previous != 0)
}

/// A frame that is a level of its own, with a `CFrame`.
#[inline(always)]
fn leave_frame_at_address(process: &impl Process, cursor: &impl Cursor, frame: Frame) -> u32 {
    let cframe = cursor.get(word::BOUNDARY);
    let next = cframe.wrapping_add(process.descriptor(at::CFRAME_PREVIOUS));
    let [previous] = process.read_upward(next).unwrap_or([0]);
    cursor.set(word::BOUNDARY, previous);
    leave_frame(process, cursor, frame)
}

/// The last frame of a level with a `_PyCFrame` was come to. `outer`: the frame behind it.
///
/// It must be the next `_PyCFrame`'s. Otherwise the loop has just been entered and its frame is not set yet, and what is in
/// its place is left from another call: the level has no frames.
#[inline(always)]
fn leave_level(process: &impl Process, cursor: &impl Cursor, outer: u64) -> u32 {
    let cframe = cursor.get(word::BOUNDARY);
    let next = cframe.wrapping_add(process.descriptor(at::CFRAME_PREVIOUS));
    let [previous] = process.read_upward(next).unwrap_or([0]);
    if enter_cframe(process, cursor, previous).is_none() {
        return level_ends(process, cursor, false);
    }
    let frame = cursor.get(word::FRAME);
    let retract = if frame == outer {
        0
    } else {
        ChainFrame::RETRACT
    };
    level_ends(process, cursor, frame != 0) | retract
}

/// The entry frame of 3.12, which lies beside the `_PyCFrame`.
#[inline(always)]
fn leave_shared_level(process: &impl Process, cursor: &impl Cursor, frame: Frame) -> ChainFrame {
    ChainFrame::none(leave_level(process, cursor, frame.previous))
}

/// The entry frame of 3.13 and later, which lies in the loop's native frame.
#[inline(always)]
fn leave_entry_frame(process: &impl Process, cursor: &impl Cursor, frame: Frame) -> ChainFrame {
    let belongs =
        cursor.get(word::SP) <= frame.address && frame.address < cursor.get(word::CALLER_SP);
    if !belongs {
        // The same again, at the native frame that it belongs to.
        cursor.set(word::BOUNDARY, frame.address);
        cursor.set(word::FRAME, cursor.get(word::LEVEL));
        return ChainFrame::none(ChainFrame::LEVEL_ENDS | ChainFrame::RETRACT);
    }
    cursor.set(word::BOUNDARY, 0);
    enter_level(cursor, frame.previous);
    ChainFrame::none(level_ends(process, cursor, frame.previous != 0))
}

/// The flags of a step behind which a level ends, of which `more` are behind it in this interpreter.
#[inline(always)]
fn level_ends(process: &impl Process, cursor: &impl Cursor, more: bool) -> u32 {
    if more {
        ChainFrame::LEVEL_ENDS
    } else {
        outer::leave_state(process, cursor)
    }
}

/// There is no frame where one was expected: an empty level if another is behind it.
#[inline(always)]
fn end_of_chain(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
    match shape(process) {
        Shape::EntryFlag | Shape::EntryAndAddress => skip_level(process, cursor),
        _ => ChainFrame::none(level_ends(process, cursor, false)),
    }
}

/// Handles a cursor without a frame. The first of a level with a `_PyCFrame` may not be set yet.
#[inline(always)]
fn unbelievable(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
    let is_first = cursor.get(word::FRAME) == cursor.get(word::LEVEL);
    match shape(process) {
        Shape::EntryFlag | Shape::EntryAndAddress => {
            let skipped = skip_level(process, cursor);
            if is_first {
                return skipped;
            }
            ChainFrame::none(skipped.flags | ChainFrame::BROKEN)
        }
        _ => ChainFrame::broken(),
    }
}

/// Leaves a level without frames.
#[inline(always)]
fn skip_level(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
    let flags = leave_level(process, cursor, 0);
    ChainFrame::none(flags | ChainFrame::RETRACT)
}

/// The frame's function and where it is; broken if it has no code object.
#[inline(always)]
fn show(process: &impl Process, cursor: &impl Cursor, frame: Frame) -> ChainFrame {
    let Some(code) = seen::code(process, cursor, frame.code) else {
        return ChainFrame::broken();
    };
    let bytes = process.descriptor(at::CODE_BYTES);
    let position = if bytes == 0 {
        frame
            .position
            .wrapping_shl(process.descriptor(at::POSITION_SHIFT) as u32)
    } else {
        frame.position.wrapping_sub(frame.code.wrapping_add(bytes))
    };
    if process.descriptor(at::CODE_FIRST_TRACEABLE) != 0 && frame.owner != OWNED_BY_GENERATOR {
        // In instructions of two bytes. `_PyFrame_IsIncomplete`: the function has not begun, or is a shim.
        if (position as i64) < i64::from(code.first_traceable) << 1 {
            return ChainFrame::none(0);
        }
    }
    ChainFrame {
        function: frame.code & FUNCTION_BITS,
        check: code.check,
        position: position as u32,
        flags: ChainFrame::FRAME,
    }
}
