//! Blobs of the code cache: from an address to the blob that it is in.

use super::layout::{COMPILED_NAME, HEAPS, INTERPRETER, INTERPRETER_NAME, Offsets, REMEMBERED, at};
use crate::runtime::{COMPILED, Process};

/// So often a map of segments leads back, at most.
const MAX_STEPS: u32 = 6;
/// Bytes of the interpreter, at most. That of Java 17 has 95 KiB.
const MAX_INTERPRETER: u64 = 4 << 20;
/// A segment in which nothing is.
const FREE: u8 = 0xff;

/// A blob.
#[derive(Clone, Copy)]
pub(super) struct Blob {
    pub(super) address: u64,
    /// Where its kind's name is; and the first eight characters of it.
    pub(super) name: u64,
    kind: u64,
    /// Words of its frames.
    pub(super) frame_words: u64,
    /// From which instruction on there is a frame, in bytes.
    pub(super) frame_complete: u64,
    /// Where its code begins.
    pub(super) code: u64,
    /// The number that the compiler gave it, if it is a method's.
    pub(super) compile_id: u32,
}

/// Names of kinds: compiled code, what calls native methods, the interpreter; and what jumps to a virtual method, to that of a
/// handle, and between the interpreter and compiled code.
const COMPILED_CODE: u64 = u64::from_le_bytes(*b"nmethod\0");
const NATIVE_METHOD: u64 = u64::from_le_bytes(*b"native n");
const INTERPRETER_CODE: u64 = u64::from_le_bytes(*b"Interpre");
const VTABLE: u64 = u64::from_le_bytes(*b"vtable c");
const METHOD_HANDLES: u64 = u64::from_le_bytes(*b"MethodHa");
const ADAPTERS: u64 = u64::from_le_bytes(*b"I2C/C2I ");
/// The way of exceptions from compiled code to its caller (`OptoRuntime::generate_exception_blob`).
const EXCEPTION: u64 = u64::from_le_bytes(*b"Exceptio");

/// In place of where a frame is complete: never, as is said of blobs that stop threads (`CodeOffsets::frame_never_safe`).
const NEVER: u64 = u32::MAX as u64;
const NEVER_SHORT: u64 = u16::MAX as u64;

impl Blob {
    /// That at an address.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        let block = address.wrapping_sub(Offsets::heap_block(process));
        fetch(process, block).then_some(())?;
        Self::fetched(process, address)
    }

    /// That at an address, whose block was fetched last.
    #[inline(always)]
    pub(super) fn fetched(process: &impl Process, address: u64) -> Option<Self> {
        let field = |offset: u64| process.fetched_at(Offsets::heap_block(process) + offset);
        let code = field(Offsets::code(process));
        let words = field(Offsets::frame_size(process)) as u32;
        let complete = field(Offsets::frame_complete(process));
        let name = field(Offsets::blob_name(process));
        let compile_id = field(Offsets::compile_id(process)) as u32;
        Some(Self {
            address,
            name,
            kind: kind(process, name)?,
            // Never negative, but where there is none.
            frame_words: if words < 1 << 20 { u64::from(words) } else { 0 },
            frame_complete: if Offsets::is_frame_complete_short(process) != 0 {
                u64::from(complete as u16)
            } else {
                u64::from(complete as u32)
            },
            code: if Offsets::is_code_near(process) != 0 {
                address.wrapping_add(u64::from(code as u32))
            } else {
                code
            },
            compile_id,
        })
    }

    /// Whether it is a method's.
    #[inline(always)]
    pub(super) fn is_method(&self) -> bool {
        self.kind == COMPILED_CODE || self.kind == NATIVE_METHOD
    }

    /// Whether it is the interpreter.
    #[inline(always)]
    pub(super) fn is_interpreter(&self) -> bool {
        self.kind == INTERPRETER_CODE
    }

    /// Remembers this one as the interpreter. That has thousands of segments, so the map of segments leads to its beginning in many
    /// steps; and it never moves.
    #[inline(always)]
    pub(super) fn remember_interpreter(&self, process: &impl Process) {
        let block = self.address.wrapping_sub(Offsets::heap_block(process));
        process.remember(INTERPRETER, block);
        process.remember(INTERPRETER_NAME, self.name);
    }

    /// Whether it jumps to a method without a frame of its own (each machine's `vtableStubs_….cpp`, `methodHandles_….cpp` and
    /// `sharedRuntime_….cpp`).
    #[inline(always)]
    pub(super) fn is_jump(&self) -> bool {
        let links = self.is_method() && self.frame_words == 0;
        links || self.kind == VTABLE || self.kind == METHOD_HANDLES || self.kind == ADAPTERS
    }

    /// Whether it is the exception blob.
    #[inline(always)]
    pub(super) fn is_exception(&self) -> bool {
        self.kind == EXCEPTION
    }

    /// Whether an address is behind the prologue. Blobs that stop threads do not say where that ends: all of them counts.
    #[inline(always)]
    pub(super) fn is_past_prologue(&self, address: u64) -> bool {
        let complete = self.frame_complete;
        let is_never = complete == NEVER || complete == NEVER_SHORT;
        is_never && !self.is_method() || address.wrapping_sub(self.code) >= complete
    }

    /// The key of the function.
    #[inline(always)]
    pub(super) const fn key(&self) -> u64 {
        COMPILED | self.address
    }
}

