//! Code objects: what tells them apart, and where their names and files are.

use super::layout::{Shape, at};
use crate::{
    intern::Hash,
    runtime::{Encoding, Piece, Process, Strings, check_of},
};

/// See [`Runtime::check`](crate::runtime::Runtime::check).
#[inline(always)]
pub(super) fn check(process: &impl Process, function: u64) -> Option<u32> {
    let [kind] = process.read(function.wrapping_add(8))?;
    let expected = process
        .bias()
        .wrapping_add(process.descriptor(at::CODE_TYPE));
    if kind != expected {
        return None;
    }
    let version = process.descriptor(at::CODE_VERSION);
    let hash = Hash::new(0).with(u64::from(first_line(process, function)?));
    if version != 0 {
        let [version] = process.read(function.wrapping_add(version))?;
        return Some(check_of(hash.with(version & 0xffff_ffff)));
    }
    let [file, name, qualified] =
        process.read(function.wrapping_add(process.descriptor(at::CODE_STRINGS)))?;
    let hash = with_string(process, hash, file)?;
    let hash = with_string(process, hash, name)?;
    let hash = if is_qualified(process) && qualified != name {
        with_string(process, hash, qualified)?
    } else {
        hash
    };
    Some(check_of(hash))
}

/// See [`Runtime::strings`](crate::runtime::Runtime::strings).
#[inline(always)]
pub(super) fn strings(process: &impl Process, function: u64) -> Option<Strings> {
    let [file, name, qualified] =
        process.read(function.wrapping_add(process.descriptor(at::CODE_STRINGS)))?;
    let name = if is_qualified(process) {
        qualified
    } else {
        name
    };
    Some(Strings {
        owner: Piece::default(),
        name: string(process, name).unwrap_or_default(),
        file: string(process, file).unwrap_or_default(),
        first_line: first_line(process, function)?,
        extra: 0,
    })
}

/// Since 3.11 a code object has a qualified name.
#[inline(always)]
fn is_qualified(process: &impl Process) -> bool {
    process.descriptor(at::SHAPE) >= Shape::EntryFlag as u64
}

#[inline(always)]
fn first_line(process: &impl Process, function: u64) -> Option<u32> {
    let place = function.wrapping_add(process.descriptor(at::CODE_FIRST_LINE));
    let [line] = process.read(place)?;
    Some(line as u32)
}

/// In a string: its length in characters, and its hash, -1 if nobody has asked for it (`PyASCIIObject`).
const STRING_LENGTH: u64 = 16;

/// In a string: bits 2–4 the size of a character, bit 5 whether they follow, bit 6 whether they are ASCII.
const STRING_STATE: u64 = 32;

/// Mixes a string in: by the runtime's own hash of it, or where there is none, by its length and its end.
#[inline(always)]
fn with_string(process: &impl Process, hash: Hash, string: u64) -> Option<Hash> {
    let [length, own] = process.read(string.wrapping_add(STRING_LENGTH))?;
    if own != u64::MAX {
        return Some(hash.with(own));
    }
    const TAIL: u64 = 48;
    // Before the first character stand numbers that do not change while the string lives.
    let end = string
        .wrapping_add(process.descriptor(at::STRING_ASCII))
        .wrapping_add(length);
    let place = if length < TAIL {
        string.wrapping_add(process.descriptor(at::STRING_ASCII))
    } else {
        end.wrapping_sub(TAIL)
    };
    let words: [u64; 6] = process.read(place).unwrap_or_default();
    let mut hash = hash.with(length);
    for (index, word) in words.into_iter().enumerate() {
        // Behind the end may stand anything.
        let left = length.saturating_sub(8 * index as u64);
        let kept = if left >= 8 {
            word
        } else {
            word & ((1 << (8 * left)) - 1)
        };
        hash = hash.with(kept);
    }
    Some(hash)
}

/// Where a string's characters are.
#[inline(always)]
fn string(process: &impl Process, address: u64) -> Option<Piece> {
    let [length, _, state] = process.read(address.wrapping_add(STRING_LENGTH))?;
    let (width, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
    let known = width == 1 || width == 2 || width == 4;
    if is_compact == 0 || !known || length > u64::from(u32::MAX >> 3) {
        return None;
    }
    let place = process.descriptor(if is_ascii != 0 {
        at::STRING_ASCII
    } else {
        at::STRING_OTHER
    });
    Some(Piece {
        address: address.wrapping_add(place),
        bytes: (length * width) as u32,
        encoding: match width {
            2 => Encoding::Ucs2,
            4 => Encoding::Ucs4,
            _ => Encoding::Latin1,
        } as u32,
    })
}

const _: () = assert!(STRING_STATE == STRING_LENGTH + 16);
