//! Names of functions, as the code of their callers has them and `lj_debug.c` finds them.
//!
//! In: a caller's `GCproto` and the number of the instruction that calls. Out: the name of the global, field, method, upvalue or
//! local variable that was put into the called slot. The instructions are those of `lj_bc.h`: bits 0–7 the operation, 8–15 A,
//! 16–23 C, 24–31 B, 16–31 D.

use super::proto::{INSTRUCTIONS, MAX, number};
use crate::runtime::TargetMemory;
use crate::runtime::search::unsigned;
use profiler_common::walk::Memory as _;

/// In a `GCproto`: `k`, `uvinfo`, `varinfo`; behind it, its instructions.
const CONSTANTS: u64 = 0x20;
const UPVALUES: u64 = 0x58;
const VARIABLES: u64 = 0x60;
const CODE: u64 = 0x68;

/// How often a local variable without a name is followed to where it comes from.
const MAX_MOVES: usize = 8;
/// The most bytes of names that are read.
const MAX_BYTES: usize = 1 << 16;
/// The longest name, in bytes.
const MAX_NAME: usize = 256;

/// Operations.
mod operation {
    pub(super) const MOV: u32 = 18;
    pub(super) const KNIL: u32 = 44;
    pub(super) const UGET: u32 = 45;
    pub(super) const GGET: u32 = 54;
    pub(super) const TGETS: u32 = 57;
    pub(super) const CALLM: u32 = 65;
    pub(super) const CALLT: u32 = 68;
    pub(super) const VARG: u32 = 71;
    pub(super) const JMP: u32 = 88;
}

/// Whether an instruction changes a slot.
fn changes(instruction: u32, slot: u32) -> bool {
    let (a, d) = (instruction >> 8 & 0xff, instruction >> 16);
    match instruction & 0xff {
        operation::KNIL => (a..=d).contains(&slot),
        // Calls, iterations, variable arguments.
        operation::CALLM..=operation::VARG => slot >= a,
        // ISTC, ISFC; MOV to UGET; FNEW to GGET; TGETV to TGETR.
        12 | 13 | 18..=45 | 51..=54 | 56..=59 => a == slot,
        // Loops.
        77..=84 => slot >= a,
        _ => false,
    }
}

/// The last of some instructions that changes a slot; none if it may be one of several, because of a jump.
fn last_change(code: &[u32], slot: u32) -> Option<usize> {
    let (mut last, mut conditional_until) = (None, 0);
    for (place, &instruction) in code.iter().enumerate() {
        if instruction & 0xff == operation::JMP {
            let target = place as i64 + 1 + i64::from(instruction >> 16) - 0x8000;
            if target <= code.len() as i64 {
                conditional_until = conditional_until.max(target);
            }
        } else if changes(instruction, slot) {
            last = (place as i64 >= conditional_until).then_some(place);
        }
    }
    last
}

/// The name of the function that an instruction calls.
pub(super) fn of_called(memory: &TargetMemory, proto: u64, called: u32) -> Option<String> {
    let length = number(memory, proto.checked_add(INSTRUCTIONS)?)?.min(MAX);
    let mut bytes = vec![0; 4 * length as usize];
    memory.copy(proto.checked_add(CODE)?, &mut bytes)?;
    let (code, _) = bytes.as_chunks::<4>();
    let code: Vec<u32> = code
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect();
    let mut place = called as usize;
    let call = *code.get(place)?;
    (operation::CALLM..=operation::CALLT)
        .contains(&(call & 0xff))
        .then_some(())?;
    let mut slot = call >> 8 & 0xff;
    let variables = info(memory, proto, VARIABLES)?;
    for _ in 0..MAX_MOVES {
        if let Some(name) = variable(&variables, place as u64, slot) {
            return Some(name);
        }
        // The first is the function's head.
        place = last_change(code.get(..place)?, slot)?;
        let instruction = code[place];
        let d = instruction >> 16;
        match instruction & 0xff {
            operation::MOV => slot = d,
            operation::GGET => return constant(memory, proto, d),
            operation::TGETS => return constant(memory, proto, d & 0xff),
            operation::UGET => return upvalue(&info(memory, proto, UPVALUES)?, d),
            _ => return None,
        }
    }
    None
}

