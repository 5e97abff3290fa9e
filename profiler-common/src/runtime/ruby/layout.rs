//! What a descriptor of Ruby says, and the layouts of Ruby 3.1 to 3.3.

use crate::runtime::DESCRIPTOR_WORDS;

/// The words of a descriptor. Addresses are the object's own.
pub mod at {
    /// A [`Libc`](crate::runtime::thread::Libc).
    pub const LIBC: usize = 1;
    /// How a thread's variables are found: an [`Access`](super::Access).
    pub const ACCESS: usize = 2;
    /// Of [`Access::Module`](super::Access::Module): the address of the word with the module's number. Of
    /// [`Access::Executable`](super::Access::Executable): how far `ruby_current_ec` lies below the thread pointer.
    pub const PLACE: usize = 3;
    /// Of [`Access::Module`](super::Access::Module): where `ruby_current_ec` lies in the module's block.
    pub const OFFSET: usize = 4;
    /// The addresses of `rb_vm_exec` and of its cold part: begin, end, begin, end.
    pub const EXECUTE: usize = 5;
    /// The same of `vm_exec_core`; zeros if that is part of `rb_vm_exec`.
    pub const LOOP: usize = 9;
    /// Where the body of `vm_exec_core` begins, if it keeps the frame in register 15 and the instruction in register 14; zero
    /// if it keeps them elsewhere.
    pub const BODY: usize = 13;
    /// Where strings keep their length: a [`Length`](super::Length).
    pub const LENGTH: usize = 14;
    /// Bytes of an `rb_control_frame_t`.
    pub const FRAME_BYTES: usize = 15;
    /// The highest word in use.
    pub const LAST: usize = FRAME_BYTES;
}

/// How a thread's variables are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Access {
    /// They are the executable's.
    Executable = 0,
    /// They are a library's, whose number the dynamic linker writes into it (`R_X86_64_DTPMOD64`).
    Module = 1,
}

/// Where strings keep their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Length {
    /// 3.1: those whose bytes follow in their flags, and other ones in front of the bytes' address. A function's first line is
    /// an object of Ruby's.
    InFlags = 0,
    /// Since 3.2: in front of the bytes or their address. A function's first line is a number.
    InFront = 1,
}

const _: () = assert!(at::LAST < DESCRIPTOR_WORDS);

/// The words of an `rb_control_frame_t`, as far as they are read: `pc`, `iseq`, `ep`.
pub(super) mod frame {
    /// `pc`.
    pub(in super::super) const INSTRUCTION: usize = 0;
    /// `iseq`.
    pub(in super::super) const ISEQ: usize = 2;
    /// `ep`.
    pub(in super::super) const ENVIRONMENT: usize = 4;
    /// How much is read.
    pub(in super::super) const BYTES: u64 = 8 * (ENVIRONMENT as u64 + 1);
}

/// In the word that `ep` of a frame points to: which kind of frame it is.
pub(super) const KIND: u64 = 0x7fff_0001;
/// A function written in C.
pub(super) const C_FUNCTION: u64 = 0x5555_0001;
/// A block written in C.
pub(super) const C_BLOCK: u64 = 0x6666_0001;
/// What a thread begins with.
pub(super) const DUMMY: u64 = 0x7999_0001;
/// It is the outermost frame of its level.
pub(super) const FINISH: u64 = 0x20;

/// In an `rb_iseq_t`: its body.
pub(super) const ISEQ_BODY: u64 = 16;
/// The words of a body, as far as they are read.
pub(super) mod body {
    /// Its code.
    pub(in super::super) const CODE: usize = 1;
    /// Of its `rb_iseq_location_t`: `pathobj`.
    pub(in super::super) const PATH: usize = 8;
    /// `label`.
    pub(in super::super) const LABEL: usize = 10;
    /// `first_lineno`.
    pub(in super::super) const LINE: usize = 11;
    /// How much is read.
    pub(in super::super) const BYTES: u64 = 8 * (LINE as u64 + 1);
}

/// In the flags of an object: which type it is.
pub(super) const TYPE: u64 = 0x1f;
/// A string.
pub(super) const STRING: u64 = 5;
/// An array.
pub(super) const ARRAY: u64 = 7;
/// In the flags of a string: its bytes are elsewhere. Otherwise they follow, and in 3.1 bits 14 to 18 are their number.
pub(super) const NOT_EMBEDDED: u64 = 1 << 13;
/// In the flags of an array: its elements follow.
pub(super) const ARRAY_EMBEDDED: u64 = 1 << 13;
