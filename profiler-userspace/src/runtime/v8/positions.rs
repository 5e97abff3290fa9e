//! Tables of positions: which place in the source belongs to which instruction (`source-position-table.cc`, `source-position.h`).
//!
//! In: the bytes of a table. Out: its entries. Never reads memory; bytes that make no sense end the table.

use crate::runtime::search::unsigned;

/// An entry: holds from an instruction on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// How far from the first, in bytes.
    pub(super) instruction: u32,
    /// Of what it was made.
    pub(super) place: ScriptPosition,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScriptPosition {
    /// Number of characters before it in the script; none if it is outside of JavaScript.
    pub(super) offset: Option<u32>,
    /// The number of the call that was compiled into the function, from one on; zero of the function's own code.
    pub(super) call: u32,
}

impl ScriptPosition {
    /// From the bits of a `SourcePosition`: whether it is external, 30 bits of offset, 16 of the call.
    pub(super) fn of(bits: u64) -> Self {
        let offset = bits >> 1 & 0x3fff_ffff;
        Self {
            // One is added, so that none is zero.
            offset: (bits & 1 == 0)
                .then(|| (offset as u32).checked_sub(1))
                .flatten(),
            call: (bits >> 31 & 0xffff) as u32,
        }
    }
}

/// The first version with a flag at the lowest place of the distance, beside the sign that tells expressions.
const WITH_FLAG: u32 = 14 << 16;
/// Where a table begins: at the check of the stack, in front of the first instruction (`kFunctionEntryBytecodeOffset`).
const ENTRY: i64 = -1;

/// The entries of a table, in order.
pub(super) fn entries(mut table: &[u8], version: u32) -> Vec<Entry> {
    let (mut entries, mut instruction, mut place) = (Vec::new(), ENTRY, 0i64);
    while let Some((code, source)) = number(&mut table).zip(number(&mut table)) {
        // An expression's is the complement.
        let code = if code < 0 { !code } else { code };
        let distance = if version >= WITH_FLAG {
            code >> 1
        } else {
            code
        };
        instruction = instruction.saturating_add(distance);
        place = place.saturating_add(source);
        let Ok(instruction) = u32::try_from(instruction.max(0)) else {
            break;
        };
        entries.push(Entry {
            instruction,
            place: ScriptPosition::of(place as u64),
        });
    }
    entries
}

/// A number with its sign in the lowest bit.
fn number(table: &mut &[u8]) -> Option<i64> {
    let value = unsigned(table)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as a table has it.
    fn encoded(number: i64) -> Vec<u8> {
        let mut bits = ((number << 1) ^ (number >> 63)) as u64;
        let mut bytes = Vec::new();
        loop {
            let byte = (bits & 0x7f) as u8;
            bits >>= 7;
            bytes.push(if bits == 0 { byte } else { byte | 0x80 });
            if bits == 0 {
                return bytes;
            }
        }
    }

    fn bits(offset: u64, call: u64) -> i64 {
        ((offset + 1) << 1 | call << 31) as i64
    }

    #[test]
    fn entries_add_up() {
        let table = |statement: fn(i64) -> i64, expression: fn(i64) -> i64| {
            [
                encoded(expression(0)),
                encoded(bits(7, 0)),
                encoded(statement(6)),
                encoded(bits(100, 0) - bits(7, 0)),
                encoded(expression(3)),
                encoded(bits(40, 2) - bits(100, 0)),
            ]
            .concat()
        };
        let expected =
            [(0, 7, 0), (5, 100, 0), (8, 40, 2)].map(|(instruction, offset, call)| Entry {
                instruction,
                place: ScriptPosition {
                    offset: Some(offset),
                    call,
                },
            });
        let old = table(|code| code, |code| !code);
        assert_eq!(entries(&old, 13 << 16), expected);
        let new = table(|code| code << 1 | 1, |code| !(code << 1 | 1));
        assert_eq!(entries(&new, 14 << 16), expected);
    }

    #[test]
    fn bytes_that_make_no_sense_end_the_table() {
        assert_eq!(entries(&[], 0), []);
        assert_eq!(entries(&[0xff; 64], 0), []);
        assert_eq!(entries(&encoded(7), 0), []);
        assert_eq!(ScriptPosition::of(1).offset, None);
        assert_eq!(ScriptPosition::of(0).offset, None);
    }
}
