//! PUC Lua 5.3 and 5.4: `CallInfo`s.
//!
//! Each call of the interpreter's loop, `luaV_execute`, is one level, which ends with the first `CallInfo` marked `CIST_FRESH`.
//! Where it begins depends on the compiler. Where the loop keeps the `CallInfo` that it runs in its native frame, or in a
//! register that the walk of native frames follows, each native frame of the loop says it. Otherwise what called the loop had
//! the `lua_State` in a register, which the loop has saved: levels are that state's, from its newest `CallInfo` on. No thread
//! state is needed, and any number of `lua_State`s may be on one stack: coroutines are.
//!
//! A coroutine that was resumed goes on in a new call of the loop, which runs on through levels that its first life had. So
//! when a level has ended and the next native frame runs none of its callers, these are shown first.
//!
//! Sources: `lstate.h`, `lobject.h`, `lvm.c`, `ldo.c` of 5.3.6 and 5.4.4.

mod call;
mod chain;
mod function;
mod layout;
mod state;

pub use layout::{MOST_SITES, NOT_CALLED_BY_NEXT, at, site};

use super::{Begin, ChainFrame, Cursor, Described, NativeFrame, Process, Runtime, Strings};

/// PUC Lua.
#[derive(Clone, Copy, Debug)]
pub struct Lua;

impl Runtime for Lua {
    const OUTLIVES_NATIVE_FRAMES: bool = true;

    #[inline(always)]
    fn begin(_: &impl Process, _: &impl Cursor, native: &NativeFrame) -> Begin {
        if native.is_any() {
            Begin::NotHere
        } else {
            Begin::Begun
        }
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        chain::may_run_level(file, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        chain::is_level(process, cursor, native)
    }

    /// The function is a `Proto`, the position the number of an instruction, and [`NOT_CALLED_BY_NEXT`] beside it.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        chain::step(process, cursor)
    }

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        function::check(process, function)
    }

    /// Only the file: functions have no names. `extra` is zero.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        function::strings(process, function)
    }
}

#[cfg(test)]
mod tests;
