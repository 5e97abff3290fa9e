//! Contents of a descriptor of Ruby, and the layouts of Ruby 3.1 to 3.3.

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
    /// Where classes keep their paths: a [`ClassPath`](super::ClassPath).
    pub const CLASS_PATH: usize = 16;
    /// Of [`ClassPath::Variable`](super::ClassPath::Variable): the address of `rb_cObject`.
    pub const OBJECT: usize = 17;
    /// In a body: `local_iseq`; zero if that is not known.
    pub const LOCAL: usize = 18;
    /// Of the same: the address of the word that holds the address of `rb_cObject`, in a library; otherwise zero. A program that
    /// uses the variable itself has the library's in its own memory.
    pub const OBJECT_SLOT: usize = 19;
    /// The highest word in use.
    pub const LAST: usize = OBJECT_SLOT;
}

/// How a thread's variables are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Access {
    /// They are the executable's.
    Executable = 0,
    /// They are a library's, whose number the dynamic linker writes into it (a relocation of the kind `DTPMOD`).
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

/// Where classes keep their paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ClassPath {
    /// It is not known: methods are shown without their classes.
    Unknown = 0,
    /// 3.1: among their variables, in a table of their own.
    Variable = 1,
    /// 3.3: in the class itself.
    Field = 2,
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
/// The dummy frame that a thread begins with.
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
    /// How much is read: up to `local_iseq`, whose place differs.
    pub(in super::super) const BYTES: u64 = 8 * 23;
}

/// In the word that `ep` of a frame points to: the frame is a method's, or of whatever else has variables of its own.
pub(super) const LOCAL: u64 = 2;
/// The bits of the word in front of it that are no address of the enclosing frame's `ep`.
pub(super) const PREVIOUS_MARKS: u64 = 3;

/// In the flags of an object of the runtime's own: which one (`IMEMO_MASK`), and its type.
pub(super) const OWN_TYPE: u64 = 0xf << 12 | TYPE;
/// A `vm_svar`, which keeps what stood in its place.
pub(super) const SPECIAL_VARIABLES: u64 = 2 << 12 | 0x1a;
/// A `rb_callable_method_entry_t`: flags, `defined_class`, `def`, `called_id`, `owner`.
pub(super) const METHOD_ENTRY: u64 = 6 << 12 | 0x1a;

/// In the first word of a `rb_method_definition_t`: its type, which is zero of a method written in Ruby. Then come `iseqptr`
/// and `cref`.
pub(super) const DEFINITION_TYPE: u64 = 0xf;
/// In 3.1: how many other entries have the definition (`alias_count`).
pub(super) const ALIASES_OF_3_1: u64 = 0xffff_ffe0;
/// In 3.3: whether another entry has the definition (`aliased`).
pub(super) const ALIASED: u64 = 1 << 6;
/// In a `rb_cref_t`: its class.
pub(super) const CREF_CLASS: u64 = 16;

/// A class.
pub(super) const CLASS: u64 = 2;
/// A module.
pub(super) const MODULE: u64 = 3;
/// In the flags of a class: it is the singleton class of an object.
pub(super) const SINGLETON: u64 = 1 << 12;
/// In 3.1, in an `rb_classext_t`: the table of variables.
pub(super) const VARIABLES: u64 = 8;
/// In an `st_table`: `entries_bound`, then the entries, of three words: hash, key, value.
pub(super) const TABLE_BOUND: u64 = 40;
/// In 3.3: the object of a singleton class.
pub(super) const ATTACHED: u64 = 128;
/// In 3.3: a word with whether the path is permanent, then the path.
pub(super) const PATH: u64 = 144;
/// In that word.
pub(super) const IS_PERMANENT: u64 = 1 << 40;

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
