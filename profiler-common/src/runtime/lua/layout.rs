//! Contents of a descriptor of PUC Lua, and the layouts that 5.3 and 5.4 have in common.

use crate::runtime::DESCRIPTOR_WORDS;

/// The words of a descriptor. Addresses are the object's own, offsets are in bytes.
pub mod at {
    /// The addresses of `luaV_execute` and of its cold part: begin, end, begin, end.
    pub const LOOP: usize = 1;
    /// From where on the loop keeps its `CallInfo` where the next words say.
    pub const BODY: usize = 5;
    /// The register of the `CallInfo`, by its DWARF number; or of the address that [`CALL_OFFSET`] is added to.
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
    /// 1 if the loop keeps its `CallInfo` in its native frame, else 0.
    pub const CALL_IN_FRAME: usize = 17;
    /// Where in the native frame: from the stack pointer or the frame pointer.
    pub const CALL_OFFSET: usize = 18;
    /// From where on the loop has saved its caller's registers.
    pub const SAVED: usize = 19;
    /// Where the loop has saved its caller's frame pointer: from its caller's stack pointer.
    pub const SAVED_FP: usize = 20;
    /// From where on the loop has marked the `CallInfo` that it was called for with [`FRESH`]; zero if that is done before the call.
    pub const MARKED: usize = 21;
    /// How many words follow that say where the loop returns to, and where its `lua_State` is then: as [`site`](super::site)
    /// has it.
    pub const SITES: usize = 22;
    /// The first of these.
    pub const FIRST_SITE: usize = 23;
    /// The highest word in use.
    pub const LAST: usize = FIRST_SITE + super::MAX_SITES - 1;
}

const _: () = assert!(at::LAST < DESCRIPTOR_WORDS);

/// The most places that a descriptor can say the loop is called from.
pub const MAX_SITES: usize = 41;

/// The word that says of an address that the loop returns to that the `lua_State` is so many bytes, a multiple of eight, from
/// the stack pointer behind the return; or if `is_by_fp`, from the frame
/// pointer. None if the numbers do not fit.
pub const fn site(returns_to: u64, offset: i64, is_by_fp: bool) -> Option<u64> {
    if returns_to >> 48 != 0 || offset as i16 as i64 != offset || offset % 8 != 0 {
        return None;
    }
    Some(returns_to << 16 | offset as u16 as u64 | is_by_fp as u64)
}

/// In a `lua_State`: the word whose lowest byte is its type.
pub(super) const STATE_TYPE: u64 = 8;
/// The type of a `lua_State` (`LUA_TTHREAD`).
pub(super) const STATE: u64 = 8;
/// In a `lua_State`: `ci`, as a word of what begins with [`STATE_TYPE`].
pub(super) const STATE_NEWEST: usize = 3;
/// In a `CallInfo`: `next`, as a word.
pub(super) const NEXT: usize = 3;

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

/// The words of the cursor.
pub(super) mod word {
    /// The next `CallInfo`; zero if there is none.
    pub(in super::super) const CALL: usize = 0;
    /// The `CallInfo` that the native frame of the loop runs; zero once it was come to.
    pub(in super::super) const RUNNING: usize = 1;
    /// The instruction behind the one that it is at; zero if the `CallInfo` says it.
    pub(in super::super) const INSTRUCTION: usize = 2;
    /// The `lua_State` whose levels were shown last; zero if there is none.
    pub(in super::super) const STATE: usize = 3;
    /// Up to which stack pointer native frames of the object follow each other from the innermost.
    pub(in super::super) const FOLLOWED: usize = 4;
    /// The `CallInfo` that the loop has not marked yet.
    pub(in super::super) const UNMARKED: usize = 5;
    /// How many native frames of the object these are.
    pub(in super::super) const FOLLOWING: usize = 6;
    /// Whether the innermost native frame of the loop is about to return.
    pub(in super::super) const LEFT: usize = 7;
}
