//! Which line each instruction of a code object is of.
//!
//! In: the tables of bytes that the compiler leaves in a code object: `co_lnotab` (3.8, 3.9; `Objects/lnotab_notes.txt` of
//! these versions), `co_linetable` of 3.10 (the same file), `co_linetable` since 3.11 (`Objects/locations.md`, later
//! `InternalDocs/code_objects.md`). Out: pairs of an end in bytes and a line. A table that makes no sense ends early.

use crate::process::FunctionLines;
use crate::runtime::TargetMemory;
use profiler_common::runtime::Described as _;
use profiler_common::runtime::cpython::at;
use profiler_common::walk::Memory as _;

/// The longest table that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// In a bytes object: its length, and where its bytes begin. Where objects have longer heads, [`at::HEAD_MORE`] comes on top.
const LENGTH: u64 = 16;
const BYTES: u64 = 32;

/// The lines of a code object.
pub(in crate::runtime) fn lines(memory: &TargetMemory, code: u64) -> FunctionLines {
    read(memory, code).map_or(FunctionLines::None, FunctionLines::Table)
}

fn read(memory: &TargetMemory, code: u64) -> Option<Box<[(u32, u32)]>> {
    let minor = (memory.descriptor(0) >> 16) as u8;
    let strings = code.wrapping_add(memory.descriptor(at::CODE_STRINGS));
    // Behind file, name, and since 3.11 the qualified name.
    let [table] = memory.read(strings.wrapping_add(if minor >= 11 { 24 } else { 16 }))?;
    let [first] = memory.read(code.wrapping_add(memory.descriptor(at::CODE_FIRST_LINE)))?;
    let table = table.wrapping_add(memory.descriptor(at::HEAD_MORE));
    let [length] = memory.read(table.wrapping_add(LENGTH))?;
    if length > MAX_BYTES {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    memory.copy(table.wrapping_add(BYTES), &mut bytes)?;
    let first = i64::from(first as u32 as i32);
    Some(match minor {
        ..=9 => increments(&bytes, first),
        10 => ranges(&bytes, first),
        _ => locations(&bytes, first),
    })
}

/// Entries while they come in, none for lines that are the same.
struct Entries {
    all: Vec<(u32, u32)>,
}

impl Entries {
    fn push(&mut self, end: u64, line: i64) {
        let (Ok(end), line) = (u32::try_from(end), u32::try_from(line).unwrap_or(0)) else {
            return;
        };
        match self.all.last_mut() {
            Some((last, same)) if *same == line => *last = end,
            _ => self.all.push((end, line)),
        }
    }

    fn into_table(self) -> Box<[(u32, u32)]> {
        self.all.into()
    }
}

/// Pairs of bytes: how many bytes further the next line begins, and by how much its number is larger.
fn increments(table: &[u8], first: i64) -> Box<[(u32, u32)]> {
    let mut entries = Entries { all: Vec::new() };
    let (mut address, mut line) = (0u64, first);
    for pair in table.chunks_exact(2) {
        if pair[0] != 0 {
            address += u64::from(pair[0]);
            entries.push(address, line);
        }
        line += i64::from(pair[1] as i8);
    }
    entries.push(u64::from(u32::MAX), line);
    entries.into_table()
}

/// Pairs of bytes: the length of a range, and by how much its line's number is larger; -128 is a range without a line.
fn ranges(table: &[u8], first: i64) -> Box<[(u32, u32)]> {
    let mut entries = Entries { all: Vec::new() };
    let (mut address, mut line) = (0u64, first);
    for pair in table.chunks_exact(2) {
        let step = pair[1] as i8;
        address += u64::from(pair[0]);
        if step == i8::MIN {
            entries.push(address, 0);
        } else {
            line += i64::from(step);
            if pair[0] != 0 {
                entries.push(address, line);
            }
        }
    }
    entries.into_table()
}

/// Entries of a first byte with kind and length in instructions, and what the kind asks for.
fn locations(table: &[u8], first: i64) -> Box<[(u32, u32)]> {
    let mut entries = Entries { all: Vec::new() };
    let (mut address, mut line) = (0u64, first);
    let mut bytes = table.iter().copied();
    while let Some(byte) = bytes.next() {
        let (kind, instructions) = (byte >> 3 & 15, u64::from(byte & 7) + 1);
        address += 2 * instructions;
        let shown = match kind {
            15 => 0,
            14 => {
                line += signed(&mut bytes);
                for _ in 0..3 {
                    unsigned(&mut bytes);
                }
                line
            }
            13 => {
                line += signed(&mut bytes);
                line
            }
            10..=12 => {
                line += i64::from(kind) - 10;
                bytes.nth(1);
                line
            }
            _ => {
                bytes.next();
                line
            }
        };
        entries.push(address, shown);
    }
    entries.into_table()
}

/// Six bits a byte, the lowest first; the seventh says that more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let (mut number, mut shift) = (0u64, 0);
    for byte in bytes {
        if shift < 60 {
            number |= u64::from(byte & 63) << shift;
        }
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
    }
    number
}

/// The sign is the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> i64 {
    let number = unsigned(bytes);
    let magnitude = (number >> 1) as i64;
    if number & 1 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_of_3_8_become_lines() {
        // From the documentation's example: addresses 0, 6, 50 with lines 1, 2, 7.
        let table = [6, 1, 44, 5];
        assert_eq!(*increments(&table, 1), [(6, 1), (50, 2), (u32::MAX, 7)]);
        // A line that goes back, and a step of more than 255 bytes.
        let table = [4, 0xff, 255, 0, 3, 2];
        assert_eq!(*increments(&table, 5), [(4, 5), (262, 4), (u32::MAX, 6)]);
    }

    #[test]
    fn ranges_of_3_10_become_lines() {
        let table = [6, 0, 4, 1, 2, 0x80, 8, 0xff];
        assert_eq!(*ranges(&table, 3), [(6, 3), (10, 4), (12, 0), (20, 3)]);
    }

    #[test]
    fn locations_of_3_11_become_lines() {
        // No line for one instruction, one line more in two, the same in one, three back in one.
        let table = [0xf8, 0xd9, 0, 4, 0x80, 0x10, 0xe8, 0x07];
        assert_eq!(*locations(&table, 10), [(2, 0), (8, 11), (10, 8)]);
    }

    #[test]
    fn broken_tables_end() {
        for length in 0..64 {
            let table: Vec<u8> = (0..length).map(|byte: u8| byte.wrapping_mul(97)).collect();
            increments(&table, 1);
            ranges(&table, -5);
            locations(&table, i64::from(i32::MAX));
        }
        assert_eq!(unsigned(&mut [255; 40].into_iter()), (1 << 60) - 1);
    }
}
