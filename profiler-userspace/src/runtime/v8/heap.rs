//! Objects of V8's heap in a process that runs.
//!
//! In: references to objects, and where versions have fields. Out: fields, strings, arrays. The process runs on and moves objects
//! meanwhile: whoever reads asks for a function's check before and after.

use crate::runtime::TargetMemory;
use profiler_common::descriptor_fields;
use profiler_common::runtime::Described as _;
use profiler_common::runtime::v8::{address_of, at, integer, is_object};
use profiler_common::walk::Memory as _;

descriptor_fields! {
    /// Where fields are that only user space reads.
    pub(super) struct Layout from at::OTHERS;
    /// In a `Code`: what deoptimization needs.
    deoptimization,
    /// In a `Code`: the table of positions.
    positions,
    /// In a `Code`: where its instructions begin.
    start,
    /// In a `Code`: flags.
    flags,
    /// In a `Code`: the size of its instructions.
    size,
    /// The kind of code that the first compiler makes, of which positions tell nothing.
    baseline,
    /// In what deoptimization needs: the function.
    function,
    /// In what deoptimization needs: the calls compiled into the function.
    inlined,
    /// In what deoptimization needs: the functions of these calls.
    literals,
    /// Whether functions there are in a wrapper.
    is_wrapped,
    /// In a `BytecodeArray`: its table of positions.
    bytecode_positions,
    /// In a `BytecodeArray`: its first instruction.
    bytecode,
    /// The type of `InstructionStream`.
    instructions,
    /// The type of `Code`.
    code,
    /// The type of `BytecodeArray`.
    bytecode_type,
    /// The kind of the frames of regular expressions.
    regular_expression,
    /// The kind of the frames of WebAssembly.
    web_assembly,
}

impl Layout {
    /// Whether code and its description are one object, as before V8 11.
    pub(super) fn is_one_object(&self) -> bool {
        self.instructions == self.code
    }
}

/// How often a string refers to another before the rest is left out.
const MAX_STRINGS: usize = 64;
/// Types below are strings'; how a string is stored; and how wide its characters are (`instance-type.h`).
const FIRST_OTHER: u16 = 128;
const REPRESENTATION: u16 = 7;
const ONE_BYTE: u16 = 8;

/// The heap of a process.
#[derive(Clone, Copy)]
pub(super) struct Heap<'m> {
    pub(super) memory: &'m TargetMemory,
    pub(super) layout: Layout,
    /// As a descriptor has it: `major << 16 | minor << 8`.
    pub(super) version: u32,
}

impl<'m> Heap<'m> {
    /// That of a process whose memory is read.
    pub(super) fn new(memory: &'m TargetMemory) -> Self {
        Self {
            memory,
            layout: Layout::of(memory),
            version: (memory.descriptor(0) >> 8) as u32,
        }
    }

    /// The word at an address.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let [word] = self.memory.read(address)?;
        Some(word)
    }

    /// A field of the object that a word refers to.
    pub(super) fn field(&self, object: u64, offset: u64) -> Option<u64> {
        is_object(object).then_some(())?;
        self.word(address_of(object).checked_add(offset)?)
    }

    /// A small integer in a field.
    pub(super) fn integer(&self, object: u64, offset: u64) -> Option<u32> {
        Some(integer(self.field(object, offset)?)? as u32)
    }

    /// The type of the object that a word refers to.
    pub(super) fn type_of(&self, object: u64) -> Option<u16> {
        self.type_of_map(self.field(object, 0)?)
    }

    /// The type of the objects that have a map.
    pub(super) fn type_of_map(&self, map: u64) -> Option<u16> {
        Some((self.field(map, 8)? >> 32) as u16)
    }

    /// The elements of an array: so many bytes each, at most `most` bytes.
    pub(super) fn bytes(&self, array: u64, width: usize, most: usize) -> Option<Vec<u8>> {
        let length = self.integer(array, 8)? as usize;
        let mut bytes = vec![0; length.checked_mul(width)?.min(most)];
        self.memory
            .copy(address_of(array).checked_add(16)?, &mut bytes)?;
        Some(bytes)
    }

    /// A string of any kind; of a longer one, so many characters.
    pub(super) fn string(&self, string: u64, most: usize) -> Option<String> {
        let (mut text, mut left) = (String::new(), vec![(string, 0usize, most)]);
        for _ in 0..MAX_STRINGS {
            let Some((string, skipped, most)) = left.pop() else {
                return Some(text);
            };
            let kind = self.type_of(string)?;
            (kind < FIRST_OTHER).then_some(())?;
            let length = (self.field(string, 8)? >> 32) as usize;
            let most = most.min(length.saturating_sub(skipped));
            let address = address_of(string);
            match kind & REPRESENTATION {
                // One after the other.
                1 => {
                    let (first, second) = (self.field(string, 16)?, self.field(string, 24)?);
                    let in_first = (self.field(first, 8)? >> 32) as usize;
                    let from_first = most.min(in_first.saturating_sub(skipped));
                    left.push((second, skipped.saturating_sub(in_first), most - from_first));
                    left.push((first, skipped, from_first));
                }
                // A part of another.
                3 => {
                    let from = self.integer(string, 24)? as usize;
                    left.push((self.field(string, 16)?, skipped.saturating_add(from), most));
                }
                // Another.
                5 => left.push((self.field(string, 16)?, skipped, most)),
                stored => {
                    let characters = match stored {
                        0 => address.checked_add(16)?,
                        2 => self.field(string, 24)?,
                        _ => return None,
                    };
                    text.push_str(&self.characters(characters, kind, skipped, most)?);
                }
            }
        }
        Some(text)
    }

    /// Characters from an address on.
    fn characters(&self, address: u64, kind: u16, skipped: usize, count: usize) -> Option<String> {
        let width = if kind & ONE_BYTE != 0 { 1 } else { 2 };
        let mut bytes = vec![0; width * count];
        let from = address.checked_add((width * skipped) as u64)?;
        self.memory.copy(from, &mut bytes)?;
        if width == 1 {
            return Some(bytes.into_iter().map(char::from).collect());
        }
        let (units, _) = bytes.as_chunks();
        let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
        Some(String::from_utf16_lossy(&units))
    }

    /// The address and the kind of the characters of a string that is stored as such, and how many there are.
    pub(super) fn stored(&self, string: u64) -> Option<(u64, bool, usize)> {
        let kind = self.type_of(string)?;
        (kind < FIRST_OTHER).then_some(())?;
        let length = (self.field(string, 8)? >> 32) as usize;
        let characters = match kind & REPRESENTATION {
            0 => address_of(string).checked_add(16)?,
            2 => self.field(string, 24)?,
            // Another, or one after the other, of which the second is empty once the string was read.
            1 | 5 => {
                let other = self.field(string, 16)?;
                let is_same = (self.field(other, 8)? >> 32) as usize == length;
                return is_same.then(|| self.stored(other))?;
            }
            _ => return None,
        };
        Some((characters, kind & ONE_BYTE != 0, length))
    }
}
