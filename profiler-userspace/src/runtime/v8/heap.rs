//! Objects of V8's heap in a process that runs.
//!
//! In: references to objects, and where versions have fields. Out: fields, strings, arrays. The process runs on and moves objects
//! meanwhile: whoever reads asks for a function's check before and after.

use crate::runtime::TargetMemory;
use profiler_common::runtime::{Described as _, v8::at};
use profiler_common::walk::Memory as _;

/// Where fields are that only user space reads: three words of a descriptor, from [`at::OTHERS`] on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// In a `Code`: what deoptimization needs; the table of positions; where its instructions begin; flags; their size.
    pub(super) deoptimization: u8,
    pub(super) positions: u8,
    pub(super) start: u8,
    pub(super) flags: u8,
    pub(super) size: u8,
    /// The kind of code that the first compiler makes, of which positions tell nothing.
    pub(super) baseline: u8,
    /// In what deoptimization needs: the function, the calls compiled into it, and the functions of these.
    pub(super) function: u8,
    pub(super) inlined: u8,
    pub(super) literals: u8,
    /// Whether functions there are in a wrapper.
    pub(super) is_wrapped: bool,
    /// In a `BytecodeArray`: its table of positions; and its first instruction.
    pub(super) bytecode_positions: u8,
    pub(super) bytecode: u8,
    /// The type of `InstructionStream`, and that of `Code`.
    pub(super) instructions: u16,
    pub(super) code: u16,
    /// The type of `BytecodeArray`.
    pub(super) bytecode_type: u16,
    /// The kinds of frames of regular expressions, and of WebAssembly.
    pub(super) regular_expression: u8,
    pub(super) web_assembly: u8,
}

impl Layout {
    /// As words of a descriptor.
    pub(super) fn words(self) -> [u64; 3] {
        let [a, b] = self.instructions.to_le_bytes();
        let [c, d] = self.code.to_le_bytes();
        [
            u64::from_le_bytes([
                self.deoptimization,
                self.positions,
                self.start,
                self.flags,
                self.size,
                self.baseline,
                self.function,
                self.inlined,
            ]),
            u64::from_le_bytes([
                self.literals,
                self.is_wrapped.into(),
                self.bytecode_positions,
                self.bytecode,
                a,
                b,
                c,
                d,
            ]),
            u64::from(self.bytecode_type)
                | u64::from(self.regular_expression) << 16
                | u64::from(self.web_assembly) << 24,
        ]
    }

    /// Whether code and its description are one object, as before V8 11.
    pub(super) fn is_one_object(&self) -> bool {
        self.instructions == self.code
    }

    fn from_words([first, second, third]: [u64; 3]) -> Self {
        let [
            deoptimization,
            positions,
            start,
            flags,
            size,
            baseline,
            function,
            inlined,
        ] = first.to_le_bytes();
        let [
            literals,
            is_wrapped,
            bytecode_positions,
            bytecode,
            a,
            b,
            c,
            d,
        ] = second.to_le_bytes();
        Self {
            deoptimization,
            positions,
            start,
            flags,
            size,
            baseline,
            function,
            inlined,
            literals,
            is_wrapped: is_wrapped != 0,
            bytecode_positions,
            bytecode,
            instructions: u16::from_le_bytes([a, b]),
            code: u16::from_le_bytes([c, d]),
            bytecode_type: third as u16,
            regular_expression: (third >> 16) as u8,
            web_assembly: (third >> 24) as u8,
        }
    }
}

/// How often a string refers to another before the rest is left out.
const MOST_STRINGS: usize = 64;
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
        let words = [0, 1, 2].map(|place| memory.descriptor(at::OTHERS + place));
        Self {
            memory,
            layout: Layout::from_words(words),
            version: (memory.descriptor(0) >> 8) as u32,
        }
    }

    /// The word at an address.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let [word] = self.memory.read(address)?;
        Some(word)
    }

    /// Whether a word refers to an object.
    pub(super) fn is_object(word: u64) -> bool {
        word & 3 == 1
    }

    /// A field of the object that a word refers to.
    pub(super) fn field(&self, object: u64, offset: u64) -> Option<u64> {
        Self::is_object(object).then_some(())?;
        self.word((object & !3).checked_add(offset)?)
    }

    /// A small integer in a field.
    pub(super) fn integer(&self, object: u64, offset: u64) -> Option<u32> {
        let word = self.field(object, offset)?;
        (word as u32 == 0).then_some((word >> 32) as u32)
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
            .copy((array & !3).checked_add(16)?, &mut bytes)?;
        Some(bytes)
    }

    /// A string of any kind; of a longer one, so many characters.
    pub(super) fn string(&self, string: u64, most: usize) -> Option<String> {
        let (mut text, mut left) = (String::new(), vec![(string, 0usize, most)]);
        for _ in 0..MOST_STRINGS {
            let Some((string, skipped, most)) = left.pop() else {
                return Some(text);
            };
            let kind = self.type_of(string)?;
            (kind < FIRST_OTHER).then_some(())?;
            let length = (self.field(string, 8)? >> 32) as usize;
            let most = most.min(length.saturating_sub(skipped));
            let address = string & !3;
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
            0 => (string & !3).checked_add(16)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_returns_from_its_words() {
        let layout = Layout {
            deoptimization: 8,
            positions: 16,
            start: 40,
            flags: 48,
            size: 52,
            baseline: 10,
            function: 6,
            inlined: 7,
            literals: 2,
            is_wrapped: true,
            bytecode_positions: 24,
            bytecode: 64,
            instructions: 210,
            code: 206,
            bytecode_type: 264,
            regular_expression: 12,
            web_assembly: 7,
        };
        assert_eq!(Layout::from_words(layout.words()), layout);
    }
}
