//! Functions: what tells them apart, and where their names and files are.

use super::layout::{ARRAY, ARRAY_EMBEDDED, Length, NOT_EMBEDDED, STRING, TYPE, at, body};
use crate::{
    intern::Hash,
    runtime::{Encoding, Process, RemoteString, Strings, check_of},
};

/// The longest string that is believed, in bytes.
const MAX_STRING: u64 = 1 << 20;
/// How much is read of the string that a function is called: all of it, in the smallest place that strings have.
const LABEL_BYTES: u64 = 40;

/// See [`FunctionInfo::strings`](crate::runtime::FunctionInfo::strings).
#[inline(always)]
pub(super) fn strings(process: &impl Process, body: u64) -> Option<Strings> {
    if !fetch(process, body) {
        return None;
    }
    let (path, label) = (process.fetched(body::PATH), process.fetched(body::LABEL));
    Some(Strings {
        owner: RemoteString::default(),
        first_line: first_line(process)?,
        name: string(process, label).unwrap_or_default(),
        file: file(process, path).unwrap_or_default(),
        extra: 0,
    })
}

/// Fetches a body; false if there is none.
#[inline(always)]
pub(super) fn fetch(process: &impl Process, body: u64) -> bool {
    process.fetch(body, body::BYTES)
}

/// Where the code of a body that was fetched begins.
#[inline(always)]
pub(super) fn code(process: &impl Process) -> u64 {
    process.fetched(body::CODE)
}

/// The first line of a body that was fetched; none if there is nothing like it.
#[inline(always)]
fn first_line(process: &impl Process) -> Option<u32> {
    let line = process.fetched(body::LINE);
    if length_in_front(process) {
        return Some(line as u32);
    }
    // Small numbers are shifted, and their lowest bit is set.
    (line & 1 != 0).then_some((line >> 1) as u32)
}

/// The check of a body that was fetched. Where the code lies, and which method it is of, tells those apart that differ in their
/// class only, which the body does not know.
#[inline(always)]
pub(super) fn check_fetched(process: &impl Process) -> Option<u32> {
    let label = process.fetched(body::LABEL);
    let hash = Hash::new(process.fetched(body::PATH))
        .with(u64::from(first_line(process)?))
        .with(label)
        .with(process.fetched(body::CODE))
        .with(process.fetched_at(process.descriptor(at::LOCAL)));
    if !process.fetch(label, LABEL_BYTES) {
        return None;
    }
    let flags = process.fetched(0);
    if flags & TYPE != STRING {
        return None;
    }
    // Marks of the collector's are in the flags.
    let is_elsewhere = flags & NOT_EMBEDDED;
    let (length, text) = if is_elsewhere != 0 || length_in_front(process) {
        (process.fetched(2), 3)
    } else {
        (length_embedded(flags), 2)
    };
    let (first, second) = (process.fetched(text), process.fetched(text + 1));
    // The bytes, or where they are. Behind a short string anything may stand.
    let (first, second) = if is_elsewhere != 0 {
        (process.fetched(3), 0)
    } else if length < 8 {
        (first & below(length), 0)
    } else {
        (first, second & below(length - 8))
    };
    let hash = hash.with(is_elsewhere).with(length);
    Some(check_of(hash.with(first).with(second)))
}

/// The path, or the first of an array: the path as it was given, and in full.
#[inline(always)]
fn file(process: &impl Process, path: u64) -> Option<RemoteString> {
    let [flags, _, first, _, second] = process.read(path)?;
    if flags & TYPE != ARRAY {
        return string(process, path);
    }
    if flags & ARRAY_EMBEDDED != 0 {
        return string(process, first);
    }
    // Length, capacity, elements.
    let [path] = process.read(second)?;
    string(process, path)
}

/// Where the bytes of a string are.
#[inline(always)]
pub(super) fn string(process: &impl Process, string: u64) -> Option<RemoteString> {
    let [flags, _, length, bytes] = process.read(string)?;
    if flags & TYPE != STRING {
        return None;
    }
    let (address, length) = if flags & NOT_EMBEDDED != 0 {
        (bytes, length)
    } else if length_in_front(process) {
        (string.wrapping_add(24), length)
    } else {
        (string.wrapping_add(16), length_embedded(flags))
    };
    (length <= MAX_STRING).then_some(RemoteString::new(address, length as u32, Encoding::Bytes))
}

/// Whether strings have their length in front of what follows it.
#[inline(always)]
fn length_in_front(process: &impl Process) -> bool {
    process.descriptor(at::LENGTH) == Length::InFront as u64
}

#[inline(always)]
const fn length_embedded(flags: u64) -> u64 {
    flags >> 14 & 0x1f
}

/// A word of so many bytes, eight at most.
#[inline(always)]
const fn below(bytes: u64) -> u64 {
    if bytes >= 8 {
        u64::MAX
    } else {
        (1 << (bytes * 8)) - 1
    }
}
