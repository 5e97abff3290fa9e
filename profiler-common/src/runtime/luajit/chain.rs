//! The chain of frames on a `lua_State`'s stack, and its levels.

use super::{
    LuaJit,
    function::{Proto, proto_of, type_of},
    layout::{
        ADDRESS, FUNCTION, INSTRUCTION_BYTES, NOT_CALLED_BY_NEXT, PROTO_BYTES, STATE_WORDS, THREAD,
        at,
    },
};
use crate::runtime::{
    Begin, Chain, ChainFrame, Cursor, Described, FUNCTION_BITS, NativeFrame, Process,
    arch::luajit::{BASE, FRAME_BYTES, INSTRUCTION},
};

/// The words of the cursor.
mod word {
    /// The `lua_State`.
    pub(super) const STATE: usize = 0;
    /// The next frame: the word below its first slot. Zero if there is none.
    pub(super) const FRAME: usize = 1;
    /// The instruction behind the one that it is at; zero if that is not known.
    pub(super) const INSTRUCTION: usize = 2;
    /// Where the stack begins.
    pub(super) const STACK: usize = 3;
}

/// The kinds of frames, in the lowest bits of the word that leads to the one before (`lj_frame.h`).
mod kind {
    /// With these bits clear, the word is the address of an instruction of the caller, which is written in Lua.
    pub(super) const NOT_LUA: u64 = 3;
    /// All bits.
    pub(super) const ALL: u64 = 7;
    /// Called from C.
    pub(super) const C: u64 = 1;
    /// A continuation behind a metamethod, or behind a callback from C.
    pub(super) const CONTINUATION: u64 = 2;
    /// The function's own, below its variable arguments.
    pub(super) const VARIABLE: u64 = 3;
    /// Called from C, with errors caught.
    pub(super) const PROTECTED_C: u64 = 5;
}

/// `LJ_CONT_FFI_CALLBACK`: in the place of a continuation, a callback from C.
const CALLBACK: u64 = 1;

/// Whether an address of the object's own is in the interpreter.
#[inline(always)]
pub(super) fn is_interpreter(file: &impl Described, address: u64) -> bool {
    file.descriptor(at::LOOP) <= address && address < file.descriptor(at::LOOP + 1)
}

impl Chain for LuaJit {
    const OUTLIVES_NATIVE_FRAMES: bool = true;
    const MAKES_CODE: bool = true;

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
        is_interpreter(file, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        if native.is_any() {
            return true;
        }
        if !is_interpreter(process, native.address) {
            return false;
        }
        enter(process, cursor, native).is_some()
    }

    /// The function is a `GCproto`, the position the number of an instruction, and [`NOT_CALLED_BY_NEXT`] beside it.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        let (frame, stack) = (cursor.get(word::FRAME), cursor.get(word::STACK));
        if frame == 0 {
            return ChainFrame::none(ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS);
        }
        if frame <= stack.wrapping_add(8) {
            cursor.set(word::FRAME, 0);
            return ChainFrame::none(ChainFrame::LEVEL_ENDS);
        }
        if !process.fetch(frame.wrapping_sub(24), 32) {
            return ChainFrame::broken();
        }
        let [continuation, next, function, link] = [0, 1, 2, 3].map(|place| process.fetched(place));
        let kind = link & kind::ALL;
        let called_by_lua = link & kind::NOT_LUA == 0;
        let instruction = cursor.get(word::INSTRUCTION);
        let is_callback = kind == kind::CONTINUATION && continuation == CALLBACK;
        let ends = kind == kind::C || kind == kind::PROTECTED_C || is_callback;
        if called_by_lua {
            // The call says where its caller's frame begins: `BC_CALL` and its like have that in bits 8 to 15.
            let Some([call]) = process.read(link.wrapping_sub(INSTRUCTION_BYTES)) else {
                return ChainFrame::broken();
            };
            cursor.set(word::INSTRUCTION, link);
            cursor.set(
                word::FRAME,
                frame.wrapping_sub(8 * (2 + (call >> 8 & 0xff))),
            );
        } else {
            if kind != kind::VARIABLE {
                cursor.set(
                    word::INSTRUCTION,
                    if kind == kind::CONTINUATION && !is_callback {
                        next
                    } else {
                        0
                    },
                );
            }
            let bytes = link & 0xffff_fff8;
            cursor.set(
                word::FRAME,
                if bytes == 0 {
                    0
                } else {
                    frame.wrapping_sub(bytes)
                },
            );
        }
        let ends = if ends { ChainFrame::LEVEL_ENDS } else { 0 };
        if kind == kind::VARIABLE && !called_by_lua || function & ADDRESS == cursor.get(word::STATE)
        {
            return ChainFrame::none(ends);
        }
        show(
            process,
            function & ADDRESS,
            instruction,
            called_by_lua,
            ends,
        )
    }
}