/// The first characters of a kind's name. Most are of compiled code and the interpreter: where their names are, is remembered.
#[inline(always)]
fn kind(process: &impl Process, name: u64) -> Option<u64> {
    if name != 0 && process.remembered(COMPILED_NAME) == name {
        return Some(COMPILED_CODE);
    }
    if name != 0 && process.remembered(INTERPRETER_NAME) == name {
        return Some(INTERPRETER_CODE);
    }
    let [kind] = process.read(name)?;
    if kind == COMPILED_CODE {
        process.remember(COMPILED_NAME, name);
    }
    Some(kind)
}

/// Fetches a block: what the heap says of it and the beginning of its blob. A stub at the end of a heap is shorter than a method's.
#[inline(always)]
fn fetch(process: &impl Process, block: u64) -> bool {
    let bytes = |field: u64| Offsets::heap_block(process) + field + 8;
    process.fetch(block, bytes(Offsets::compile_id(process)))
        || process.fetch(block, bytes(Offsets::blob_name(process)))
}

/// The address of the blob that an address is in. Fetches its block.
#[inline(always)]
pub(super) fn blob_at(process: &impl Process, address: u64) -> Option<u64> {
    if process.remembered(REMEMBERED) != process.bias() {
        remember_heaps(process)?;
    }
    if let Some(blob) = blob_in(process, address) {
        return Some(blob);
    }
    // Of another process, or from before there were heaps.
    remember_heaps(process)?;
    blob_in(process, address)
}

/// Where the heap begins that an address is in, and its map of segments. Heaps were remembered.
#[inline(always)]
fn heap_of(process: &impl Process, address: u64) -> Option<(u64, u64)> {
    let (mut low, mut segments) = (0, 0);
    for heap in 0..HEAPS {
        let place = REMEMBERED + 1 + 3 * heap;
        let begin = process.remembered(place);
        if begin <= address && address < process.remembered(place + 1) {
            (low, segments) = (begin, process.remembered(place + 2));
        }
    }
    (low != 0).then_some((low, segments))
}

/// Whether an address is in one of the heaps of the process in which a blob was found last.
#[inline(always)]
pub(super) fn is_in_heap(process: &impl Process, address: u64) -> bool {
    heap_of(process, address).is_some()
}

#[inline(always)]
fn blob_in(process: &impl Process, address: u64) -> Option<u64> {
    let (low, segments) = heap_of(process, address)?;
    let bits = Offsets::segment_bits(process) & 31;
    let known = process.remembered(INTERPRETER);
    let into = address.wrapping_sub(known);
    if known != 0
        && into < MAX_INTERPRETER
        && fetch(process, known)
        && covers(process, into >> bits)
    {
        let blob = Offsets::heap_block(process);
        // Of another process, something else may be there.
        let name = process.fetched_at(blob + Offsets::blob_name(process));
        if name == process.remembered(INTERPRETER_NAME) {
            return Some(known.wrapping_add(blob));
        }
    }
    let segment = address.wrapping_sub(low) >> bits;
    let mut first = segment;
    for _ in 0..MAX_STEPS {
        let [bytes] = process.read::<1>(segments.wrapping_add(first).wrapping_sub(7))?;
        match (bytes >> 56) as u8 {
            FREE => return None,
            back => first = first.wrapping_sub(u64::from(back)),
        }
        // A segment leads back to the block's beginning, unless that is far: the block says itself whether it is one.
        let block = low.wrapping_add(first << bits);
        if fetch(process, block) && covers(process, segment.wrapping_sub(first)) {
            return Some(block.wrapping_add(Offsets::heap_block(process)));
        }
    }
    None
}

/// Whether the block that was fetched is in use, and has so many segments and more.
#[inline(always)]
fn covers(process: &impl Process, segments: u64) -> bool {
    let length = process.fetched_at(Offsets::block_length(process)) as u32;
    let is_used = process.fetched_at(Offsets::block_used(process)) as u8;
    is_used == 1 && segments < u64::from(length)
}

/// Reads where the process's heaps are.
#[inline(always)]
fn remember_heaps(process: &impl Process) -> Option<()> {
    process.remember(REMEMBERED, 0);
    process.remember(COMPILED_NAME, 0);
    process.remember(INTERPRETER, 0);
    process.remember(INTERPRETER_NAME, 0);
    let variable = process.bias().wrapping_add(process.descriptor(at::HEAPS));
    let [heaps] = process.read(variable)?;
    let [count] = process.read(heaps)?;
    let [array] = process.read(heaps.wrapping_add(Offsets::elements(process)))?;
    for heap in 0..HEAPS {
        let place = REMEMBERED + 1 + 3 * heap;
        process.remember(place + 1, 0);
        if heap as u64 >= count & 0xffff_ffff {
            continue;
        }
        let [heap] = process.read(array.wrapping_add(8 * heap as u64))?;
        let [low, high] = process.read(heap.wrapping_add(Offsets::heap_memory(process)))?;
        let [segments] = process.read(heap.wrapping_add(Offsets::heap_segments(process)))?;
        process.remember(place, low);
        process.remember(place + 1, high);
        process.remember(place + 2, segments);
    }
    process.remember(REMEMBERED, process.bias());
    Some(())
}
