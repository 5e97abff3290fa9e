//! The function of a frame: what lies below its frame pointer.

use super::{
    V8,
    closure::shared_of_function,
    function::Shared,
    layout::{FRAME_WORDS_BELOW, at, integer, is_object},
};
use crate::runtime::{
    ChainFrame, Described, FrameFunction, NativeFrame, Process,
    arch::v8::{BYTECODE, OFFSET},
};

impl FrameFunction for V8 {
    #[inline(always)]
    fn may_have_function(file: &impl Described, address: u64) -> bool {
        file.descriptor(at::BUILTINS) <= address && address < file.descriptor(at::BUILTINS + 1)
    }

    /// The interpreter's frames. What builtins in JavaScript are called, their code says.
    #[inline(always)]
    fn function_in(process: &impl Process, native: &NativeFrame) -> Option<ChainFrame> {
        if !Self::may_have_function(process, native.address) {
            return None;
        }
        let fp = native.register(process, false)?;
        // Of code that has no frame, it is the caller's.
        if fp < native.sp || fp >= native.caller_sp {
            return None;
        }
        let [offset, bytecode, _, function, context] =
            process.read_upward::<5>(fp.wrapping_sub(FRAME_WORDS_BELOW))?;
        let shared = shared_of(process, function, context)?;
        // While the interpreter runs, the offset in its frame is that of the last call.
        let is_in_registers = native.is_first != 0 && process.register(BYTECODE) == bytecode;
        let position = if is_in_registers {
            process.register(OFFSET)
        } else {
            integer(offset)?
        };
        Some(shared.frame(position as u32))
    }
}

/// The function of a frame, by the two words below its frame pointer; none if it has none of the program's.
#[inline(always)]
pub(super) fn shared_of(process: &impl Process, function: u64, context: u64) -> Option<Shared> {
    // A frame of another kind has a small integer in the context's place.
    if !is_object(context) {
        return None;
    }
    let shared = shared_of_function(process, function)?;
    Shared::read(process, shared)
}
