//! CPython 3.8 to 3.14: `PyFrameObject`s, and since 3.11 `_PyInterpreterFrame`s.
//!
//! A thread's `PyThreadState` is the value of the key that `_PyRuntime` holds (`autoTSSkey`). From there lead the frames. Each
//! call of the interpreter's loop, `_PyEval_EvalFrameDefault`, is one level, and since 3.10 the runtime keeps a pointer to
//! something in the loop's own native frame ([`Shape`]), so a level belongs to the native frame that this address lies in,
//! whatever its code is called.
//!
//! Sources: `Include/cpython/pystate.h`, `Include/internal/pycore_frame.h`, `Include/cpython/code.h`, `Python/ceval.c` of each
//! version; since 3.13, `Include/internal/pycore_debug_offsets.h`.

mod chain;
mod code;
mod layout;
mod level;
mod outer;
mod seen;

pub use layout::{CODE_BEGIN, FREE_THREADED_HEAD, Shape, at};

use super::{Begin, ChainFrame, Cursor, Described, NativeFrame, Process, Runtime, Strings};

/// CPython.
#[derive(Clone, Copy, Debug)]
pub struct CPython;

impl Runtime for CPython {
    const BOUNDARY: Option<usize> = Some(chain::BOUNDARY);

    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, _: &NativeFrame) -> Begin {
        chain::begin(process, cursor)
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        chain::may_run_level(file, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        chain::is_level(process, cursor, native)
    }

    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        chain::step(process, cursor)
    }

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        code::check(process, function)
    }

    /// `extra` is zero: the line table is found from the function.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        code::strings(process, function)
    }
}

#[cfg(test)]
mod tests;