/// A constant that is a string: behind numbers downwards.
fn constant(memory: &TargetMemory, proto: u64, index: u32) -> Option<String> {
    let [constants] = memory.read(proto.checked_add(CONSTANTS)?)?;
    let [string] = memory.read(constants.checked_sub(8 * (u64::from(index) + 1))?)?;
    let [head, hash] = memory.read(string.checked_add(8)?)?;
    (head >> 8 & 0xff == 4).then_some(())?;
    let mut bytes = vec![0; ((hash >> 32) as usize).min(MAX_NAME)];
    memory.copy(string.checked_add(0x18)?, &mut bytes)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes from where a field of the `GCproto` points to, as many as can be read.
fn info(memory: &TargetMemory, proto: u64, field: u64) -> Option<Vec<u8>> {
    const PIECE: usize = 256;
    let [start] = memory.read(proto.checked_add(field)?)?;
    let mut bytes = Vec::new();
    if start == 0 {
        return Some(bytes);
    }
    while bytes.len() < MAX_BYTES {
        // A piece ends with a page, behind which there may be nothing.
        let place = start.checked_add(bytes.len() as u64)?;
        let mut piece = vec![0; PIECE - (place % PIECE as u64) as usize];
        if memory.copy(place, &mut piece).is_none() {
            break;
        }
        bytes.extend(piece);
    }
    Some(bytes)
}

/// One of names that follow each other, each with a NUL.
fn upvalue(names: &[u8], index: u32) -> Option<String> {
    let mut all = names.split(|byte| *byte == 0);
    let name = all.nth(index as usize)?;
    let is_name = !name.is_empty() && name.len() <= MAX_NAME;
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

/// The name of a slot's local variable at an instruction. The table has, of each: its name and a NUL, or a byte for one of the
/// compiler's own; after how many instructions behind the one before it begins, and for how many it lives, seven bits a byte.
fn variable(mut table: &[u8], place: u64, mut slot: u32) -> Option<String> {
    /// The lowest that is a character.
    const FIRST_CHARACTER: u8 = 7;
    let mut start = 0u64;
    loop {
        let name = match *table.first()? {
            0 => return None,
            1..FIRST_CHARACTER => {
                table = &table[1..];
                None
            }
            _ => {
                let end = table.iter().position(|byte| *byte == 0)?;
                let (name, rest) = table.split_at(end);
                table = &rest[1..];
                Some(name)
            }
        };
        start = start.checked_add(unsigned(&mut table)?)?;
        if start > place {
            return None;
        }
        let end = start.checked_add(unsigned(&mut table)?)?;
        if place < end {
            if slot == 0 {
                let name = name?;
                return Some(
                    String::from_utf8_lossy(&name[..name.len().min(MAX_NAME)]).into_owned(),
                );
            }
            slot -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(operation: u32, a: u32, d: u32) -> u32 {
        operation | a << 8 | d << 16
    }

    #[test]
    fn the_last_change_of_a_slot_is_found() {
        let code = [
            instruction(89, 5, 0),
            instruction(operation::GGET, 1, 0),
            instruction(41, 3, 7),
            instruction(operation::CALLM + 1, 4, 0),
        ];
        assert_eq!(last_change(&code, 1), Some(1));
        assert_eq!(last_change(&code, 5), Some(3));
        assert_eq!(last_change(&code, 0), None);
        // One of two ways has it.
        let jump = instruction(operation::JMP, 0, 0x8000 + 1);
        let code = [jump, instruction(operation::GGET, 1, 0)];
        assert_eq!(last_change(&code, 1), None);
    }

    #[test]
    fn variables_are_named_while_they_live() {
        // `first` from 1 for 130 instructions, one of the compiler's from 3 for 2, `second` from 3 for 9.
        let table = b"first\0\x01\x82\x01\x02\x02\x02second\0\x00\x09\0";
        let name = |place, slot| variable(table, place, slot);
        assert_eq!(name(1, 0).as_deref(), Some("first"));
        assert_eq!(name(130, 0).as_deref(), Some("first"));
        assert_eq!(name(131, 0), None);
        assert_eq!(name(4, 1), None);
        assert_eq!(name(4, 2).as_deref(), Some("second"));
        assert_eq!(name(6, 1).as_deref(), Some("second"));
        assert_eq!(name(0, 0), None);
        for length in 0..table.len() {
            variable(&table[..length], 4, 2);
        }
    }

    #[test]
    fn upvalues_are_named_in_their_order() {
        assert_eq!(upvalue(b"one\0two\0", 1).as_deref(), Some("two"));
        assert_eq!(upvalue(b"one\0", 1), None);
        assert_eq!(upvalue(b"", 0), None);
    }
}
