//! Where a level begins if only the `lua_State` is known: at its newest `CallInfo`, or behind the level that was last.
//!
//! A loop that is about to return, or that is just called, has no level, whatever the `lua_State` says. For the innermost
//! native frame of the loop the register that holds its `CallInfo` decides: its value now, or what the function that the loop
//! called has saved of it.

use super::{
    call::Call,
    layout::{MAX_SITES, STATE, STATE_NEWEST, STATE_TYPE, at, word},
};
use crate::runtime::{Cursor, NativeFrame, Process, arch::lua::FIRST_ARGUMENT};
use core::hint::black_box;

/// Registers that a function may save, which are the words below its return address.
const SAVED: usize = 6;

/// A bit of [`word::LEFT`]: the innermost loop's register holds the state's newest `CallInfo`, or the one before.
const RUNS: u64 = 2;
/// A bit of [`word::LEFT`]: that register holds the `CallInfo` behind the newest, which has returned.
const RETURNED: u64 = 4;

/// How many functions of the object are further in while a call returns: `luaD_poscall` and `moveresults`.
const RETURNING: u64 = 2;

/// No address: the chain is marked as broken there.
const UNKNOWN: u64 = 1;

/// The `CallInfo` with which the level of a native frame of the loop begins; none if it runs none. `inner` is how many native
/// frames are further in, if all are of the object.
#[inline(always)]
pub(super) fn first_call(
    process: &impl Process,
    cursor: &impl Cursor,
    native: &NativeFrame,
    is_entering: bool,
    inner: Option<u64>,
) -> Option<u64> {
    let Some((state, newest)) = state_of(process, native, is_entering) else {
        cursor.set(word::CALL, UNKNOWN);
        return Some(UNKNOWN);
    };
    let last = cursor.get(word::STATE);
    if state == last {
        let call = cursor.get(word::CALL);
        return (call != 0).then_some(call);
    }
    let is_innermost = last == 0 && cursor.get(word::LEFT) == 0;
    let first = if is_innermost && !is_entering {
        first_running(process, cursor, native, newest, inner)
    } else {
        Some(newest)
    };
    if first.is_some() {
        cursor.set(word::STATE, state);
    } else {
        cursor.set(word::LEFT, 1);
    }
    first
}

/// The `lua_State` that a native frame of the loop runs, and the newest `CallInfo` of that.
#[inline(always)]
fn state_of(process: &impl Process, native: &NativeFrame, is_entering: bool) -> Option<(u64, u64)> {
    let has_saved = !is_entering || native.address >= process.descriptor(at::SAVED);
    let state = if has_saved {
        saved_state(process, native.caller_sp)?
    } else {
        process.register(FIRST_ARGUMENT)
    };
    Some((state, newest_call(process, state)?))
}

/// The `lua_State` of the loop that returns to a native frame with this stack pointer.
#[inline(always)]
fn saved_state(process: &impl Process, caller_sp: u64) -> Option<u64> {
    let [returns_to] = process.read(caller_sp.wrapping_sub(8))?;
    let returns_to = returns_to.wrapping_sub(process.bias());
    let sites = process.descriptor(at::SITES);
    let mut found = 0;
    for place in 0..MAX_SITES {
        // Hidden from the compiler, which would count by the number of sites, of which the verifier knows nothing.
        let place = black_box(place);
        if place as u64 >= sites {
            return None;
        }
        let site = process.descriptor(at::FIRST_SITE + place);
        if site >> 16 == returns_to {
            found = site;
            break;
        }
    }
    if found == 0 {
        return None;
    }
    let base = if found & 1 == 0 {
        caller_sp
    } else {
        let [fp] = process.read(caller_sp.wrapping_add(process.descriptor(at::SAVED_FP)))?;
        fp
    };
    let offset = i64::from(found as i16 & !7);
    let [state] = process.read(base.wrapping_add_signed(offset))?;
    Some(state)
}

/// The newest `CallInfo` of a `lua_State`.
#[inline(always)]
fn newest_call(process: &impl Process, state: u64) -> Option<u64> {
    let words: [u64; STATE_NEWEST + 1] = process.read(state.wrapping_add(STATE_TYPE))?;
    (words[0] & 0xff == STATE).then_some(words[STATE_NEWEST])
}

/// The first `CallInfo` that the innermost native frame of the loop runs; none if its last has returned.
#[inline(always)]
fn first_running(
    process: &impl Process,
    cursor: &impl Cursor,
    native: &NativeFrame,
    newest: u64,
    inner: Option<u64>,
) -> Option<u64> {
    let call = Call::read(process, newest)?;
    if inner.is_some_and(|inner| inner <= RETURNING)
        && has_left(process, cursor, native, newest, &call)
    {
        return None;
    }
    // One that C code called is marked before the loop runs it.
    let is_to_come = !call.is_fresh(process) && call.is_of_lua(process) && {
        let caller = Call::read(process, call.previous)?;
        !caller.is_of_lua(process)
    };
    Some(if is_to_come { call.previous } else { newest })
}

/// Whether what the loop was called for has returned: the loop still has it, and the state has its caller.
#[inline(always)]
fn has_left(
    process: &impl Process,
    cursor: &impl Cursor,
    native: &NativeFrame,
    newest: u64,
    call: &Call,
) -> bool {
    let register = process.register(process.descriptor(at::CALL_REGISTER) as u8);
    // Noted in the cursor, since the verifier goes through every combination of what is noted elsewhere.
    let note = |word: u64| {
        // It may just have called the newest.
        if word == newest || word == call.previous {
            cursor.set(word::LEFT, cursor.get(word::LEFT) | RUNS);
        }
        if word == call.next {
            cursor.set(word::LEFT, cursor.get(word::LEFT) | RETURNED);
        }
    };
    note(register);
    if native.is_first != 0 {
        // If it has neither, it has restored its caller's registers.
        cursor.set(word::LEFT, cursor.get(word::LEFT) | RETURNED);
    } else {
        let below = native.sp.wrapping_sub(8 + 8 * SAVED as u64);
        let Some(saved) = process.read::<SAVED>(below) else {
            return false;
        };
        for word in saved {
            note(word);
        }
    }
    let noted = cursor.get(word::LEFT);
    cursor.set(word::LEFT, 0);
    noted == RETURNED && Call::read(process, call.next).is_some_and(|next| next.is_fresh(process))
}
