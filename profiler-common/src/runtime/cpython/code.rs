//! Code objects: what tells them apart, and where their names and files are.

use super::{
    CPython,
    layout::{CODE_BEGIN, Shape, at},
};
use crate::{
    intern::Hash,
    runtime::{Encoding, FunctionInfo, Process, RemoteString, Strings, check_of},
};

impl FunctionInfo for CPython {
    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        if !fetch(process, function) {
            return None;
        }
        let parts = parts(process);
        let file = if has_version(process) {
            0
        } else {
            number(process, parts.file)?
        };
        check_of_parts(process, parts, file)
    }

    /// `extra` is zero: the line table is found from the function.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        let [file, name, qualified] =
            process.read(function.wrapping_add(process.descriptor(at::CODE_STRINGS)))?;
        let name = if is_qualified(process) {
            qualified
        } else {
            name
        };
        Some(Strings {
            owner: RemoteString::default(),
            name: string(process, name).unwrap_or_default(),
            file: string(process, file).unwrap_or_default(),
            first_line: first_line(process, function)?,
            extra: 0,
        })
    }
}

/// Fetches a code object; false if there is none.
#[inline(always)]
pub(super) fn fetch(process: &impl Process, function: u64) -> bool {
    let address = function.wrapping_add(begin(process));
    process.fetch(address, process.descriptor(at::CODE_READ))
        && is_code_type(process, process.fetched(0))
}

/// Whether this is `PyCode_Type`, the library's own or the program's.
#[inline(always)]
fn is_code_type(process: &impl Process, address: u64) -> bool {
    let own = process.descriptor(at::CODE_TYPE);
    let slot = process.descriptor(at::CODE_TYPE_SLOT);
    address == process.bias().wrapping_add(own)
        || slot != 0 && process.read(process.bias().wrapping_add(slot)) == Some([address])
}

/// Field of a code object that was fetched, at an offset that the descriptor has.
#[inline(always)]
pub(super) fn field(process: &impl Process, offset: usize) -> u64 {
    process.fetched_at(process.descriptor(offset).wrapping_sub(begin(process)))
}

/// In a code object: where what is read of it begins.
#[inline(always)]
fn begin(process: &impl Process) -> u64 {
    process.descriptor(at::HEAD_MORE).wrapping_add(CODE_BEGIN)
}

/// Parts of a code object that distinguish it from others.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    /// Hash of the fields in the code object itself.
    own: Hash,
    /// Its file, a string. Not looked at where each code object has a number.
    pub(super) file: u64,
    /// Its name, a string.
    name: u64,
}

/// The parts of a code object that was fetched.
#[inline(always)]
pub(super) fn parts(process: &impl Process) -> Parts {
    let own = Hash::new(0).with(u64::from(field(process, at::CODE_FIRST_LINE) as u32));
    if has_version(process) {
        let version = field(process, at::CODE_VERSION) & 0xffff_ffff;
        return Parts {
            own: own.with(version),
            file: 0,
            name: 0,
        };
    }
    let strings = process
        .descriptor(at::CODE_STRINGS)
        .wrapping_sub(begin(process));
    // The qualified name has the name in it.
    let name = if is_qualified(process) { 16 } else { 8 };
    Parts {
        own,
        file: process.fetched_at(strings),
        name: process.fetched_at(strings.wrapping_add(name)),
    }
}

/// The check of a code object, where [`number`] stands for its file.
#[inline(always)]
pub(super) fn check_of_parts(process: &impl Process, parts: Parts, file: u64) -> Option<u32> {
    if has_version(process) {
        return Some(check_of(parts.own));
    }
    let name = number(process, parts.name)?;
    Some(check_of(parts.own.with(file).with(name)))
}

/// Whether no two code objects have the same number.
#[inline(always)]
pub(super) fn has_version(process: &impl Process) -> bool {
    process.descriptor(at::CODE_VERSION) != 0
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

/// In a string: its length in characters, and its hash, -1 if nobody has asked for it (`PyASCIIObject`). Where objects have longer
/// heads, [`at::HEAD_MORE`] comes on top.
const STRING_LENGTH: u64 = 16;

/// In a string: bits 2–4 the size of a character, bit 5 whether they follow, bit 6 whether they are ASCII.
const STRING_STATE: u64 = 32;

/// Number of a string in checks: the runtime's own hash of it, or where there is none, one of its
/// length and its end. Overwrites the memory that was fetched before.
#[inline(always)]
pub(super) fn number(process: &impl Process, string: u64) -> Option<u64> {
    if !process.fetch(string.wrapping_add(STRING_LENGTH), 16) {
        return None;
    }
    let (length, own) = (process.fetched(0), process.fetched(1));
    if own != u64::MAX {
        return Some(own);
    }
    // Before the first character stand numbers that do not change while the string lives: its length and what follows it.
    let end = string
        .wrapping_add(process.descriptor(at::STRING_ASCII))
        .wrapping_add(length);
    if !process.fetch(end.wrapping_sub(TAIL_BYTES), TAIL_BYTES) {
        return None;
    }
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| process.fetched(index));
    let hash = Hash::new(length).with(a).with(b).with(c).with(d);
    Some(hash.0)
}

/// How much is read of the end of a string that has no hash.
const TAIL_BYTES: u64 = 32;

/// Where the characters begin in strings of versions whose code objects have no numbers.
const SMALLEST_HEADER: u64 = 48;

const _: () = assert!(STRING_LENGTH + TAIL_BYTES <= SMALLEST_HEADER);

/// Where a string's characters are.
#[inline(always)]
fn string(process: &impl Process, address: u64) -> Option<RemoteString> {
    let head = address.wrapping_add(process.descriptor(at::HEAD_MORE));
    let [length, _, state] = process.read(head.wrapping_add(STRING_LENGTH))?;
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
    let encoding = match width {
        2 => Encoding::Ucs2,
        4 => Encoding::Ucs4,
        _ => Encoding::Latin1,
    };
    let address = address.wrapping_add(place);
    Some(RemoteString::new(
        address,
        (length * width) as u32,
        encoding,
    ))
}

const _: () = assert!(STRING_STATE == STRING_LENGTH + 16);