/// Puts the level of a native frame into the cursor.
#[inline(always)]
fn enter(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> Option<()> {
    let frame = native.caller_sp.wrapping_sub(FRAME_BYTES);
    let [state, instruction] = process.read(frame.wrapping_add(16))?;
    if !process.fetch(state.wrapping_add(STATE_WORDS), 56) {
        return None;
    }
    let [head, globals, base, end, stack] = [0, 1, 3, 5, 6].map(|place| process.fetched(place));
    if head >> 8 & 0xff != THREAD {
        return None;
    }
    if cursor.get(word::STATE) == state && cursor.get(word::FRAME) != 0 {
        cursor.set(word::INSTRUCTION, instruction);
        return Some(());
    }
    let (base, instruction) =
        innermost(process, native, state, globals, (stack, end)).unwrap_or((base, instruction));
    cursor.set(word::STATE, state);
    cursor.set(word::STACK, stack);
    cursor.set(word::FRAME, base.wrapping_sub(8));
    cursor.set(word::INSTRUCTION, instruction);
    Some(())
}

/// Base and instruction, where the `lua_State` does not say them: in the interpreter's registers, or those that machine code
/// was entered with.
#[inline(always)]
fn innermost(
    process: &impl Process,
    native: &NativeFrame,
    state: u64,
    globals: u64,
    (stack, end): (u64, u64),
) -> Option<(u64, u64)> {
    if native.is_first != 0 {
        let base = process.register(BASE);
        let is_within = stack < base && base <= end && base & 7 == 0;
        let [function] = process.read(base.wrapping_sub(16)).filter(|_| is_within)?;
        let is_function = type_of(process, function & ADDRESS) == Some(FUNCTION);
        return is_function.then_some((base, process.register(INSTRUCTION)));
    }
    let place = globals.wrapping_add(process.descriptor(at::CURRENT_STATE));
    let [current, base] = process.read(place)?;
    // Where in machine code it is, no instruction says.
    (current == state && base != 0).then_some((base, 0))
}

#[inline(always)]
fn show(
    process: &impl Process,
    function: u64,
    instruction: u64,
    called_by_lua: bool,
    ends: u32,
) -> ChainFrame {
    if type_of(process, function) != Some(FUNCTION) {
        return ChainFrame::broken();
    }
    let Some(proto) = proto_of(process, function) else {
        // Written in C or in assembly.
        return ChainFrame::none(ends);
    };
    let Some(proto) = Proto::read(process, proto) else {
        return ChainFrame::broken();
    };
    let Some(check) = proto.check(process) else {
        return ChainFrame::broken();
    };
    let from = instruction.wrapping_sub(proto.address.wrapping_add(PROTO_BYTES));
    let number = if from <= proto.instructions * INSTRUCTION_BYTES {
        ((from / INSTRUCTION_BYTES) as u32).saturating_sub(1)
    } else {
        0
    };
    let mark = if called_by_lua { 0 } else { NOT_CALLED_BY_NEXT };
    ChainFrame {
        function: proto.address & FUNCTION_BITS,
        check,
        position: number | mark,
        flags: ChainFrame::FRAME | ends,
    }
}
