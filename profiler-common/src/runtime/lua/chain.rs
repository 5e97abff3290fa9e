//! The chain of `CallInfo`s, and its levels.

use super::{
    Lua,
    call::Call,
    function::{self, Proto},
    layout::{INSTRUCTION_BYTES, NOT_CALLED_BY_NEXT, TAIL, at, word},
    state,
};
use crate::{
    runtime::{
        Begin, Chain, ChainFrame, Cursor, Described, FUNCTION_BITS, NativeFrame, Process,
        arch::lua::{FIRST_ARGUMENT, SECOND_ARGUMENT},
    },
    walk::arch::{FP, SAVED},
};

/// Registers that walks follow, as descriptors have them.
const SAVED_REGISTER: u64 = SAVED as u64;
/// See [`SAVED_REGISTER`].
const FRAME_POINTER: u64 = FP as u64;

impl Chain for Lua {
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
        // Where the loop's call is not followed, the native frames in front of the loop's are counted.
        !is_followed(file) || file.is_within(at::LOOP, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        if native.is_any() {
            cursor.set(word::RUNNING, 0);
            return true;
        }
        let inner = note(cursor, native);
        if !process.is_within(at::LOOP, native.address) {
            return false;
        }
        let body = process.descriptor(at::BODY);
        let begins_before = |end: u64| {
            native.is_first != 0
                && process.descriptor(at::LOOP) <= native.address
                && native.address < end
        };
        let is_entering = begins_before(body);
        let register = process.descriptor(at::CALL_REGISTER);
        let call = if !is_followed(process) {
            state::first_call(process, cursor, native, is_entering, inner)
        } else {
            let call = if is_entering {
                entered(process)
            } else {
                followed(process, native, register)
            };
            call.and_then(|call| running(process, call))
        };
        let Some(call) = call else {
            return false;
        };
        if cursor.get(word::CALL) == 0 {
            cursor.set(word::CALL, call);
        }
        cursor.set(word::RUNNING, call);
        // 5.3's loop marks its first by itself, a few instructions behind those that find it.
        if begins_before(process.descriptor(at::MARKED)) {
            cursor.set(word::UNMARKED, call);
        }
        let register = process.descriptor(at::INSTRUCTION_REGISTER);
        let is_known = native.is_first != 0 && !is_entering && register != 0;
        cursor.set(
            word::INSTRUCTION,
            if is_known {
                process.register(register.wrapping_sub(1) as u8)
            } else {
                0
            },
        );
        true
    }

    /// The function is a `Proto`, the position the number of an instruction, and [`NOT_CALLED_BY_NEXT`] beside it.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        let address = cursor.get(word::CALL);
        let running = cursor.get(word::RUNNING);
        if address == 0 {
            cursor.set(word::CALL, running);
            return ChainFrame::none(if running == 0 {
                ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS
            } else {
                0
            });
        }
        if address == running {
            cursor.set(word::RUNNING, 0);
        }
        let Some(call) = Call::read(process, address) else {
            return ChainFrame::broken();
        };
        cursor.set(word::CALL, call.previous);
        let Some(proto) = function::proto_of(process, call.function) else {
            // A function written in C, or the end of the chain.
            return ChainFrame::none(0);
        };
        let Some(proto) = Proto::read(process, proto) else {
            return ChainFrame::broken();
        };
        let instruction = if address == running {
            cursor.get(word::INSTRUCTION)
        } else {
            0
        };
        let is_fresh = call.is_fresh(process) || address == cursor.get(word::UNMARKED);
        // Callers of a coroutine's that was resumed come before the level of who resumed it.
        let has_ended = is_fresh && (address == running || running == 0);
        show(process, &call, &proto, instruction, is_fresh, has_ended)
    }
}

/// Notes a native frame of the object, and says how many there are further in, if none is of another object.
#[inline(always)]
fn note(cursor: &impl Cursor, native: &NativeFrame) -> Option<u64> {
    let inner = cursor.get(word::FOLLOWING);
    let is_followed = native.is_first != 0 || native.sp == cursor.get(word::FOLLOWED);
    if !is_followed {
        return None;
    }
    cursor.set(word::FOLLOWED, native.caller_sp);
    cursor.set(word::FOLLOWING, inner.wrapping_add(1));
    Some(inner)
}

