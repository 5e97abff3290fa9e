//! Leaves a frame in the code of one runtime.
//!
//! In: the frame that is looked at. Out: in its place, its caller; and in place of its word its function's, where the runtime knows
//! one. Whether the code is the runtime's and where it goes on, its [`CodeOwner`] decides.

use super::{scratch::add_words, view::View};
use crate::{
    platform::{
        loops::{Turn, repeat},
        maps::Scratch,
    },
    walk::{known_functions, own_frames},
};
use core::{hint::black_box, marker::PhantomData, ops::ControlFlow};
use profiler_common::{
    abi::FrameWord,
    runtime::{COMPILED, ChainFrame, CodeOwner, RuntimeKind},
    walk::native::{Frame, Reached},
};

/// Replaces the frame by its caller, if it is in this runtime's code.
#[inline(always)]
pub(super) fn to_caller<R: CodeOwner>(cpu_slot: u32, kind: RuntimeKind) -> Option<()> {
    let scratch = Scratch::of(cpu_slot)?;
    let view = View::of(scratch, kind)?;
    let found = find::<R>(&view)?;
    let frame = scratch.walk.frame();
    let (caller, function) = R::leave(&view, &frame, found)?;
    if let Some(function) = function {
        show(scratch, kind, function, R::own_frame(found));
        if frame.has_called() && function.function & COMPILED != 0 && function.check != 0 {
            let bytes = caller.sp.wrapping_sub(frame.sp);
            known_functions::keep(scratch, frame.ip, kind, &function, bytes);
        }
    }
    scratch.walk.put(caller);
    Some(())
}

/// Notes the function that is [kept](known_functions::keep) for the frame, and replaces the frame by its caller, if the
/// function is still there.
#[inline(always)]
pub(super) fn known_to_caller<R: CodeOwner>(
    scratch: &'static Scratch,
    kind: RuntimeKind,
) -> Option<()> {
    let walk = &scratch.walk;
    let view = View::of(scratch, kind)?;
    let frame = Frame {
        // All are callers.
        reached: Reached::Called,
        ..walk.frame()
    };
    let known = known_functions::find(scratch, frame.ip)?;
    if known.kind != kind as u64 {
        return None;
    }
    let (caller, found) = R::leave_known(&view, &frame, &known.function, known.bytes)?;
    let words = walk.words.load();
    walk.words.store(words.wrapping_add(1));
    if show(scratch, kind, known.function, R::own_frame(found)).is_none() {
        walk.words.store(words);
        return None;
    }
    walk.put(caller);
    Some(())
}

/// Puts a function in place of the address that was noted last, unless there is no room.
#[inline(always)]
fn show(
    scratch: &'static Scratch,
    kind: RuntimeKind,
    frame: ChainFrame,
    own_frame: u64,
) -> Option<()> {
    let words = scratch.walk.words.load();
    // Hidden from the compiler, which would check another number than the one that is used.
    let last = black_box(words as usize);
    let Some([function, position]) = scratch.user.get(last..2 + last) else {
        return None;
    };
    function.store(FrameWord::function(kind, frame.function, frame.check).0);
    position.store(FrameWord::position(frame.check, frame.position).0);
    scratch.walk.words.store(words.wrapping_add(1));
    let chains = &scratch.chains;
    if own_frame != 0 {
        own_frames::note(chains, last.wrapping_sub(1), own_frame);
    }
    add_words(chains, 1, 1);
    Some(())
}

/// Finds what proves that the frame that is looked at is in the runtime's code.
#[inline(always)]
pub(super) fn find<R: CodeOwner>(view: &View) -> Option<u64> {
    let mut search = Search::<R> {
        view: *view,
        place: R::search_from(view, &view.scratch().walk.frame()),
        found: 0,
        owner: PhantomData,
    };
    if R::TURNS == 1 {
        // Without a loop's stack.
        let _: ControlFlow<()> = search.turn(0);
    } else {
        repeat(R::TURNS, &mut search);
    }
    (search.found != 0).then_some(search.found)
}

struct Search<R> {
    view: View,
    place: u64,
    found: u64,
    owner: PhantomData<R>,
}

impl<R: CodeOwner> Turn for Search<R> {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        match R::search(&self.view, self.place) {
            ControlFlow::Continue(place) => {
                self.place = place;
                ControlFlow::Continue(())
            }
            ControlFlow::Break(found) => {
                self.found = found;
                ControlFlow::Break(())
            }
        }
    }
}
