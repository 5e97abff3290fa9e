//! Code that V8's compilers made: frame pointers lead out of it, but for a function's first and last instructions.
//!
//! Where the innermost function has no frame yet, it was called with itself in a register. Where it has left its frame, that still
//! stands below the stack pointer: V8 puts nothing there, and signal handlers have returned.

use super::{
    V8,
    closure::{known_shared, shared_of_function},
    frame::shared_of,
    function::Shared,
    layout::{FUNCTION_BELOW, KINDS_OF_FRAMES, SOME_BUILTIN, STRETCH_BYTES},
};
use crate::{
    intern::Hash,
    runtime::{
        COMPILED, ChainFrame, CodeOwner, FunctionInfo, Process,
        arch::v8::{CALLED, FRAME_LEFT, NO_FRAME_YET, PLACE, ROOTS, without_frame},
        check_of,
    },
    walk::{
        Memory,
        arch::ends_in_call,
        is_user_address,
        native::{Frame, Kept, Reached},
    },
};

impl CodeOwner for V8 {
    /// One of the builtins, from the table that compiled code has in a register.
    #[inline(always)]
    fn anchor(memory: &impl Memory, register: impl Fn(u8) -> u64) -> Option<u64> {
        let [code] = memory.read(register(ROOTS).wrapping_add(SOME_BUILTIN))?;
        Some(code)
    }

    /// The frame pointer, or the place of the return address with what is known of the frame.
    #[inline(always)]
    fn search_from(process: &impl Process, frame: &Frame) -> u64 {
        let fp = frame.fp.read(process).unwrap_or(0) & PLACE;
        if frame.has_called() {
            // Of what is read around the frame pointer, this is the lowest: all is read together.
            let _ = process.read_upward::<1>(fp.wrapping_sub(FUNCTION_BELOW));
            return fp;
        }
        let place = without_frame(process, frame).unwrap_or(0);
        let returns = process.read_upward(place & PLACE).map_or(0, |[word]| word);
        let call = process.read(returns.wrapping_sub(8));
        if place != 0 && call.is_some_and(|[bytes]| ends_in_call(bytes)) {
            place
        } else {
            fp
        }
    }

    /// Where the function lies below the frame pointer.
    #[inline(always)]
    fn own_frame(found: u64) -> u64 {
        if found & NO_FRAME_YET != 0 {
            return 0;
        }
        let fp = if found & FRAME_LEFT != 0 {
            (found & PLACE).wrapping_sub(8)
        } else {
            found
        };
        fp.wrapping_sub(FUNCTION_BELOW)
    }

    #[inline(always)]
    fn leave(
        process: &impl Process,
        frame: &Frame,
        found: u64,
    ) -> Option<(Frame, Option<ChainFrame>)> {
        let caller = caller(process, frame, found)?;
        Some((caller, function(process, frame, found)))
    }

    #[inline(always)]
    fn leave_known(
        process: &impl Process,
        frame: &Frame,
        known: &ChainFrame,
        _bytes: u64,
    ) -> Option<(Frame, u64)> {
        let fp = Self::search_from(process, frame);
        let [function] = process.read_upward(Self::own_frame(fp))?;
        let shared = known_shared(process, function)?;
        let stretch = known.function & !COMPILED;
        let check = Shared::known_check(process, shared)? ^ hash_of_stretch(process, stretch);
        let is_same = check == known.check;
        let caller = frame.by_frame_pointer(process).ok()?;
        is_same.then_some((caller, fp))
    }
}

/// See [`CodeOwner::leave`].
#[inline(always)]
fn caller(process: &impl Process, frame: &Frame, found: u64) -> Option<Frame> {
    if found & !PLACE == 0 {
        return frame.by_frame_pointer(process).ok();
    }
    let place = found & PLACE;
    let [ip] = process.read_upward(place)?;
    let is_pushed = place != frame.sp;
    is_user_address(ip).then_some(Frame {
        ip,
        sp: place.wrapping_add(8),
        fp: if is_pushed {
            Kept::at(frame.sp)
        } else {
            frame.fp
        },
        saved: Kept::LOST,
        reached: Reached::CalledFirst,
    })
}

/// The function at its beginning; or else by the stretch of code, as there may be calls in it that were compiled into the
/// function.
#[inline(always)]
fn function(process: &impl Process, frame: &Frame, found: u64) -> Option<ChainFrame> {
    if found & NO_FRAME_YET != 0 {
        let shared = shared_of_function(process, process.register(CALLED))?;
        return Some(Shared::read(process, shared)?.frame(0));
    }
    let [function, context] = process.read_upward(V8::own_frame(found))?;
    let Some(shared) = shared_of(process, function, context) else {
        return frame_of_kind(context);
    };
    let ip = frame.lookup();
    let place = ip & (STRETCH_BYTES - 1);
    let stretch = ip.wrapping_sub(place);
    let frame = shared.frame(place as u32);
    Some(ChainFrame {
        function: COMPILED | stretch,
        check: frame.check ^ hash_of_stretch(process, stretch),
        ..frame
    })
}

/// The frame of generated code that has no function, by what stands in the context's place.
#[inline(always)]
fn frame_of_kind(context: u64) -> Option<ChainFrame> {
    let kind = context >> 1;
    let is_kind = context & 1 == 0 && kind != 0 && kind < KINDS_OF_FRAMES;
    is_kind.then_some(ChainFrame {
        function: kind,
        check: 0,
        position: 0,
        flags: ChainFrame::FRAME,
    })
}

/// The check of a function in a stretch of code, by the address of its `SharedFunctionInfo`.
pub fn check_in_stretch(process: &impl Process, shared: u64, stretch: u64) -> Option<u32> {
    let check = V8::check(process, shared)?;
    Some(check ^ hash_of_stretch(process, stretch))
}

/// Tells code at an address from other code of the same function that was there before. The last words do: if anything before them
/// has another length, all are others.
#[inline(always)]
fn hash_of_stretch(process: &impl Process, stretch: u64) -> u32 {
    const WORDS: u64 = 8;
    if !process.fetch(stretch.wrapping_add(STRETCH_BYTES - 8 * WORDS), 8 * WORDS) {
        return 0;
    }
    let hash = Hash::new(process.fetched(0));
    let hash = hash.with(process.fetched(2)).with(process.fetched(3));
    check_of(hash.with(process.fetched(5)).with(process.fetched(7)))
}
