//! Contents of a descriptor of V8, and the layouts common to builds without compressed pointers.

use crate::{
    descriptor_fields,
    runtime::{Process, REMEMBERED_WORDS},
};

/// The words of a descriptor. Addresses are the object's own, offsets are in bytes.
pub mod at {
    /// The addresses of the builtins' code: begin, end.
    pub const BUILTINS: usize = 1;
    /// Types of objects: [`Types`](super::Types).
    pub const TYPES: usize = 3;
    /// Where fields are: [`Offsets`](super::Offsets).
    pub const OFFSETS: usize = 4;
    /// From here on, what user space alone reads.
    pub const OTHERS: usize = OFFSETS + super::Offsets::WORDS;
}

descriptor_fields! {
    /// Numbers of the types of objects, as maps have them.
    pub struct Types from at::TYPES;
    /// The first type of functions.
    first_function,
    /// The last type of functions.
    last_function,
    /// `SharedFunctionInfo`.
    shared,
    /// `ScopeInfo`.
    scope,
}

descriptor_fields! {
    /// Where fields are that versions have at different places.
    pub struct Offsets from at::OFFSETS;
    /// In a `JSFunction`: its `SharedFunctionInfo`. Below [`FUNCTION_BYTES`] - 7.
    shared,
    /// In a `SharedFunctionInfo`: its name, or a `ScopeInfo` that may have one. All below [`SHARED_BYTES`].
    name,
    /// In a `SharedFunctionInfo`: its script.
    script,
    /// In a `SharedFunctionInfo`: the number of its literal in the script, in 32 bits.
    literal,
    /// In a `SharedFunctionInfo`: its number among all, in 32 bits; zero before V8 12.
    unique,
    /// In a `ScopeInfo`: the first name of a local variable, in words.
    first_local,
}

/// Keys below are kinds of frames: generated code that runs no function, such as that of a regular expression.
pub const KINDS_OF_FRAMES: u64 = 64;
/// Bytes of a stretch of compiled code. With [`COMPILED`](crate::runtime::COMPILED), a key is its address, and a position a place in it;
/// otherwise a key is the address of a `SharedFunctionInfo`, and a position an offset in bytecode.
pub const STRETCH_BYTES: u64 = 256;

/// Which remembered words have maps of functions, and those of `SharedFunctionInfo`s: the first, and how many.
pub(super) const FUNCTION_MAPS: (usize, usize) = (0, 4);
/// See [`FUNCTION_MAPS`].
pub(super) const SHARED_MAPS: (usize, usize) = (4, 1);

const _: () = assert!(SHARED_MAPS.0 + SHARED_MAPS.1 <= REMEMBERED_WORDS);

/// Bytes of a `JSFunction` that are read.
pub(super) const FUNCTION_BYTES: u64 = 40;
/// Bytes of a `SharedFunctionInfo` that are read.
pub(super) const SHARED_BYTES: u64 = 72;

/// Below a frame pointer: the offset in the bytecode, and behind it the bytecode, the number of arguments, the function and the
/// context (`InterpreterFrameConstants`).
pub(super) const FRAME_WORDS_BELOW: u64 = 40;
/// Below a frame pointer: the function, and behind it the context.
pub(super) const FUNCTION_BELOW: u64 = 16;

/// From the roots of the isolate to one of the addresses of builtins: the table of these lies around it in all versions.
pub(super) const SOME_BUILTIN: u64 = 0x7000;

/// In a map: a word with the type of its objects in bits 32–47.
pub(super) const MAP_TYPE: u64 = 8;
/// In a `Script`: its name.
pub const SCRIPT_NAME: u64 = 16;
/// In a `Script`: its number, as a small integer.
pub const SCRIPT_ID: u64 = 64;

/// The names of so many local variables are in a table of their own (`kScopeInfoMaxInlinedLocalNamesSize`).
pub(super) const MANY_LOCALS: u64 = 75;

/// Whether a word refers to an object, not weakly: bits 0 and 1 (`kHeapObjectTag`).
#[inline(always)]
pub const fn is_object(word: u64) -> bool {
    word & 3 == 1
}

/// The address of an object that a word refers to.
#[inline(always)]
pub const fn address_of(word: u64) -> u64 {
    word & !3
}

/// The value of a small integer; none if it is no such (`kSmiShiftSize`).
#[inline(always)]
pub const fn integer(word: u64) -> Option<u64> {
    if word as u32 == 0 {
        Some(word >> 32)
    } else {
        None
    }
}

/// Whether a map is of objects whose type is within these. Maps that were are remembered, in one of the words from `first` on, of
/// which there are a power of two.
#[inline(always)]
pub(super) fn is_of_types(
    process: &impl Process,
    map: u64,
    types: (u64, u64),
    (first, words): (usize, usize),
) -> bool {
    // Maps lie at multiples of eight.
    let place = first + ((map >> 3) as usize & (words - 1));
    if process.remembered(place) == map {
        return is_object(map);
    }
    let is_it = type_of_map(process, map).is_some_and(|kind| types.0 <= kind && kind <= types.1);
    if is_it {
        process.remember(place, map);
    }
    is_it
}

/// The number of the type of the object that has this map.
#[inline(always)]
pub(super) fn type_of_map(memory: &impl crate::walk::Memory, map: u64) -> Option<u64> {
    if !is_object(map) {
        return None;
    }
    let [word] = memory.read(address_of(map).wrapping_add(MAP_TYPE))?;
    Some(word >> 32 & 0xffff)
}
