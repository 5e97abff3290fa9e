//! Lines of methods: which line of its file a bytecode is of.
//!
//! In: a method. Out: lines by the numbers of bytecodes. HotSpot keeps the class file's table behind the bytecodes, packed: a byte for
//! two small distances, or a mark and two numbers (`CompressedLineNumberReadStream` in `methodCounters` and `method.cpp`).

use super::scopes::{least_digit, unsigned};
use crate::process::FunctionLines;
use crate::runtime::TargetMemory;
use profiler_common::runtime::hotspot::Offsets;
use profiler_common::walk::Memory as _;

/// A method has a table of lines: the lowest flag (`constMethodFlags.hpp`, `constMethod.hpp`).
const HAS_LINES: u64 = 1;
/// The most bytes of a table.
const MAX_BYTES: u64 = 1 << 18;
/// Most `ConstMethod`s have no more bytes.
const DEFAULT_BYTES: u64 = 256;
/// Instead of two small distances, two numbers follow.
const LARGE: u8 = 0xff;

/// The lines of a method, by the numbers of its bytecodes; none if its class file has none.
pub(super) fn lines(memory: &TargetMemory, method: u64) -> FunctionLines {
    read(memory, method).map_or(FunctionLines::None, FunctionLines::Table)
}

/// Where they are read, beside the method itself: its `ConstMethod`, which ends with them.
pub(super) fn places(memory: &TargetMemory, method: u64) -> impl Iterator<Item = u64> {
    let offset = Offsets::of(memory).const_method;
    let constant = memory.read(method.wrapping_add(offset.into()));
    constant
        .into_iter()
        .flat_map(|[constant]| [constant, constant.wrapping_add(DEFAULT_BYTES)])
}

fn read(memory: &TargetMemory, method: u64) -> Option<Box<[(u32, u32)]>> {
    let offsets = Offsets::of(memory);
    let word = |address: u64, offset: u16| {
        let [word] = memory.read(address.checked_add(offset.into())?)?;
        Some(word)
    };
    let constant = word(method, offsets.const_method)?;
    (word(constant, offsets.const_method_flags)? & HAS_LINES != 0).then_some(())?;
    let bytecodes = word(constant, offsets.code_bytes)? & 0xffff;
    let words = u64::from(word(constant, offsets.const_method_words)? as u32);
    let start = u64::from(offsets.const_method_bytes) + bytecodes;
    let bytes = words.checked_mul(8)?.checked_sub(start)?.min(MAX_BYTES);
    let mut table = vec![0; usize::try_from(bytes).ok()?];
    memory.copy(constant.checked_add(start)?, &mut table)?;
    Some(decode(&table, bytecodes as u32, least_digit(memory)))
}

/// A table of a method with so many bytes of bytecodes. What makes no sense ends it.
fn decode(mut table: &[u8], bytecodes: u32, least: u8) -> Box<[(u32, u32)]> {
    let (mut lines, mut bytecode, mut line) = (Vec::new(), 0u32, 0u32);
    while let Some((&first, rest)) = table.split_first() {
        table = rest;
        let distances = match first {
            0 => break,
            LARGE => signed(&mut table, least).zip(signed(&mut table, least)),
            _ => Some((i32::from(first >> 3), i32::from(first & 7))),
        };
        let Some((forward, down)) = distances else {
            break;
        };
        let (Some(next), Some(new)) = (
            bytecode.checked_add_signed(forward),
            line.checked_add_signed(down),
        ) else {
            break;
        };
        if next > bytecodes {
            break;
        }
        // The one before ends here.
        lines.push((next, line));
        (bytecode, line) = (next, new);
    }
    if !lines.is_empty() {
        lines.push((u32::MAX, line));
    }
    // Entries are in the order of the class file, which need not be that of bytecodes.
    if !lines.is_sorted_by_key(|(end, _)| *end) {
        return Box::default();
    }
    lines.into()
}

/// A number with its sign in the lowest bit.
fn signed(bytes: &mut &[u8], least: u8) -> Option<i32> {
    let number = unsigned(bytes, least)?;
    Some((number >> 1) as i32 ^ -((number & 1) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytecodes_have_lines() {
        // Line 12 from 0 on, 13 from 4 on, 11 from 40 on.
        let table = [LARGE, 0, 24, 4 << 3 | 1, LARGE, 72, 3, 0, 9];
        let lines = decode(&table, 100, 0);
        assert_eq!(*lines, [(0, 0), (4, 12), (40, 13), (u32::MAX, 11)]);
        let lines = FunctionLines::Table(lines);
        let of = |bytecode| lines.at(bytecode);
        assert_eq!([0, 3, 4, 39, 40, 99].map(of), [12, 12, 13, 13, 11, 11]);
        assert_eq!(lines.first(), 12);
    }

    #[test]
    fn what_makes_no_sense_ends_the_table() {
        assert_eq!(*decode(&[], 10, 0), []);
        assert_eq!(*decode(&[LARGE], 10, 0), []);
        assert_eq!(*decode(&[20 << 3 | 1], 10, 0), []);
    }
}
