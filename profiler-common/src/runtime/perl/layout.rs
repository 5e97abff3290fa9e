//! Contents of a descriptor of perl, and the layouts of perl's structures in 5.36 to 5.42, as
//! `offsetof` has them. Alike with and without ithreads, but for interpreter and statement's file.

use crate::runtime::DESCRIPTOR_WORDS;

/// The words of a descriptor. Addresses are the object's own.
pub mod at {
    /// The address of `PL_thr_key`; zero of a perl without ithreads.
    pub const KEY: usize = 1;
    /// A [`Libc`](crate::runtime::thread::Libc).
    pub const LIBC: usize = 2;
    /// The addresses of the loops, `Perl_runops_standard` and `Perl_runops_debug`: begin, end, begin, end.
    pub const LOOP: usize = 3;
    /// In an interpreter: `Irunops`, the address of the loop. Without ithreads the address of `PL_runops`, which has it.
    pub const RUNOPS: usize = LOOP + 4;
    /// Without ithreads, the address of `PL_op`.
    pub const OP: usize = RUNOPS + 1;
    /// Without ithreads, the address of `PL_curcop`.
    pub const STATEMENT: usize = OP + 1;
    /// Without ithreads, the address of `PL_curstackinfo`.
    pub const STACK: usize = STATEMENT + 1;
    /// The highest word in use.
    pub const LAST: usize = STACK;
}

const _: () = assert!(at::LAST < DESCRIPTOR_WORDS);

/// In an interpreter: `Iop`.
pub(super) const OP: u64 = 0x8;
/// In an interpreter: `Icurcop`, and two words later `Icurstackinfo`.
pub(super) const STATEMENT: u64 = 0xd0;

/// In a `PERL_SI`, `si_type`: the oldest.
pub(super) const MAIN: u64 = 1;
/// That of `sort`.
pub(super) const SORT: u64 = 3;
/// That of a function in C that calls a sub over and over.
pub(super) const MULTICALL: u64 = 10;
/// The highest type that is believed.
pub(super) const MAX_STACK_TYPE: u64 = 31;

/// Bytes of a `PERL_CONTEXT`.
pub(super) const CONTEXT_BYTES: u64 = 0x68;
/// The words of one, as far as they are read.
pub(super) mod context {
    /// Its lowest byte is `cx_type`.
    pub(in super::super) const KIND: usize = 0;
    /// `blk_oldcop`.
    pub(in super::super) const STATEMENT: usize = 2;
    /// `blk_sub.retop`, `blk_eval.retop`.
    pub(in super::super) const RETURNS_TO: usize = 6;
    /// `blk_sub.cv`, `blk_format.cv`.
    pub(in super::super) const SUB: usize = 9;
    /// `blk_eval.cur_top_env`.
    pub(in super::super) const TOP_ENV: usize = 12;
}
/// In `cx_type`: a code block of a pattern in the sub that runs already (`CXp_SUB_RE_FAKE`).
pub(super) const FAKE: u64 = 0x80;
/// In `cx_type` of an eval: of a block (`CXp_TRYBLOCK`).
pub(super) const BLOCK: u64 = 0x40;

/// In a `COP`: a word whose upper half is `cop_line`, and two words later `cop_file`, a C string, or without ithreads
/// `cop_filegv`.
pub(super) const COP_LINE: u64 = 0x20;

/// `SVt_PVGV`.
pub(super) const GLOB: u64 = 9;
/// `SVt_PVHV`.
pub(super) const HASH: u64 = 12;
/// `SVt_PVCV`, and behind it `SVt_PVFM`.
pub(super) const SUB: u64 = 13;
/// `SVt_PVFM`.
pub(super) const FORMAT: u64 = 14;
/// In `sv_flags` of a hash: it has a part that holds its name (`SVf_OOK`).
pub(super) const HAS_NAME: u64 = 0x0200_0000;

/// In an `XPVCV`: `xcv_stash`, with which what is read of it begins.
pub(super) const BODY: u64 = 0x20;
/// How much of it is read.
pub(super) const BODY_BYTES: u64 = 0x40;
/// The words of what is read of it.
pub(super) mod body {
    /// `xcv_stash`.
    pub(in super::super) const STASH: usize = 0;
    /// `xcv_start_u`, the first operation.
    pub(in super::super) const START: usize = 1;
    /// `xcv_gv_u`: a `GV`, or if it is named without one, a `HEK`.
    pub(in super::super) const NAME: usize = 3;
    /// `xcv_file`.
    pub(in super::super) const FILE: usize = 4;
    /// Its lower half is `xcv_outside_seq`, its upper half `xcv_flags`.
    pub(in super::super) const SEQUENCE: usize = 7;
}
/// In `xcv_flags`: the name is held without a glob (`CVf_NAMED`).
pub(super) const NAMED: u64 = 0x8000;
/// In an `XPVGV`: the name, a `HEK`, and behind it the stash.
pub(super) const GLOB_NAME: u64 = 0x20;
/// In a `GP`: `gp_egv`.
pub(super) const EFFECTIVE: u64 = 0x38;
/// In an `XPVHV_WITH_AUX`: `xhv_name_u`, the first of four words up to `xhv_name_count`.
pub(super) const STASH_NAME: u64 = 0x20;
/// In a `HEK`: its bytes, behind its hash and its length.
pub(super) const NAME_BYTES: u64 = 8;
/// Prefix of the name of a file's glob, which the file's own name lacks.
pub(super) const FILE_PREFIX: u64 = u16::from_le_bytes(*b"_<") as u64;
/// Bytes of [`FILE_PREFIX`].
pub(super) const FILE_PREFIX_BYTES: u64 = 2;
