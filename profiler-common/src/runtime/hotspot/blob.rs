//! Blobs of the code cache: from an address to the blob that it is in.

use super::layout::{HEAPS, Offsets, REMEMBERED, at};
use crate::runtime::{COMPILED, Process};

/// So often a map of segments leads back, at most.
const MOST_STEPS: u32 = 6;
/// A segment in which nothing is.
const FREE: u8 = 0xff;
/// The most bytes of a blob that are looked at.
const HEAD_BYTES: u64 = 120;

/// A blob.
#[derive(Clone, Copy)]
pub(super) struct Blob {
    pub(super) address: u64,
    /// Where its kind's name is; and the first eight characters of it.
    pub(super) name: u64,
    kind: u64,
    /// Words of its frames.
    pub(super) frame_words: u64,
    /// Where its code begins.
    pub(super) code: u64,
}

/// Names of kinds: compiled code, what calls native methods, and the interpreter.
const COMPILED_CODE: u64 = u64::from_le_bytes(*b"nmethod\0");
const NATIVE_METHOD: u64 = u64::from_le_bytes(*b"native n");
const INTERPRETER: u64 = u64::from_le_bytes(*b"Interpre");

impl Blob {
    /// That at an address.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        if !process.fetch(address, HEAD_BYTES) {
            return None;
        }
        let code = process.fetched_at(Offsets::code(process));
        let words = process.fetched_at(Offsets::frame_size(process)) as u32;
        let name = process.fetched_at(Offsets::blob_name(process));
        let [kind] = process.read(name)?;
        Some(Self {
            address,
            name,
            kind,
            // Never negative, but where there is none.
            frame_words: if words < 1 << 20 { u64::from(words) } else { 0 },
            code: if Offsets::is_code_near(process) != 0 {
                address.wrapping_add(u64::from(code as u32))
            } else {
                code
            },
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
        self.kind == INTERPRETER
    }

    /// The key of the function.
    #[inline(always)]
    pub(super) const fn key(&self) -> u64 {
        COMPILED | self.address
    }
}

/// The address of the blob that an address is in.
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

#[inline(always)]
fn blob_in(process: &impl Process, address: u64) -> Option<u64> {
    let (mut low, mut segments) = (0, 0);
    for heap in 0..HEAPS {
        let place = REMEMBERED + 1 + 3 * heap;
        let begin = process.remembered(place);
        if begin <= address && address < process.remembered(place + 1) {
            (low, segments) = (begin, process.remembered(place + 2));
        }
    }
    if low == 0 {
        return None;
    }
    let bits = Offsets::segment_bits(process) & 31;
    let mut segment = address.wrapping_sub(low) >> bits;
    for _ in 0..MOST_STEPS {
        let [bytes] = process.read::<1>(segments.wrapping_add(segment).wrapping_sub(7))?;
        match (bytes >> 56) as u8 {
            0 => {
                let block = low.wrapping_add(segment << bits);
                return Some(block.wrapping_add(Offsets::heap_block(process)));
            }
            FREE => return None,
            back => segment = segment.wrapping_sub(u64::from(back)),
        }
    }
    None
}

/// Reads where the process's heaps are.
#[inline(always)]
fn remember_heaps(process: &impl Process) -> Option<()> {
    process.remember(REMEMBERED, 0);
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
