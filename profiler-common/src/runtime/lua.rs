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

pub use layout::{MAX_SITES, NOT_CALLED_BY_NEXT, at, site};

/// PUC Lua.
#[derive(Clone, Copy, Debug)]
pub struct Lua;

#[cfg(test)]
mod tests;