/// The `CallInfo` that a native frame of the loop runs, where it is in a register that is followed, or in that frame.
#[inline(always)]
fn followed(process: &impl Process, native: &NativeFrame, register: u64) -> Option<u64> {
    if process.descriptor(at::CALL_IN_FRAME) == 0 {
        return native.register(process, register == SAVED_REGISTER);
    }
    let base = if register == FRAME_POINTER {
        native.register(process, false)?
    } else {
        native.sp
    };
    let [call] = process.read(base.wrapping_add(process.descriptor(at::CALL_OFFSET)))?;
    Some(call)
}

/// The `CallInfo` that the loop has just been called for.
#[inline(always)]
fn entered(process: &impl Process) -> Option<u64> {
    let place = process.descriptor(at::STATE_CALL);
    if place == 0 {
        return Some(process.register(SECOND_ARGUMENT));
    }
    let [call] = process.read(process.register(FIRST_ARGUMENT).wrapping_add(place))?;
    Some(call)
}

/// The `CallInfo` that the loop runs while it keeps this one. Where a function stood its result does when it has returned: the loop
/// then goes on with its caller, or is about to return itself if that is not its own. None, too, if there is something else for a few
/// instructions.
#[inline(always)]
fn running(process: &impl Process, address: u64) -> Option<u64> {
    if is_of_lua(process, address) {
        return Some(address);
    }
    let call = Call::read(process, address)?;
    let (previous, is_fresh) = (call.previous, call.is_fresh(process));
    let [_, _, _, next] = process.read(previous)?;
    let has_returned = next == address && !is_fresh;
    (has_returned && is_of_lua(process, previous)).then_some(previous)
}

/// Whether an address is that of a `CallInfo` of a function written in Lua.
#[inline(always)]
pub(super) fn is_of_lua(process: &impl Process, call: u64) -> bool {
    let Some([function]) = process.read(call) else {
        return false;
    };
    function::proto_of(process, function).is_some()
}

/// Whether the native walk follows what the loop keeps its call in.
#[inline(always)]
fn is_followed(file: &impl Described) -> bool {
    let register = file.descriptor(at::CALL_REGISTER);
    file.descriptor(at::CALL_IN_FRAME) != 0
        || register == SAVED_REGISTER
        || register == FRAME_POINTER
}

#[inline(always)]
fn show(
    process: &impl Process,
    call: &Call,
    proto: &Proto,
    instruction: u64,
    is_fresh: bool,
    has_ended: bool,
) -> ChainFrame {
    let ends = if has_ended { ChainFrame::LEVEL_ENDS } else { 0 };
    // The result of a function that has returned, which stands in its place, may be a function itself.
    if call.instruction.wrapping_sub(proto.code) > proto.instructions * INSTRUCTION_BYTES {
        return ChainFrame::none(ends);
    }
    let Some(check) = proto.check(process) else {
        return ChainFrame::broken();
    };
    let is_within = |instruction: u64| {
        let from = instruction.wrapping_sub(proto.code);
        from != 0 && from <= proto.instructions * INSTRUCTION_BYTES
    };
    // In Lua a `CallInfo` has its instruction whenever it calls; while it runs, only now and then.
    let next = if is_within(instruction) {
        instruction
    } else {
        call.instruction
    };
    let number = if is_within(next) {
        ((next.wrapping_sub(proto.code) / INSTRUCTION_BYTES) as u32).saturating_sub(1)
    } else {
        0
    };
    let mark = if is_fresh || call.status & TAIL != 0 {
        NOT_CALLED_BY_NEXT
    } else {
        0
    };
    ChainFrame {
        function: proto.address & FUNCTION_BITS,
        check,
        position: number | mark,
        flags: ChainFrame::FRAME | ends,
    }
}
