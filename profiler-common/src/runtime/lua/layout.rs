//! What a descriptor of PUC Lua says, and what 5.3 and 5.4 have in common.

use crate::runtime::DESCRIPTOR_WORDS;

/// The words of a descriptor. Addresses are the object's own, offsets are in bytes.
pub mod at {
    /// The addresses of `luaV_execute` and of its cold part: begin, end, begin, end.
    pub const LOOP: usize = 1;
    /// From where on the loop keeps its `CallInfo` in its register.
    pub const BODY: usize = 5;
    /// That register, by its DWARF number: one that the walk follows.
    pub const CALL_REGISTER: usize = 6;
    /// The register of the next instruction, by its DWARF number and one more; zero if it is kept in the `CallInfo` only.
    pub const INSTRUCTION_REGISTER: usize = 7;
    /// In a `lua_State`: `ci`, if the loop is called with a `lua_State` alone; zero if the `CallInfo` is its second argument.
    pub const STATE_CALL: usize = 8;
    /// In a `CallInfo`: `u.l.savedpc`, which word it is.
    pub const CALL_INSTRUCTION: usize = 9;
    /// In a `CallInfo`: the word with `callstatus`.
    pub const CALL_STATUS: usize = 10;
    /// By how many bits `callstatus` is to be shifted right.
    pub const STATUS_SHIFT: usize = 11;
    /// `CIST_FRESH`.
    pub const FRESH: usize = 12;
    /// The type of a `Proto`.
    pub const PROTO_TYPE: usize = 13;
    /// In a `Proto`: `code`, which word it is.
    pub const PROTO_CODE: usize = 14;
    /// In a `Proto`: by how many bits word 5 is to be shifted right for `linedefined`.
    pub const LINE_SHIFT: usize = 15;
    /// In a `Proto`: `source`.
    pub const PROTO_SOURCE: usize = 16;
    /// The highest word in use.
    pub const LAST: usize = PROTO_SOURCE;
}

const _: () = assert!(at::LAST < DESCRIPTOR_WORDS);

/// In a position: the function of the next frame did not call this one by the instruction that it is at. A function in C did, or
/// it was a tail call, so that the caller is gone.
pub const NOT_CALLED_BY_NEXT: u32 = 1 << 31;

/// `CIST_TAIL`.
pub(super) const TAIL: u64 = 1 << 5;

/// The type of a value that is a function written in Lua, which is collected (`LUA_TLCL`, `BIT_ISCOLLECTABLE`).
pub(super) const LUA_FUNCTION: u64 = 0x46;
/// The type in a function's own head.
pub(super) const CLOSURE: u64 = 6;
/// The type of strings of up to 40 bytes, which have a hash, and of longer ones (`LUA_TSHRSTR`, `LUA_TLNGSTR`).
pub(super) const SHORT_STRING: u64 = 4;
/// See [`SHORT_STRING`].
pub(super) const LONG_STRING: u64 = 0x14;
/// In a string: its bytes.
pub(super) const STRING_BYTES: u64 = 24;
/// Bytes of an instruction.
pub(super) const INSTRUCTION_BYTES: u64 = 4;
