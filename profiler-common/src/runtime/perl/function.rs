//! Functions: subs, and the code of files and strings. What tells them apart, and where their names and files are.
//!
//! The key of a sub is the address of its `CV`; that of code outside of subs the address of its file's name, with a bit that
//! addresses do not have.

use super::{
    Perl,
    context::place,
    layout::{
        BODY, BODY_BYTES, EFFECTIVE, FILE_PREFIX, FILE_PREFIX_BYTES, FORMAT, GLOB, GLOB_NAME,
        HAS_NAME, HASH, NAME_BYTES, NAMED, STASH_NAME, SUB, at, body,
    },
};
use crate::{
    intern::Hash,
    runtime::{Encoding, FUNCTION_BITS, FunctionInfo, Process, RemoteString, Strings, check_of},
};

/// In a function's key: it is no sub, but the code of the file whose name is there.
pub const OF_FILE: u64 = 1 << 47;
/// The longest name that is believed, in bytes.
const MAX_NAME: u32 = 1 << 16;
/// How many words of a file's name are looked at.
const FILE_WORDS: usize = 16;
/// Beginning of the names of strings that are run as code.
const EVAL: u64 = u64::from_le_bytes(*b"(eval \0\0");
const EVAL_MASK: u64 = u64::from_le_bytes(*b"\xff\xff\xff\xff\xff\xff\0\0");

/// The key of the code of a file whose name is at an address.
#[inline(always)]
pub(super) const fn key_of_file(name: u64) -> u64 {
    (name | OF_FILE) & FUNCTION_BITS
}

/// The address of a file's name, a C string, of what a statement has for its file; zero if there is none.
#[inline(always)]
pub(super) fn name_of_file(process: &impl Process, file: u64) -> u64 {
    if process.descriptor(at::KEY) != 0 || file == 0 {
        return file;
    }
    let Some((name, _)) = glob(process, file) else {
        return 0;
    };
    let text = name.wrapping_add(NAME_BYTES);
    match process.read(text) {
        Some([first]) if first & 0xffff == FILE_PREFIX => text.wrapping_add(FILE_PREFIX_BYTES),
        _ => 0,
    }
}

/// A sub or format.
struct Sub {
    stash: u64,
    start: u64,
    /// A `GV`, or if it is `named`, a `HEK`.
    name: u64,
    file: u64,
    is_named: bool,
    /// How much of the program had been compiled before it.
    sequence: u32,
}

impl Sub {
    #[inline(always)]
    fn read(process: &impl Process, address: u64) -> Option<Self> {
        let (kind, _, body) = head(process, address)?;
        if kind != SUB && kind != FORMAT {
            return None;
        }
        if !process.fetch(body.wrapping_add(BODY), BODY_BYTES) {
            return None;
        }
        let sequence = process.fetched(body::SEQUENCE);
        Some(Self {
            stash: process.fetched(body::STASH),
            start: process.fetched(body::START),
            name: process.fetched(body::NAME),
            file: process.fetched(body::FILE),
            is_named: (sequence >> 32) & NAMED != 0,
            sequence: sequence as u32,
        })
    }

    /// The name, a `HEK`, and the stash; zeros if there are none.
    #[inline(always)]
    fn names(&self, process: &impl Process) -> Option<(u64, u64)> {
        if self.is_named {
            return Some((self.name, self.stash));
        }
        if self.name == 0 {
            return Some((0, self.stash));
        }
        glob(process, self.name)
    }
}

/// Type, flags and body of an `SV`.
#[inline(always)]
fn head(process: &impl Process, address: u64) -> Option<(u64, u64, u64)> {
    let [body, counted] = process.read(address)?;
    let flags = counted >> 32;
    Some((flags & 0xff, flags, body))
}

/// Name, a `HEK`, and stash of a `GV`.
#[inline(always)]
fn glob(process: &impl Process, address: u64) -> Option<(u64, u64)> {
    let (kind, _, body) = head(process, address)?;
    if kind != GLOB {
        return None;
    }
    let [name, stash] = process.read(body.wrapping_add(GLOB_NAME))?;
    Some((name, stash))
}

impl FunctionInfo for Perl {
    #[inline(always)]
    fn check(process: &impl Process, key: u64) -> Option<u32> {
        if key & OF_FILE != 0 {
            check_of_file(process, key & !OF_FILE)
        } else {
            check_of_sub(process, key)
        }
    }

