//! Contents of a descriptor of HotSpot.

use crate::{descriptor_fields, runtime::REMEMBERED_WORDS};

/// The words of a descriptor. Addresses are the object's own.
pub mod at {
    /// The address of `CodeCache::_heaps`.
    pub const HEAPS: usize = 1;
    /// The address of `StubRoutines::_call_stub_return_address`.
    pub const CALL_STUB: usize = 2;
    /// Where fields are: [`Offsets`](super::Offsets).
    pub const OFFSETS: usize = 3;
}

/// The key of the stub with which C++ enters Java.
pub const CALL_STUB: u64 = 1;

descriptor_fields! {
    /// Where fields are, in bytes, and sizes.
    pub struct Offsets from at::OFFSETS;
    /// In a `GrowableArray`: its elements; their number is at its beginning.
    elements,
    /// In a `CodeHeap`: where its memory begins; the word behind says where it ends.
    heap_memory,
    /// In a `CodeHeap`: the map of its segments.
    heap_segments,
    /// The logarithm of the bytes of a segment.
    segment_bits,
    /// Bytes in front of a blob.
    heap_block,
    /// In front of a blob: the segments of its block, as 32 bits, and whether it is in use.
    block_length,
    /// See `block_length`.
    block_used,
    /// In a `CodeBlob`: its kind's name.
    blob_name,
    /// In a `CodeBlob`: the words of its frames, as `int`.
    frame_size,
    /// In a `CodeBlob`: from which instruction on there is a frame.
    frame_complete,
    /// Whether that has 16 bits instead of 32.
    is_frame_complete_short,
    /// In a `CodeBlob`: its code.
    code,
    /// Whether that is a distance of 32 bits from the blob, instead of an address.
    is_code_near,
    /// In an `nmethod`: its `Method`.
    method,
    /// In an `nmethod`: its number.
    compile_id,
    /// In a `Method`: its `ConstMethod`.
    const_method,
    /// Bytes of a `ConstMethod`, behind which its bytecodes are.
    const_method_bytes,
    /// In a `ConstMethod`: its `ConstantPool`.
    constants,
    /// In a `ConstMethod`: the number of its name among the constants.
    name_index,
    /// Bytes of a `ConstantPool`, behind which the constants are.
    constant_pool_bytes,
    /// In a `ConstantPool`: its class.
    pool_holder,
    /// In a `ConstantPool`: the number of its file's name among the constants.
    file_index,
    /// In a `Klass`: its name.
    class_name,
    /// In a `Symbol`: its length, and its characters.
    symbol_length,
    /// See `symbol_length`.
    symbol_body,
    /// In an `nmethod`: where descriptions of its instructions begin and end, as the version has it.
    descriptions,
    /// See `descriptions`.
    descriptions_end,
    /// In an `nmethod`: the scopes that they refer to.
    scopes,
    /// In an `nmethod`: methods that scopes refer to.
    metadata,
    /// In an `nmethod`: what is behind it in memory of its own since 23; zero before.
    immutable_data,
    /// In a `CodeBlob`: its data that change, and the bytes of relocations there, since 25; zero before.
    mutable_data,
    /// See `mutable_data`.
    relocation_bytes,
    /// Bytes of a description (`PcDesc`).
    description_bytes,
    /// In a `ConstMethod`: its flags, its size in words, and the bytes of its bytecodes.
    const_method_flags,
    /// See `const_method_flags`.
    const_method_words,
    /// See `const_method_flags`.
    code_bytes,
}

/// Words that are remembered: whose heaps they are, and of each heap its begin, its end and its map of segments.
pub(super) const REMEMBERED: usize = 5;
/// Heaps of a code cache, at most.
pub(super) const HEAPS: usize = 3;
/// The word that remembers where the name of compiled code is.
pub(super) const COMPILED_NAME: usize = REMEMBERED + 1 + 3 * HEAPS;

/// The words that remember the block of the interpreter, and where its kind's name is.
pub(super) const INTERPRETER: usize = COMPILED_NAME + 1;
pub(super) const INTERPRETER_NAME: usize = COMPILED_NAME + 2;

const _: () = assert!(INTERPRETER_NAME < REMEMBERED_WORDS);
