//! A loop that the verifier accepts whatever its length.
#![expect(unsafe_code, reason = "bpf_loop hands the state back as a raw pointer")]

use crate::platform::config;
use aya_ebpf::{cty::c_void, helpers::generated::bpf_loop};
use core::ops::ControlFlow;
use profiler_common::abi::{MAX_KERNEL_FRAMES, Switches};

/// How many frames are walked where the kernel has no `bpf_loop`, of user stacks as of its own.
pub(crate) const PLAIN_FRAMES: u32 = MAX_KERNEL_FRAMES as u32;

/// One turn of a loop.
pub(crate) trait Turn {
    /// Does turn number `index`, counted from zero, and says whether to go on.
    fn turn(&mut self, index: u32) -> ControlFlow<()>;
}

/// Takes up to `turns` turns, as long as they say to go on; where the kernel has no `bpf_loop`, in an ordinary
/// loop, and no more than `checked`: the verifier goes through each of them, and older ones are slow. That is
/// for loops in subprograms, and after which little comes.
#[inline(always)]
pub(crate) fn repeat_anywhere<T: Turn>(turns: u32, checked: u32, state: &mut T) {
    if !config::has(Switches::PLAIN_LOOPS) {
        return repeat(turns, state);
    }
    for index in 0..checked {
        if index >= turns || state.turn(index).is_break() {
            return;
        }
    }
}

/// Takes up to `turns` turns, as long as they say to go on.
///
/// With `bpf_loop` the verifier checks one turn, however many there are, and what follows the loop
/// once. It would check every turn of an ordinary loop, and all that follows for each turn that may
/// have been the last.
#[inline(always)]
pub(crate) fn repeat<T: Turn>(turns: u32, state: &mut T) {
    if config::has(Switches::PLAIN_LOOPS) {
        // Nobody comes here, but subprograms are checked whether anybody calls them or not.
        return;
    }
    let callback: unsafe extern "C" fn(u32, *mut c_void) -> i64 = call::<T>;
    // SAFETY: the kernel passes `state` on to `callback` and to nobody else, and returns only after
    // the last call.
    unsafe { bpf_loop(turns, callback as *mut c_void, (&raw mut *state).cast(), 0) };
}

/// One turn, in the shape that `bpf_loop` calls: returns 0 to go on and 1 to stop.
unsafe extern "C" fn call<T: Turn>(index: u32, state: *mut c_void) -> i64 {
    // SAFETY: `state` is what `repeat` passed for this very `T`, alive and not borrowed elsewhere.
    let state = unsafe { &mut *state.cast::<T>() };
    i64::from(state.turn(index).is_break())
}
