//! LuaJIT 2.1 with 64-bit pointers (GC64): frames on a `lua_State`'s stack.
//!
//! The interpreter is written in assembly, and keeps a native frame of 80 bytes for each of its calls, whose second and third
//! words are the `lua_State` and the next instruction. Each is one level. The `lua_State` says in turn where that native frame
//! is (`cframe`), so that one is known by the other. Coroutines lie above each other in the same way.
//!
//! Machine code has no unwind rows. It runs in the native frame of the interpreter that it was entered from, somewhat below:
//! the `lua_State` tells it, and the walk goes on from there.
//!
//! Sources: `lj_obj.h`, `lj_frame.h`, `vm_x64.dasc`, `lj_debug.c` of the version of 20 March 2022, and OpenResty's of 19 January
//! 2023.

mod chain;
mod function;
mod layout;
mod machine_code;

pub use layout::{NOT_CALLED_BY_NEXT, at};

/// LuaJIT.
#[derive(Clone, Copy, Debug)]
pub struct LuaJit;

#[cfg(test)]
mod tests;
