//! Loops of any length that the verifier accepts.
#![expect(unsafe_code, reason = "bpf_loop hands the state back as a raw pointer")]

use crate::platform::config;
use aya_ebpf::{cty::c_void, helpers::generated::bpf_loop};
use core::ops::ControlFlow;
use profiler_common::abi::{MAX_KERNEL_FRAMES, Switches};

/// How many frames of a user or kernel stack are walked if the kernel has no `bpf_loop`.
pub(crate) const PLAIN_FRAMES: u32 = MAX_KERNEL_FRAMES as u32;

/// One turn of a loop.
pub(crate) trait Turn {
    /// Does turn number `index`, from zero; false ends the loop.
    fn turn(&mut self, index: u32) -> ControlFlow<()>;
}

/// Runs up to `turns` turns while they return true; without `bpf_loop` an ordinary loop of at most `checked` turns,
/// because the verifier goes through each of them and older ones are slow. For loops in subprograms with little code after
/// them.
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

/// Runs up to `turns` turns while they return true.
///
/// With `bpf_loop` the verifier checks one turn, however many there are, and the code after the loop once.
/// In an ordinary loop it would check every turn, and the code after it for each turn that may be the
/// last.
#[inline(always)]
pub(crate) fn repeat<T: Turn>(turns: u32, state: &mut T) {
    if config::has(Switches::PLAIN_LOOPS) {
        // Never called then, but subprograms are verified even if nothing calls them.
        return;
    }
    let callback: unsafe extern "C" fn(u32, *mut c_void) -> i64 = call::<T>;
    // SAFETY: the kernel passes `state` only to `callback`, and returns only after the last
    // call.
    unsafe { bpf_loop(turns, callback as *mut c_void, (&raw mut *state).cast(), 0) };
}

/// One turn, in the shape that `bpf_loop` calls: returns 0 to go on and 1 to stop.
unsafe extern "C" fn call<T: Turn>(index: u32, state: *mut c_void) -> i64 {
    // SAFETY: `state` is what `repeat` passed for this very `T`, alive and not borrowed elsewhere.
    let state = unsafe { &mut *state.cast::<T>() };
    i64::from(state.turn(index).is_break())
}
