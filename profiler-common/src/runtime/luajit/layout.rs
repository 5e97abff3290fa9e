//! Contents of a descriptor of LuaJIT, and the layouts common to builds with 64-bit pointers.

use crate::runtime::DESCRIPTOR_WORDS;

pub use crate::runtime::lua::NOT_CALLED_BY_NEXT;

/// The words of a descriptor. Addresses are the object's own, offsets are in bytes.
pub mod at {
    /// The addresses of the interpreter: begin, end.
    pub const LOOP: usize = 1;
    /// In a `global_State`: `cur_L`, and behind it `jit_base`.
    pub const CURRENT_STATE: usize = 3;
    /// The highest word in use.
    pub const LAST: usize = CURRENT_STATE;
}

const _: () = assert!(at::LAST < DESCRIPTOR_WORDS);

/// The interpreter's frames lie at multiples of it.
pub(super) const FRAME_STEP: u64 = 16;
/// Of how many places above machine code's stack pointer the interpreter's frame may be at one: code spills 256 slots of four
/// bytes at most, and the fixed part has two steps.
pub(super) const MAX_FRAME_STEPS: u32 = 68;

/// In a `lua_State`: the first of the words that are read, with the type in the second byte; `glref`, `base`, `maxstack` and
/// `stack` are the second, fourth, sixth and seventh.
pub(super) const STATE_WORDS: u64 = 0x8;
/// In a `lua_State`: `cframe`, whose lowest two bits are flags.
pub(super) const STATE_FRAME: u64 = 0x50;
/// See [`STATE_FRAME`].
pub(super) const FRAME_FLAGS: u64 = 3;

/// The types of what is collected (`~LJ_TTHREAD`, `~LJ_TPROTO`, `~LJ_TFUNC`, `~LJ_TSTR`).
pub(super) const THREAD: u64 = 6;
/// See [`THREAD`].
pub(super) const PROTO: u64 = 7;
/// See [`THREAD`].
pub(super) const FUNCTION: u64 = 8;
/// See [`THREAD`].
pub(super) const STRING: u64 = 4;

/// The bits of a value that are an address (`LJ_GCVMASK`).
pub(super) const ADDRESS: u64 = (1 << 47) - 1;

/// Bytes of a `GCproto`, behind which its instructions are.
pub(super) const PROTO_BYTES: u64 = 0x68;
/// In a `GCproto`: `chunkname`, then `firstline` and `numline`, then `lineinfo`.
pub(super) const PROTO_SOURCE: u64 = 0x40;
/// In a `GCstr`: its bytes.
pub(super) const STRING_BYTES: u64 = 0x18;
/// Bytes of an instruction.
pub(super) const INSTRUCTION_BYTES: u64 = 4;
