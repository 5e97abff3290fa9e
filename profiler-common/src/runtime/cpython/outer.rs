//! Interpreters that run each other in one thread: a thread has a `PyThreadState` in each.
//!
//! In: the thread pointer, which is what `thread_id` holds (`PyThread_get_thread_ident`, `Python/thread_pthread.h`). Out: the
//! innermost state, and when its frames end, that of an interpreter that runs it. Up to 3.11 the thread's key holds the outermost
//! state, and the runtime knows which one runs. Since 3.12 the key holds the one that runs; the others are searched in the lists
//! of the interpreters that are older. Never: a loop, for a search takes one look at each step along the chain.

use super::{
    layout::at,
    level::{self, word},
};
use crate::runtime::{
    ChainFrame, Cursor, Process,
    thread::{self, Libc},
};

/// In a thread state: `next` and `interp` (all versions).
const NEXT: u64 = 8;
const INTERPRETER: u64 = 16;

/// The outer state's turn has come: see [`word::STATE`].
const TURN: u64 = 1;

/// In place of an interpreter: the frames of a state have ended.
const LEFT: u64 = 1;

/// Nothing comes next.
const ENDS: u32 = ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS;

/// The innermost of the thread's states.
#[inline(always)]
pub(super) fn innermost(process: &impl Process, cursor: &impl Cursor) -> Option<u64> {
    let before = process.descriptor(at::RUNNING_BEFORE_KEY);
    let key = process.bias().wrapping_add(process.descriptor(at::KEY));
    if !process.fetch(key.wrapping_sub(before), before.wrapping_add(8)) {
        return None;
    }
    let (running, key) = (process.fetched(0), process.fetched_at(before));
    if key & 0xffff_ffff == 0 {
        return None;
    }
    let libc = Libc::from_word(process.descriptor(at::LIBC));
    let state = thread::specific(process, libc, key >> 32)?;
    if before == 0 {
        cursor.set(word::STATE, state);
        return Some(state);
    }
    // Another thread's, unless it has two.
    if running != state && is_of_thread(process, running) {
        cursor.set(word::STATE, state);
        return Some(running);
    }
    Some(state)
}

/// Whether a state is the thread's.
#[inline(always)]
fn is_of_thread(process: &impl Process, state: u64) -> bool {
    let place = state.wrapping_add(process.descriptor(at::THREAD_ID));
    let id = word_at(process, place);
    id != 0 && id == process.thread_pointer()
}

/// The flags of a step behind which a state has no more frames: the chain ends, or [`search`] comes next.
#[inline(always)]
pub(super) fn leave_state(process: &impl Process, cursor: &impl Cursor) -> u32 {
    let state = cursor.get(word::STATE);
    if is_outer_known(process) {
        let is_outermost = state == 0 || state & TURN != 0;
        cursor.set(word::STATE, if is_outermost { 0 } else { state | TURN });
        return if is_outermost { ENDS } else { 0 };
    }
    // The first interpreter and its first thread's state are parts of the runtime.
    if !is_searched(process) || is_in_runtime(process, state) {
        return ENDS;
    }
    cursor.set(word::INTERPRETER, LEFT);
    cursor.set(word::OUTER, 0);
    0
}

/// Whether the key holds the outermost state, and the runtime knows which one runs.
#[inline(always)]
fn is_outer_known(process: &impl Process) -> bool {
    process.descriptor(at::RUNNING_BEFORE_KEY) != 0
}

/// Whether outer states are searched.
#[inline(always)]
fn is_searched(process: &impl Process) -> bool {
    process.descriptor(at::RUNTIME_BYTES) != 0
}

/// Puts the innermost level of a state into the cursor, if it has frames. One that runs nothing may be left of the interpreter's
/// making.
#[inline(always)]
fn has_frames(process: &impl Process, cursor: &impl Cursor, state: u64) -> bool {
    level::enter(process, cursor, state).is_some() && cursor.get(word::FRAME) != 0
}

/// Takes one look at where an outer state may be; none if there is nothing to search for.
#[inline(always)]
pub(super) fn search(process: &impl Process, cursor: &impl Cursor) -> Option<ChainFrame> {
    let is_known = is_outer_known(process);
    if !is_known && !is_searched(process) {
        return None;
    }
    let place = if is_known {
        word::STATE
    } else {
        word::INTERPRETER
    };
    let searched = cursor.get(place);
    let is_searching = if is_known {
        searched & TURN != 0
    } else {
        searched != 0
    };
    if !is_searching {
        return None;
    }
    let state = if is_known {
        searched & !TURN
    } else {
        cursor.get(word::OUTER)
    };
    let flags = if state != 0 {
        look_at_state(process, cursor, is_known, state)
    } else {
        look_at_interpreter(process, cursor, searched)
    };
    if flags != 0 {
        cursor.set(place, 0);
    }
    if flags == ChainFrame::LEVEL_ENDS && !is_known {
        cursor.set(word::STATE, state);
    }
    Some(ChainFrame::none(flags))
}

/// Goes on with the frames of a state, if it is the thread's and has any.
#[inline(always)]
fn look_at_state(process: &impl Process, cursor: &impl Cursor, is_known: bool, state: u64) -> u32 {
    if !is_known {
        cursor.set(word::OUTER, word_at(process, state.wrapping_add(NEXT)));
    }
    let is_it = is_known || is_of_thread(process, state);
    if is_it && has_frames(process, cursor, state) {
        return ChainFrame::LEVEL_ENDS;
    }
    if is_known { ENDS } else { 0 }
}

/// Goes on to the interpreter that the state is of, or to the one that is older than the last.
#[inline(always)]
fn look_at_interpreter(process: &impl Process, cursor: &impl Cursor, interpreter: u64) -> u32 {
    if interpreter == LEFT {
        let state = cursor.get(word::STATE);
        let own = word_at(process, state.wrapping_add(INTERPRETER));
        cursor.set(word::INTERPRETER, own);
        // The first interpreter runs in no other.
        return if own == 0 || is_in_runtime(process, own) {
            ENDS
        } else {
            0
        };
    }
    let place = interpreter.wrapping_add(process.descriptor(at::INTERPRETER_NEXT));
    let older = word_at(process, place);
    if older == 0 {
        return ENDS;
    }
    let place = older.wrapping_add(process.descriptor(at::INTERPRETER_THREADS));
    cursor.set(word::INTERPRETER, older);
    cursor.set(word::OUTER, word_at(process, place));
    0
}

#[inline(always)]
fn is_in_runtime(process: &impl Process, address: u64) -> bool {
    let begin = process.bias().wrapping_add(process.descriptor(at::RUNTIME));
    address.wrapping_sub(begin) < process.descriptor(at::RUNTIME_BYTES)
}

/// Zero if it cannot be read.
#[inline(always)]
fn word_at(process: &impl Process, place: u64) -> u64 {
    let [word] = process.read(place).unwrap_or([0]);
    word
}
