//! Names of functions, as the code of their callers has them.
//!
//! In: a caller's `Proto` and the number of the instruction that calls. Out: the name of the global, field, method, upvalue or
//! local variable that was put into the called register, as `debug.getinfo` has it. The instructions are those of
//! `lopcodes.h` of 5.3 and 5.4.

use super::proto::Proto;
use profiler_common::walk::Memory as _;

/// How often a local variable without a name is followed to where it comes from.
const MAX_MOVES: usize = 8;
/// The longest name that is read, in bytes.
const MAX_NAME: usize = 256;

/// Effect of an instruction on registers, as far as names are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Copies a register.
    Move { to: u32, from: u32 },
    /// Loads what has a constant for a name.
    Constant { to: u32, index: u32 },
    /// Loads an upvalue.
    Upvalue { to: u32, index: u32 },
    /// Changes the registers from the first to the last.
    Other { first: u32, last: u32 },
    /// Changes none.
    Nothing,
    /// Goes on so many instructions behind the next.
    Jump(i32),
}

/// A change of the registers from one to another.
const fn changing(first: u32, last: u32) -> Effect {
    Effect::Other { first, last }
}

impl Effect {
    fn changes(self, register: u32) -> bool {
        match self {
            Self::Move { to, .. } | Self::Constant { to, .. } | Self::Upvalue { to, .. } => {
                to == register
            }
            Self::Other { first, last } => (first..=last).contains(&register),
            Self::Nothing | Self::Jump(_) => false,
        }
    }
}

/// Of an instruction of 5.4: bits 0–6 the operation, 7–14 A, 15 k, 16–23 B, 24–31 C; a jump has 25 bits from 7 on.
fn effect_5_4(instruction: u32) -> Effect {
    let (a, b, c) = (
        instruction >> 7 & 0xff,
        instruction >> 16 & 0xff,
        instruction >> 24,
    );
    let other = changing(a, a);
    match instruction & 0x7f {
        // MOVE
        0 => Effect::Move { to: a, from: b },
        // LOADNIL
        8 => changing(a, a + b),
        // GETUPVAL
        9 => Effect::Upvalue { to: a, index: b },
        // GETTABUP, GETFIELD
        11 | 14 => Effect::Constant { to: a, index: c },
        // SELF, of a name that is a constant
        20 if instruction >> 15 & 1 != 0 => Effect::Constant { to: a, index: c },
        20 => changing(a, a + 1),
        // JMP
        56 => Effect::Jump((instruction >> 7) as i32 - 0xff_ffff),
        // CALL, TAILCALL
        68 | 69 => changing(a, u32::MAX),
        // TFORCALL
        76 => changing(a + 2, u32::MAX),
        // From LOADI on, GETTABLE, NEWTABLE, arithmetic, UNM to CONCAT, TESTSET, loops, CLOSURE, VARARG.
        1..=7 | 12 | 13 | 19 | 21..=45 | 49..=53 | 67 | 73 | 74 | 77 | 79..=81 => other,
        _ => Effect::Nothing,
    }
}

/// Of an instruction of 5.3: bits 0–5 the operation, 6–13 A, 14–22 C, 23–31 B; a jump has 18 bits from 14 on.
fn effect_5_3(instruction: u32) -> Effect {
    let (a, b, c) = (
        instruction >> 6 & 0xff,
        instruction >> 23,
        instruction >> 14 & 0x1ff,
    );
    /// The operand is a constant.
    const IS_CONSTANT: u32 = 0x100;
    let other = changing(a, a);
    match instruction & 0x3f {
        // MOVE
        0 => Effect::Move { to: a, from: b },
        // LOADNIL
        4 => changing(a, a + b),
        // GETUPVAL
        5 => Effect::Upvalue { to: a, index: b },
        // GETTABUP, GETTABLE, SELF
        6 | 7 | 12 if c & IS_CONSTANT != 0 => Effect::Constant {
            to: a,
            index: c & 0xff,
        },
        12 => changing(a, a + 1),
        // JMP
        30 => Effect::Jump((instruction >> 14) as i32 - 0x1_ffff),
        // CALL, TAILCALL
        36 | 37 => changing(a, u32::MAX),
        // TFORCALL
        41 => changing(a + 2, u32::MAX),
        // LOADK to LOADBOOL, NEWTABLE, arithmetic, UNM to CONCAT, TESTSET, loops, CLOSURE, VARARG.
        1..=3 | 6 | 7 | 11 | 13..=29 | 35 | 39 | 40 | 42 | 44 | 45 => other,
        _ => Effect::Nothing,
    }
}

/// Whether an instruction calls.
fn is_call(instruction: u32, is_5_3: bool) -> bool {
    if is_5_3 {
        matches!(instruction & 0x3f, 36 | 37)
    } else {
        matches!(instruction & 0x7f, 68 | 69)
    }
}

/// The name of the function that an instruction calls.
pub(super) fn of_called(proto: &Proto<'_>, number: u32) -> Option<String> {
    let code = proto.array(if proto.is_5_3 { 56 } else { 64 }, 24, 4)?;
    let (code, _) = code.as_chunks::<4>();
    let code: Vec<u32> = code
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect();
    let call = *code.get(number as usize)?;
    is_call(call, proto.is_5_3).then_some(())?;
    let mut register = call >> if proto.is_5_3 { 6 } else { 7 } & 0xff;
    let mut number = number as usize;
    for _ in 0..MAX_MOVES {
        if let Some(name) = local(proto, number, register) {
            return name;
        }
        number = last_change(&code[..number], register, proto.is_5_3)?;
        match effect(code[number], proto.is_5_3) {
            Effect::Move { from, .. } => register = from,
            Effect::Constant { index, .. } => return constant(proto, index),
            Effect::Upvalue { index, .. } => return upvalue(proto, index),
            _ => return None,
        }
    }
    None
}