    /// `extra` is not used.
    #[inline(always)]
    fn strings(process: &impl Process, key: u64) -> Option<Strings> {
        if key & OF_FILE != 0 {
            let name = key & !OF_FILE;
            let [word] = process.read(name)?;
            let text = c_string(name);
            let is_eval = word & EVAL_MASK == EVAL;
            return Some(Strings {
                name: if is_eval {
                    text
                } else {
                    RemoteString::default()
                },
                file: text,
                first_line: 1,
                ..Strings::default()
            });
        }
        let sub = Sub::read(process, key)?;
        let (name, stash) = effective(process, &sub).or_else(|| sub.names(process))?;
        Some(Strings {
            owner: stash_name(process, stash).unwrap_or_default(),
            name: text_of(process, name).unwrap_or_default(),
            file: c_string(sub.file),
            // The first operation of a sub is a statement.
            first_line: place(process, sub.start).map_or(0, |(line, _)| line),
            extra: 0,
        })
    }
}

/// The check of the code of the file whose name is at an address.
#[inline(always)]
pub(super) fn check_of_file(process: &impl Process, name: u64) -> Option<u32> {
    process.read::<1>(name)?;
    Some(check_of(hash_of_text(process, name)))
}

/// The check of a sub, if there is one at an address.
#[inline(always)]
pub(super) fn check_of_sub(process: &impl Process, address: u64) -> Option<u32> {
    let sub = Sub::read(process, address)?;
    // perl numbers what it compiles (`PL_cop_seqmax`), so no two subs that were compiled one after the other at one place are
    // alike, whatever their names are and wherever these stand. A sub that gets another name has it elsewhere.
    let hash = Hash::new(sub.start).with(sub.file).with(sub.name);
    Some(check_of(hash.with(sub.stash).with(u64::from(sub.sequence))))
}

/// The hash of the beginning of a C string.
#[inline(always)]
fn hash_of_text(process: &impl Process, text: u64) -> Hash {
    let mut hash = Hash::new(0);
    // Behind a short one there may be no memory.
    let is_whole = process.fetch(text, 8 * FILE_WORDS as u64);
    for index in 0..FILE_WORDS {
        let word = if is_whole {
            process.fetched(index)
        } else {
            match process.read(text.wrapping_add(8 * index as u64)) {
                Some([word]) => word,
                None => return hash,
            }
        };
        // The lowest byte that is zero, if there is one, has its highest bit set here, and all below have none.
        let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
        if zeros != 0 {
            return hash.with(word & (zeros ^ zeros.wrapping_sub(1)));
        }
        hash = hash.with(word);
    }
    hash
}

/// Name and stash of the glob that a sub's glob was made an alias of.
#[inline(always)]
fn effective(process: &impl Process, sub: &Sub) -> Option<(u64, u64)> {
    if sub.is_named || sub.name == 0 {
        return None;
    }
    let [_, _, inner] = process.read(sub.name)?;
    let [effective] = process.read(inner.wrapping_add(EFFECTIVE))?;
    glob(process, effective)
}

#[inline(always)]
fn c_string(address: u64) -> RemoteString {
    RemoteString::new(address, 0, Encoding::CString)
}

/// The name of a package.
#[inline(always)]
fn stash_name(process: &impl Process, stash: u64) -> Option<RemoteString> {
    let (kind, flags, body) = head(process, stash)?;
    if kind != HASH || flags & HAS_NAME == 0 {
        return None;
    }
    let [name, _, _, count] = process.read(body.wrapping_add(STASH_NAME))?;
    // It may have more than one name: of these, the first in a list, or the second if the first is gone.
    let count = (count >> 32) as u32 as i32;
    let name = match count {
        0 => name,
        1.. => process.read::<1>(name)?[0],
        _ => process.read::<1>(name.wrapping_add(8))?[0],
    };
    text_of(process, name)
}

/// The text of a `HEK`, whose flags are behind it.
#[inline(always)]
fn text_of(process: &impl Process, name: u64) -> Option<RemoteString> {
    if name == 0 {
        return None;
    }
    let [hash_and_length] = process.read(name)?;
    let length = (hash_and_length >> 32) as u32;
    if length == 0 || length > MAX_NAME {
        return None;
    }
    let bytes = name.wrapping_add(NAME_BYTES);
    // Behind the bytes a zero, then the flags. The last is that the bytes are UTF-8.
    let flags = bytes.wrapping_add(u64::from(length)).wrapping_add(1);
    let [last] = process.read(flags.wrapping_sub(7))?;
    let is_utf8 = last >> 56 & 1 != 0;
    let encoding = if is_utf8 {
        Encoding::Bytes
    } else {
        Encoding::Latin1
    };
    Some(RemoteString::new(bytes, length, encoding))
}
