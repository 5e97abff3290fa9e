//! Where a chain is: the words of the cursor, and the level that it comes to.
//!
//! In: a thread state, a `_PyCFrame` or a frame. Out: the cursor's words.

use super::layout::{Shape, at, shape};
use crate::runtime::{Cursor, Process};

/// The words of the cursor; others are [`super::seen`]'s.
pub(super) mod word {
    /// The next frame.
    pub(in super::super) const FRAME: usize = 0;
    /// The first frame of the level.
    pub(in super::super) const LEVEL: usize = 1;
    /// The `_PyCFrame`, `CFrame` or frame in the level's native frame; zero while it is not known.
    pub(in super::super) const BOUNDARY: usize = 2;
    /// The native frame's stack pointer.
    pub(in super::super) const SP: usize = 3;
    /// Its caller's.
    pub(in super::super) const CALLER_SP: usize = 4;
    /// The thread state that the frames are of. Up to 3.11, the outer one: with bit 0 set once its turn has come, zero if none.
    pub(in super::super) const STATE: usize = 5;
    /// The interpreter whose states are searched; zero if none are. Since 3.12, in which [`super::super::seen`] needs no files.
    pub(in super::super) const INTERPRETER: usize = 6;
    /// The state that the search looks at next. Since 3.12.
    pub(in super::super) const OUTER: usize = 7;
}

/// Puts the innermost level of a thread into the cursor; none if there is none.
#[inline(always)]
pub(super) fn enter(process: &impl Process, cursor: &impl Cursor, state: u64) -> Option<()> {
    let [head] = process.read(state.wrapping_add(process.descriptor(at::HEAD)))?;
    match shape(process) {
        Shape::EntryFlag | Shape::EntryAndAddress => return enter_cframe(process, cursor, head),
        Shape::FrameAtAddress => {
            let [cframe] = process.read(state.wrapping_add(process.descriptor(at::BOUNDARY)))?;
            cursor.set(word::BOUNDARY, cframe);
        }
        Shape::FrameInLoop | Shape::EntryFrame => {}
    }
    enter_level(cursor, head);
    (head != 0).then_some(())
}

/// Puts the level of a `_PyCFrame` into the cursor.
#[inline(always)]
pub(super) fn enter_cframe(
    process: &impl Process,
    cursor: &impl Cursor,
    cframe: u64,
) -> Option<()> {
    if cframe == 0 {
        return None;
    }
    let [frame] = process.read(cframe.wrapping_add(process.descriptor(at::CFRAME_FRAME)))?;
    cursor.set(word::BOUNDARY, cframe);
    enter_level(cursor, frame);
    Some(())
}

#[inline(always)]
pub(super) fn enter_level(cursor: &impl Cursor, frame: u64) {
    cursor.set(word::LEVEL, frame);
    cursor.set(word::FRAME, frame);
}