fn effect(instruction: u32, is_5_3: bool) -> Effect {
    if is_5_3 {
        effect_5_3(instruction)
    } else {
        effect_5_4(instruction)
    }
}

/// The last of some instructions that changes a register; none if it may be one of several, because of a jump.
fn last_change(code: &[u32], register: u32, is_5_3: bool) -> Option<usize> {
    let (mut last, mut conditional_until) = (None, 0);
    for (number, instruction) in code.iter().enumerate() {
        match effect(*instruction, is_5_3) {
            Effect::Jump(distance) => {
                let target = number as i64 + 1 + i64::from(distance);
                if target <= code.len() as i64 {
                    conditional_until = conditional_until.max(target);
                }
            }
            effect if effect.changes(register) => {
                last = (number as i64 >= conditional_until).then_some(number);
            }
            _ => {}
        }
    }
    last
}

/// The name of a register's local variable at an instruction, if it is one's; the inner is none if that cannot be read.
fn local(proto: &Proto<'_>, number: usize, register: u32) -> Option<Option<String>> {
    let variables = proto.array(if proto.is_5_3 { 80 } else { 104 }, 36, 16)?;
    let (variables, _) = variables.as_chunks::<16>();
    let half = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap_or_default()) as usize;
    let mut active = variables.iter().filter(|variable| {
        let (start, end) = (half(&variable[8..12]), half(&variable[12..]));
        start <= number && number < end
    });
    let variable = active.nth(register as usize)?;
    let name = u64::from_le_bytes(variable[..8].try_into().unwrap_or_default());
    Some(string(proto, name).filter(|name| !name.starts_with('(')))
}

fn upvalue(proto: &Proto<'_>, index: u32) -> Option<String> {
    let [upvalues] =
        proto.memory.read(
            proto
                .address
                .checked_add(if proto.is_5_3 { 88 } else { 80 })?,
        )?;
    (index < proto.number(16)?).then_some(())?;
    let [name] = proto
        .memory
        .read(upvalues.checked_add(16 * u64::from(index))?)?;
    string(proto, name)
}

/// A constant that is a string.
fn constant(proto: &Proto<'_>, index: u32) -> Option<String> {
    /// The types of strings, which are collected.
    const STRINGS: [u64; 2] = [0x44, 0x54];
    let [constants] =
        proto.memory.read(
            proto
                .address
                .checked_add(if proto.is_5_3 { 48 } else { 56 })?,
        )?;
    (index < proto.number(20)?).then_some(())?;
    let [value, kind] = proto
        .memory
        .read(constants.checked_add(16 * u64::from(index))?)?;
    STRINGS.contains(&(kind & 0xff)).then_some(())?;
    string(proto, value)
}

/// A string's text: short ones have their length in a byte.
fn string(proto: &Proto<'_>, address: u64) -> Option<String> {
    let [head, length] = proto.memory.read(address.checked_add(8)?)?;
    let length = match head & 0xff {
        4 => (head >> 24 & 0xff) as usize,
        0x14 => usize::try_from(length).ok()?,
        _ => return None,
    };
    let mut bytes = vec![0; length.min(MAX_NAME)];
    proto.memory.copy(address.checked_add(24)?, &mut bytes)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction of 5.4.
    fn abc(operation: u32, a: u32, b: u32, c: u32) -> u32 {
        operation | a << 7 | b << 16 | c << 24
    }

    #[test]
    fn the_last_change_of_a_register_is_found() {
        // A field into 1, a number into 2, another call into 3, the call of 1.
        let code = [
            abc(14, 1, 0, 5),
            abc(1, 2, 0, 0),
            abc(68, 3, 1, 2),
            abc(68, 1, 3, 1),
        ];
        assert_eq!(last_change(&code[..3], 1, false), Some(0));
        assert_eq!(last_change(&code[..3], 4, false), Some(2));
        assert_eq!(last_change(&code[..3], 0, false), None);
    }

    #[test]
    fn what_one_of_two_ways_changes_has_no_name() {
        // `local f = a and b`: the second is jumped over.
        let jump = 56 | (0xff_ffff + 1) << 7;
        let code = [abc(14, 1, 0, 5), jump, abc(14, 1, 0, 6)];
        assert_eq!(last_change(&code, 1, false), None);
        // Behind the target it has one again.
        let code = [jump, abc(0, 0, 0, 0), abc(14, 1, 0, 6)];
        assert_eq!(last_change(&code, 1, false), Some(2));
    }

    #[test]
    fn instructions_of_both_versions_are_told() {
        assert_eq!(effect_5_4(abc(0, 3, 7, 0)), Effect::Move { to: 3, from: 7 });
        assert_eq!(
            effect_5_4(abc(20, 3, 7, 9) | 1 << 15),
            Effect::Constant { to: 3, index: 9 }
        );
        assert_eq!(effect_5_4(abc(70, 3, 7, 9)), Effect::Nothing);
        let old = |operation: u32, a: u32, b: u32, c: u32| operation | a << 6 | c << 14 | b << 23;
        assert_eq!(
            effect_5_3(old(6, 2, 0, 0x104)),
            Effect::Constant { to: 2, index: 4 }
        );
        assert_eq!(
            effect_5_3(old(5, 2, 3, 0)),
            Effect::Upvalue { to: 2, index: 3 }
        );
        assert_eq!(effect_5_3(30 | (0x1_ffff - 2) << 14), Effect::Jump(-2));
        assert!(is_call(old(36, 0, 0, 0), true) && !is_call(old(38, 0, 0, 0), true));
    }
}
