//! Contents of a descriptor of PHP, and the layouts that all versions share.

use crate::runtime::DESCRIPTOR_WORDS;

/// The words of a descriptor. Addresses are the object's own, offsets are in bytes.
pub mod at {
    /// The address of `executor_globals.current_execute_data`.
    pub const CURRENT: usize = 1;
    /// In a `zend_op_array`: `opcodes`.
    pub const OPCODES: usize = 2;
    /// In a `zend_op_array`: `last`, the number of its instructions. In front of it stands `last_var`, that of its variables.
    pub const OPCODE_COUNT: usize = 3;
    /// In a `zend_op_array`: `filename`, followed by `line_start`.
    pub const FILE: usize = 4;
    /// Where the body of `execute_ex` begins, if it keeps the frame in register 14 and the instruction in register 15; zero
    /// if it keeps them elsewhere.
    pub const BODY: usize = 5;
    /// The addresses of `execute_ex` and of its cold part: begin, end, begin, end.
    pub const LOOP: usize = 6;
    /// The address of the word that holds the address of `executor_globals`; zero if [`CURRENT`] holds. A program that is
    /// linked with a libphp.so may have the library's variables in its own memory.
    pub const SLOT: usize = LOOP + 4;
    /// In a `zend_op_array`, and since 8.2 in a `zend_internal_function`: `T`, the number of its temporary values.
    pub const TEMPORARIES: usize = SLOT + 1;
    /// The highest word in use.
    pub const LAST: usize = TEMPORARIES;
}

const _: () = assert!(at::LAST < DESCRIPTOR_WORDS);

/// In `executor_globals`, in all versions that are understood: `current_execute_data`.
pub const CURRENT_EXECUTE_DATA: u64 = 488;

/// The words of a frame.
pub(super) mod frame {
    /// `opline`.
    pub(in super::super) const INSTRUCTION: usize = 0;
    /// `func`.
    pub(in super::super) const FUNCTION: usize = 3;
    /// `This.value`.
    pub(in super::super) const THIS: usize = 4;
    /// Its lower half is `This.u1.type_info`, the upper `This.u2.num_args`.
    pub(in super::super) const INFO: usize = 5;
    /// `prev_execute_data`.
    pub(in super::super) const PREVIOUS: usize = 6;
}
/// Bytes of a `zval`, and how many of them a frame takes without arguments (`ZEND_CALL_FRAME_SLOT`).
pub(super) const VALUE_BYTES: u64 = 16;
/// See [`VALUE_BYTES`].
pub(super) const FRAME_VALUES: u64 = 5;
/// How much of a frame is read.
pub(super) const FRAME_BYTES: u64 = 8 * (frame::PREVIOUS as u64 + 1);
/// In a `type_info`: the frame was called from C, by a new call of the loop if its function is written in PHP.
pub(super) const CALL_TOP: u64 = 1 << 17;
/// In a `type_info`: the frame is a generator's, in memory of its own.
pub(super) const CALL_GENERATOR: u64 = 1 << 24;

/// In a `type_info`: the type, and that of an object.
pub(super) const TYPE: u64 = 0xff;
/// See [`TYPE`].
pub(super) const OBJECT: u64 = 8;

/// In a `zend_generator`: the frame of its function.
pub(super) const GENERATOR_FRAME: u64 = 56;
/// The generator that it delegates to.
pub(super) const GENERATOR_PARENT: u64 = 152;
/// The frame without a function that stands in the chain for all that delegate to the one that runs: `execute_fake`.
pub(super) const GENERATOR_PLACEHOLDER: u64 = 184;

/// The first words of a `zend_function`: one whose lowest byte is its kind, `function_name`, `scope`.
pub(super) const FUNCTION_BYTES: u64 = 24;
/// In a `zend_function`: the word with `num_args` in its lower half.
pub(super) const PARAMETERS: usize = 4;
/// The kind: written in C.
pub(super) const INTERNAL: u64 = 1;
/// Written in PHP.
pub(super) const USER: u64 = 2;
/// The code of `eval`.
pub(super) const EVAL: u64 = 4;

/// In a `zend_op`: `lineno`.
pub(super) const OP_LINE: u64 = 24;
/// Bytes of a `zend_op`.
pub(super) const OP_BYTES: u64 = 32;

/// In a `zend_class_entry`: `name`.
pub(super) const CLASS_NAME: u64 = 8;
/// In a `zend_string`: its hash, zero if nobody has asked for it, and behind it its length.
pub(super) const STRING_HASH: u64 = 8;
/// In a `zend_string`: its bytes.
pub(super) const STRING_BYTES: u64 = 24;
