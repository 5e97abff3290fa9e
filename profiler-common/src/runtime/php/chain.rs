//! The chain of frames.

use super::{
    function::{Function, line, mark_of},
    layout::{
        CALL_GENERATOR, CALL_TOP, CURRENT_EXECUTE_DATA, FRAME_BYTES, GENERATOR_FRAME,
        GENERATOR_PARENT, GENERATOR_PLACEHOLDER, OBJECT, TYPE, at, frame,
    },
};
use crate::runtime::{Begin, ChainFrame, Cursor, FUNCTION_BITS, Process};

/// The words of the cursor.
pub(super) mod word {
    /// The next frame of the chain.
    pub(in super::super) const FRAME: usize = 0;
    /// A frame to be shown before it, which the loop has unlinked already; zero if there is none.
    pub(in super::super) const UNLINKED: usize = 1;
    /// The instruction that the level is at; zero if its frame says it.
    pub(in super::super) const INSTRUCTION: usize = 2;
    /// Whether a level has been found.
    pub(in super::super) const HAS_BEGUN: usize = 3;
    /// How many frames without a function have been passed.
    pub(in super::super) const PASSED: usize = 4;
    /// The frame before the next, which has been shown.
    pub(in super::super) const LAST: usize = 5;
    /// The file of the last function, a `zend_string`.
    pub(in super::super) const FILE: usize = 6;
    /// Mark of that file, as [`mark_of_file`](super::mark_of_file) has it.
    pub(in super::super) const FILE_MARK: usize = 7;
}

/// The most frames without a function that a chain may have: what fibers begin with, and generators that delegate to others.
const MAX_PASSED: u64 = 256;
/// The most generators that delegate to each other.
const MAX_DELEGATION: usize = 8;

/// A `zend_execute_data`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) instruction: u64,
    /// A `zend_function`, or zero.
    pub(super) function: u64,
    /// If it has no function: the generator for which it stands, or zero.
    generator: u64,
    pub(super) is_top: bool,
    pub(super) is_generator: bool,
    /// How many arguments it was called with.
    pub(super) arguments: u64,
    pub(super) previous: u64,
}

impl Frame {
    /// The frame at an address.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        if !process.fetch(address, FRAME_BYTES) {
            return None;
        }
        let this = process.fetched(frame::THIS);
        let info = process.fetched(frame::INFO);
        let stands_for_generator = address.wrapping_sub(this) == GENERATOR_PLACEHOLDER;
        Some(Self {
            instruction: process.fetched(frame::INSTRUCTION),
            function: process.fetched(frame::FUNCTION),
            generator: if stands_for_generator && info & TYPE == OBJECT {
                this
            } else {
                0
            },
            is_top: info & CALL_TOP != 0,
            is_generator: info & CALL_GENERATOR != 0,
            arguments: info >> 32,
            previous: process.fetched(frame::PREVIOUS),
        })
    }
}

/// See [`Chain::begin`](crate::runtime::Chain::begin).
#[inline(always)]
pub(super) fn begin(process: &impl Process, cursor: &impl Cursor) -> Begin {
    let slot = process.descriptor(at::SLOT);
    let place = if slot == 0 {
        process.bias().wrapping_add(process.descriptor(at::CURRENT))
    } else {
        let [globals] = process
            .read(process.bias().wrapping_add(slot))
            .unwrap_or([0]);
        globals.wrapping_add(CURRENT_EXECUTE_DATA)
    };
    let [frame] = process.read(place).unwrap_or([0]);
    cursor.set(word::FRAME, frame);
    // The outermost loop may have unlinked its frame and still run: then there is none.
    Begin::Begun
}

