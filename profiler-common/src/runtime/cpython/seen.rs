//! Code objects that a walk has met.
//!
//! In: the address of a code object. Out: what a frame needs of it, which is read once in a walk, or nearly: deep stacks are of
//! a few functions that call each other, and neighbours are mostly of one file. Kept no longer than a walk, whose frames keep
//! all of this alive; afterwards another function may be at the address.

use super::{code, layout::at};
use crate::{
    intern::Hash,
    runtime::{CURSOR_WORDS, Cursor, Process},
};

/// The words of the cursor: those before are the chain's.
mod word {
    /// The file of the code object that was read last: the address of a string.
    pub(super) const FILE: usize = 6;
    /// Number of that string in checks.
    pub(super) const FILE_NUMBER: usize = 7;
    /// The places, of two words each: the address, and the rest as one number.
    pub(super) const PLACES: usize = 8;
}

/// How many code objects are remembered. A power of two.
const PLACES: usize = 8;

const _: () = assert!(word::PLACES + 2 * PLACES <= CURSOR_WORDS);

/// Data of a code object that its frames need.
#[derive(Clone, Copy)]
pub(super) struct Code {
    /// See [`code::check`].
    pub(super) check: u32,
    /// `_co_firsttraceable`, in instructions; zero in versions without.
    pub(super) first_traceable: u32,
}

impl Code {
    #[inline(always)]
    const fn into_word(self) -> u64 {
        self.check as u64 | (self.first_traceable as u64) << 32
    }

    #[inline(always)]
    const fn from_word(word: u64) -> Self {
        Self {
            check: word as u32,
            first_traceable: (word >> 32) as u32,
        }
    }
}

/// The code object at this address; none if there is none.
#[inline(always)]
pub(super) fn code(process: &impl Process, cursor: &impl Cursor, address: u64) -> Option<Code> {
    let place = Hash::new(0).with(address).tag() as usize & (PLACES - 1);
    let place = word::PLACES + 2 * place;
    if address != 0 && cursor.get(place) == address {
        return Some(Code::from_word(cursor.get(place + 1)));
    }
    let code = read(process, cursor, address)?;
    cursor.set(place, address);
    cursor.set(place + 1, code.into_word());
    Some(code)
}

#[inline(always)]
fn read(process: &impl Process, cursor: &impl Cursor, address: u64) -> Option<Code> {
    if !code::fetch(process, address) {
        return None;
    }
    let first_traceable = if process.descriptor(at::CODE_FIRST_TRACEABLE) == 0 {
        0
    } else {
        code::field(process, at::CODE_FIRST_TRACEABLE) as u32 & 0x7fff_ffff
    };
    let parts = code::parts(process);
    let file = if code::has_version(process) {
        0
    } else {
        file_number(process, cursor, parts.file)?
    };
    let check = code::check_of_parts(process, parts, file)?;
    Some(Code {
        check,
        first_traceable,
    })
}

/// As [`code::number`]; the string that was asked for last is not read again.
#[inline(always)]
fn file_number(process: &impl Process, cursor: &impl Cursor, file: u64) -> Option<u64> {
    if file != 0 && cursor.get(word::FILE) == file {
        return Some(cursor.get(word::FILE_NUMBER));
    }
    let number = code::number(process, file)?;
    cursor.set(word::FILE, file);
    cursor.set(word::FILE_NUMBER, number);
    Some(number)
}
