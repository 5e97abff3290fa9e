//! Strings: where their characters lie, through what refers to another string.

use super::layout::{address_of, integer, is_object, type_of_map};
use crate::{
    runtime::{Encoding, RemoteString},
    walk::Memory,
};

/// Types below are strings' (`FIRST_NONSTRING_TYPE`).
const FIRST_OTHER: u64 = 128;
/// The bits of a string's type that say how it is stored (`StringRepresentationMask`), and how wide its characters are.
const REPRESENTATION: u64 = 7;
/// See [`REPRESENTATION`].
const ONE_BYTE: u64 = 8;

/// How a string is stored: its characters follow.
const SEQUENTIAL: u64 = 0;
/// As the first of two strings and the second.
const CONS: u64 = 1;
/// In memory that is not the heap's.
const EXTERNAL: u64 = 2;
/// As a part of another.
const SLICED: u64 = 3;
/// As another.
const FORWARDED: u64 = 5;

/// In a string: its hash, and its length in the upper half.
const LENGTH: u64 = 8;
/// In a string: its characters, or the string that it refers to.
const CONTENTS: u64 = 16;
/// In a string: the second of two, the place of a part, or the address of its characters.
const MORE: u64 = 24;

/// How often a string refers to another before it counts as none.
const MAX_REFERENCES: u32 = 3;

/// Whether a word refers to a string.
#[inline(always)]
pub(super) fn is_string(memory: &impl Memory, word: u64) -> bool {
    is_object(word)
        && memory
            .read(address_of(word))
            .and_then(|[map]| type_of_map(memory, map))
            .is_some_and(|kind| kind < FIRST_OTHER)
}

/// Where the characters of a string lie that a word refers to, and whether these are all: of two strings that were not put together
/// yet, it is the first alone.
#[inline(always)]
pub(super) fn piece(memory: &impl Memory, word: u64) -> Option<(RemoteString, bool)> {
    let (mut word, mut skipped, mut length, mut is_whole) = (word, 0, u64::MAX, true);
    for _ in 0..MAX_REFERENCES {
        if !is_object(word) {
            return None;
        }
        let address = address_of(word);
        let [map, head, contents, more] = read(memory, address)?;
        let kind = type_of_map(memory, map)?;
        if kind >= FIRST_OTHER {
            return None;
        }
        let own = head >> 32;
        let width = if kind & ONE_BYTE != 0 { 1 } else { 2 };
        let characters = match kind & REPRESENTATION {
            SEQUENTIAL => address.wrapping_add(CONTENTS),
            EXTERNAL => more,
            SLICED => {
                length = if own < length { own } else { length };
                skipped = u64::wrapping_add(skipped, integer(more)?);
                word = contents;
                continue;
            }
            FORWARDED | CONS => {
                let is_forwarded = kind & REPRESENTATION == FORWARDED;
                is_whole &= is_forwarded || is_empty(memory, more);
                word = contents;
                continue;
            }
            _ => return None,
        };
        let rest = own.saturating_sub(skipped);
        let length = if rest < length { rest } else { length };
        let address = characters.wrapping_add(skipped.wrapping_mul(width));
        let encoding = if width == 1 {
            Encoding::Latin1
        } else {
            Encoding::Ucs2
        };
        let piece = RemoteString::new(address, length.wrapping_mul(width) as u32, encoding);
        return Some((piece, is_whole));
    }
    None
}

/// Whether a string has no characters.
#[inline(always)]
fn is_empty(memory: &impl Memory, word: u64) -> bool {
    let head = memory.read(address_of(word).wrapping_add(LENGTH));
    head.is_some_and(|[head]| head >> 32 == 0)
}

/// The four words of a string; the last two may be its characters, or behind its end.
#[inline(always)]
fn read(memory: &impl Memory, address: u64) -> Option<[u64; 4]> {
    const _: () = assert!(LENGTH == 8 && CONTENTS == 16 && MORE == 24);
    memory.read(address)
}
