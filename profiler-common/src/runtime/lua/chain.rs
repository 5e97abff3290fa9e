//! The chain of `CallInfo`s, and its levels.

use super::{
    function::{self, Proto},
    layout::{INSTRUCTION_BYTES, NOT_CALLED_BY_NEXT, TAIL, at},
};
use crate::runtime::{CHECK_BITS, ChainFrame, Cursor, FUNCTION_BITS, NativeFrame, Process};

/// The words of the cursor.
mod word {
    /// The next `CallInfo`; zero if there is none.
    pub(super) const CALL: usize = 0;
    /// The `CallInfo` that the native frame of the loop runs; zero once it was come to.
    pub(super) const RUNNING: usize = 1;
    /// The instruction behind the one that it is at; zero if the `CallInfo` says it.
    pub(super) const INSTRUCTION: usize = 2;
}

/// Registers by their DWARF numbers: the first two arguments of a function.
const FIRST_ARGUMENT: u8 = 5;
const SECOND_ARGUMENT: u8 = 4;
/// rbx; otherwise rbp is meant.
const RBX: u64 = 3;

/// See [`Runtime::is_level`](crate::runtime::Runtime::is_level).
#[inline(always)]
pub(super) fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
    if native.is_any() {
        cursor.set(word::RUNNING, 0);
        return true;
    }
    if !is_in_loop(process, native.address) {
        return false;
    }
    let body = process.descriptor(at::BODY);
    let is_entering = native.is_first != 0
        && process.descriptor(at::LOOP) <= native.address
        && native.address < body;
    let call = if is_entering {
        entered(process)
    } else {
        native.register(process, process.descriptor(at::CALL_REGISTER) == RBX)
    };
    let Some(call) = call.filter(|call| is_of_lua(process, *call)) else {
        // About to return, or the register has something else for a few instructions.
        return false;
    };
    if cursor.get(word::CALL) == 0 {
        cursor.set(word::CALL, call);
    }
    cursor.set(word::RUNNING, call);
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

#[inline(always)]
fn is_in_loop(process: &impl Process, address: u64) -> bool {
    let within = |first: usize| {
        process.descriptor(first) <= address && address < process.descriptor(first + 1)
    };
    within(at::LOOP) || within(at::LOOP + 2)
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

/// Whether an address is that of a `CallInfo` of a function written in Lua.
#[inline(always)]
fn is_of_lua(process: &impl Process, call: u64) -> bool {
    let Some([function]) = process.read(call) else {
        return false;
    };
    function::proto_of(process, function).is_some()
}

/// See [`Runtime::step`](crate::runtime::Runtime::step).
#[inline(always)]
pub(super) fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
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
    // Callers of a coroutine's that was resumed come before the level of who resumed it.
    let has_ended =
        call.status & process.descriptor(at::FRESH) != 0 && (address == running || running == 0);
    show(process, &call, &proto, instruction, has_ended)
}

#[inline(always)]
fn show(
    process: &impl Process,
    call: &Call,
    proto: &Proto,
    instruction: u64,
    has_ended: bool,
) -> ChainFrame {
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
    let unnamed = TAIL | process.descriptor(at::FRESH);
    let mark = if call.status & unnamed != 0 {
        NOT_CALLED_BY_NEXT
    } else {
        0
    };
    let ends = if has_ended { ChainFrame::LEVEL_ENDS } else { 0 };
    ChainFrame {
        function: proto.address & FUNCTION_BITS,
        check: check & CHECK_BITS,
        position: number | mark,
        flags: ChainFrame::FRAME | ends,
    }
}

/// A `CallInfo`.
struct Call {
    function: u64,
    previous: u64,
    /// The instruction behind the one that was saved last; of functions written in C, anything.
    instruction: u64,
    status: u64,
}

impl Call {
    #[inline(always)]
    fn read(process: &impl Process, address: u64) -> Option<Self> {
        // `callstatus` is last.
        let place = process.descriptor(at::CALL_STATUS);
        if !process.fetch(address, place.wrapping_add(8)) {
            return None;
        }
        Some(Self {
            function: process.fetched(0),
            previous: process.fetched(2),
            instruction: process.fetched(process.descriptor(at::CALL_INSTRUCTION) as usize),
            status: process.fetched_at(place) >> (process.descriptor(at::STATUS_SHIFT) & 63)
                & 0xffff,
        })
    }
}