/// See [`Chain::step`](crate::runtime::Chain::step).
#[inline(always)]
pub(super) fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
    let unlinked = cursor.get(word::UNLINKED);
    cursor.set(word::UNLINKED, 0);
    let address = if unlinked == 0 {
        cursor.get(word::FRAME)
    } else {
        unlinked
    };
    if address == 0 {
        return ChainFrame::none(ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS);
    }
    let Some(frame) = Frame::read(process, address) else {
        return ChainFrame::broken();
    };
    let last = cursor.get(word::LAST);
    if unlinked == 0 {
        cursor.set(word::FRAME, frame.previous);
        cursor.set(word::LAST, address);
    }
    let mut frame = frame;
    let more = frame.previous != 0;
    if frame.function == 0 {
        let (generator, own) = delegating(process, frame.generator, last);
        let delegating = if own == 0 {
            None
        } else {
            Frame::read(process, own)
        };
        let Some(delegating) = delegating else {
            return pass(cursor, more);
        };
        cursor.set(word::LAST, own);
        if generator != frame.generator {
            // There are others behind.
            cursor.set(word::FRAME, address);
            if is_too_much(cursor) {
                return ChainFrame::broken();
            }
        }
        // Its loop is not running: it waits for the other's.
        frame = Frame {
            is_top: false,
            previous: frame.previous,
            ..delegating
        };
    }
    show(process, cursor, &frame, more)
}

/// Of the generators that a frame stands for, the one that delegates to that whose frame was shown last, and its frame; zeros
/// if there is none. They are linked the other way round.
#[inline(always)]
fn delegating(process: &impl Process, outermost: u64, last: u64) -> (u64, u64) {
    let mut generator = outermost;
    if generator == 0 {
        return (0, 0);
    }
    let [mut own] = process
        .read(generator.wrapping_add(GENERATOR_FRAME))
        .unwrap_or([0]);
    for _ in 0..MAX_DELEGATION {
        let [parent] = process
            .read(generator.wrapping_add(GENERATOR_PARENT))
            .unwrap_or([0]);
        let [of_parent] = process
            .read(parent.wrapping_add(GENERATOR_FRAME))
            .unwrap_or([0]);
        if of_parent == 0 {
            return (0, 0);
        }
        if of_parent == last {
            return (generator, own);
        }
        (generator, own) = (parent, of_parent);
    }
    (0, 0)
}

/// Counts frames without a function; whether there are too many.
#[inline(always)]
fn is_too_much(cursor: &impl Cursor) -> bool {
    let passed = cursor.get(word::PASSED) + 1;
    cursor.set(word::PASSED, passed);
    passed > MAX_PASSED
}

/// A frame that stands for no function: what fibers begin with.
#[inline(always)]
fn pass(cursor: &impl Cursor, more: bool) -> ChainFrame {
    if is_too_much(cursor) {
        return ChainFrame::broken();
    }
    ChainFrame::none(ends(false, more))
}

#[inline(always)]
fn show(process: &impl Process, cursor: &impl Cursor, frame: &Frame, more: bool) -> ChainFrame {
    let Some(function) = Function::read(process, frame.function) else {
        return ChainFrame::broken();
    };
    if function.is_dummy() {
        return pass(cursor, more);
    }
    let mark = mark_of_file(process, cursor, function.file);
    let Some(check) = mark.and_then(|mark| function.check(process, mark)) else {
        return ChainFrame::broken();
    };
    let mut position = 0;
    let mut flags = ends(false, more);
    if function.is_user() {
        let instruction = match cursor.get(word::INSTRUCTION) {
            0 => frame.instruction,
            instruction => instruction,
        };
        cursor.set(word::INSTRUCTION, 0);
        position = line(process, instruction).unwrap_or(0);
        flags = ends(frame.is_top, more);
    }
    ChainFrame {
        function: frame.function & FUNCTION_BITS,
        check,
        position,
        flags: flags | ChainFrame::FRAME,
    }
}

/// Mark of a file. Functions that call each other are often of one file, which is read once.
#[inline(always)]
fn mark_of_file(process: &impl Process, cursor: &impl Cursor, file: u64) -> Option<u64> {
    if file == 0 {
        return Some(0);
    }
    if file == cursor.get(word::FILE) {
        return Some(cursor.get(word::FILE_MARK));
    }
    let mark = mark_of(process, file)?;
    cursor.set(word::FILE, file);
    cursor.set(word::FILE_MARK, mark);
    Some(mark)
}

#[inline(always)]
const fn ends(level: bool, more: bool) -> u32 {
    match (level, more) {
        (_, false) => ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS,
        (true, true) => ChainFrame::LEVEL_ENDS,
        (false, true) => 0,
    }
}
