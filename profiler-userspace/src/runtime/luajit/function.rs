//! Name and file of a function of LuaJIT's, and the line of each of its instructions.
//!
//! In: a `GCproto` in the process (`lj_obj.h`, `lj_debug.c`). Out: pairs of an end in instructions and a line.

use super::names;
use super::proto::{INSTRUCTIONS, MAX, number};
use crate::process::{FunctionEvent, FunctionLines, RuntimeFunction};
use crate::runtime::TargetMemory;
use crate::runtime::lua::{complete_with, twice};
use profiler_common::runtime::RuntimeKind;

/// In a `GCproto`: `firstline`, `numline`, `lineinfo`.
const FIRST_LINE: u64 = 0x48;
const LINES: u64 = 0x4c;
const LINE_TABLE: u64 = 0x50;

/// The lines of a function.
pub(in crate::runtime) fn lines(memory: &TargetMemory, function: u64) -> FunctionLines {
    read(memory, function).map_or(FunctionLines::None, |lines| {
        FunctionLines::Table(twice(&lines))
    })
}

/// The line of each instruction. The first belongs to the definition; each other has its distance from that.
fn read(memory: &TargetMemory, proto: u64) -> Option<Vec<u32>> {
    let field = |offset: u64| number(memory, proto.checked_add(offset)?);
    let instructions = field(INSTRUCTIONS)?.min(MAX) as usize;
    let (first, lines) = (field(FIRST_LINE)?, field(LINES)?);
    let width = match lines {
        ..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let mut table = [0; 8];
    memory.copy(proto.checked_add(LINE_TABLE)?, &mut table)?;
    let mut distances = vec![0; instructions.saturating_sub(1) * width];
    memory.copy(u64::from_le_bytes(table), &mut distances)?;
    Some(absolute(first, &distances, width))
}

fn absolute(first: u32, distances: &[u8], width: usize) -> Vec<u32> {
    let distances = distances.chunks_exact(width).map(|bytes| {
        let all = bytes.iter().rev();
        all.fold(0u32, |number, byte| number << 8 | u32::from(*byte))
    });
    let lines = distances.map(|distance| first.wrapping_add(distance));
    std::iter::once(first).chain(lines).collect()
}

/// See [`complete_with`].
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    memory: &TargetMemory,
    function: &mut RuntimeFunction,
) {
    complete_with(
        event,
        memory,
        function,
        RuntimeKind::LuaJit,
        names::of_called,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_every_width_become_lines() {
        assert_eq!(absolute(10, &[0, 1, 5], 1), [10, 10, 11, 15]);
        assert_eq!(absolute(10, &[0, 1, 2, 0], 2), [10, 266, 12]);
        assert_eq!(absolute(10, &[1, 0, 1, 0], 4), [10, 10 + 0x1_0001]);
    }
}
