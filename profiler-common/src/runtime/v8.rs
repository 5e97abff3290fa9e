//! V8, as in Node 18 to 26: frames on the native stack, each with its function beside its frame pointer.
//!
//! All code keeps frame pointers, whether the interpreter, a compiler or a builtin made the frame. Below the frame pointer lie the
//! context, or in its place what kind of frame it is where that has no function, and the function. The interpreter and the
//! builtins are code of V8's file, which is mapped a second time near the code that the compilers make.
//!
//! A function of the interpreter's is told by its `SharedFunctionInfo`, which all closures of one function literal share. The
//! collector may move it; then it is another function to the kernel half, of the same name. Compiled code has other functions in it,
//! so that is told by the function and stretches of code.
//!
//! Sources: `frame-constants.h`, each machine's `frame-constants-….h`, `js-function.tq`, `shared-function-info.tq`, `scope-info.tq`, `string.h`
//! and `script.tq` of V8 10.2, 11.3, 12.4, 13.6 and 14.6.

mod closure;
mod code;
mod frame;
mod function;
mod layout;
mod scope;
mod string;

pub use code::check_in_stretch;
pub use function::{NAME_GOES_ON, name_of, script_of, start_of};
pub use layout::{
    KINDS_OF_FRAMES, Offsets, SCRIPT_ID, SCRIPT_NAME, STRETCH_BYTES, Types, address_of, at,
    integer, is_object,
};

/// V8.
#[derive(Clone, Copy, Debug)]
pub struct V8;

#[cfg(test)]
mod tests;
