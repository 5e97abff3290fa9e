//! Leaves code of a runtime's own that no unwind rows lead out of: what it made, and what its file's rows are wrong about.
//!
//! In: the frame that is looked at. Out: in its place, its caller; and in place of its word, its function's, where its runtime knows
//! one. Whose code it is and where that goes on, [`CodeOwner`]s decide.

use crate::{
    platform::{
        loops::{Turn, repeat},
        maps::{RUNTIMES, Scratch},
        subprog::subprog,
    },
    walk::{
        code_cache,
        runtime::{self, View},
    },
};
use core::{hint::black_box, marker::PhantomData, ops::ControlFlow};
use profiler_common::{
    abi::{CodeState, FrameWord},
    runtime::{ChainFrame, CodeOwner, RuntimeKind},
    walk::is_user_address,
};

/// Replaces the frame, in code without rows, by its caller, if a runtime made that code.
#[inline(always)]
pub(crate) fn leave(cpu_slot: u32, scratch: &'static Scratch, is_first: bool) -> bool {
    // The first descriptor is no file's, and says which runtimes files have.
    let kinds = RUNTIMES.get(0).map_or(0, |words| words[0].load());
    if kinds & runtime::CODE_OWNERS == 0 {
        return false;
    }
    // Which object the runtime lies in is found here, because that needs more stack than is left further down.
    let is_known = runtime::known(scratch).is_some_and(|known| known.runtime.load() != 0);
    if !is_known && (!is_first || find_runtime(cpu_slot, scratch).is_none()) {
        return false;
    }
    leave_owned_code(cpu_slot)
}

subprog! {
    /// See [`leave`].
    fn leave_owned_code(cpu_slot: u32) -> bool {
        let Some(scratch) = Scratch::of(cpu_slot) else {
            return false;
        };
        let kind = runtime::known(scratch).and_then(|known| {
            runtime::describe(&scratch.chains, known.runtime.load() as u32, known.bias.load())
        });
        kind.is_some_and(|kind| runtime::leave_code_of(kind, cpu_slot))
    }
}

subprog! {
    /// An address in the file of the runtime whose code the innermost frame is in, by the registers; zero if there is none.
    fn find_anchor(cpu_slot: u32) -> u64 {
        let address = Scratch::of(cpu_slot).and_then(|scratch| {
            let registers = &scratch.walk.registers;
            runtime::anchor(|number| registers[usize::from(number & 15)].load())
        });
        address.unwrap_or(0)
    }
}

/// Finds out which object the runtime lies in.
#[inline(always)]
fn find_runtime(cpu_slot: u32, scratch: &'static Scratch) -> Option<()> {
    let anchor = find_anchor(cpu_slot);
    if !is_user_address(anchor) {
        return None;
    }
    let found = code_cache::look_up(cpu_slot, scratch, anchor)?;
    let is_runtime_s = CodeState(found.kind.load()).runtime() != 0;
    runtime::meet(scratch).filter(|_| is_runtime_s)?;
    Some(())
}

subprog! {
    /// Sets the stack pointer of the innermost frame, at an address of its object's own, where that object's runtime says that rows
    /// are wrong.
    pub(crate) fn settle_first(cpu_slot: u32, address: u64) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            settle(scratch, address);
        }
    }
}

#[inline(always)]
fn settle(scratch: &'static Scratch, address: u64) -> Option<()> {
    let (descriptor, bias) = runtime::meet(scratch)?;
    let kind = runtime::describe(&scratch.chains, descriptor, bias)?;
    let sp = runtime::stack_pointer_of(kind, scratch, address)?;
    scratch.walk.set_sp(sp);
    Some(())
}

/// Replaces the frame by its caller, if it is in this runtime's code.
#[inline(always)]
pub(super) fn to_caller<R: CodeOwner>(cpu_slot: u32, kind: RuntimeKind) -> Option<()> {
    let scratch = Scratch::of(cpu_slot)?;
    let view = View::of(scratch, kind)?;
    let found = find::<R>(&view)?;
    let frame = scratch.walk.frame();
    let caller = R::caller(&view, &frame, found)?;
    if let Some(function) = R::function(&view, &frame, found) {
        show(scratch, kind, function);
    }
    scratch.walk.put(caller);
    Some(())
}

/// Puts a function in place of the address that was noted last, unless there is no room.
#[inline(always)]
fn show(scratch: &'static Scratch, kind: RuntimeKind, frame: ChainFrame) -> Option<()> {
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
    chains.words.store(chains.words.load().wrapping_add(1));
    Some(())
}

/// What a runtime's search finds of the frame that is looked at, which proves that it is in the runtime's code.
#[inline(always)]
pub(super) fn find<R: CodeOwner>(view: &View) -> Option<u64> {
    let mut search = Search::<R> {
        view: *view,
        place: R::search_from(&view.scratch().walk.frame()),
        found: 0,
        owner: PhantomData,
    };
    repeat(R::TURNS, &mut search);
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
