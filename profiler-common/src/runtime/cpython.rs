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

/// CPython.
#[derive(Clone, Copy, Debug)]
pub struct CPython;

#[cfg(test)]
mod tests;
