//! Functions: what tells them apart, and where their files are.

use super::{
    LuaJit,
    layout::{PROTO, PROTO_BYTES, PROTO_SOURCE, STRING, STRING_BYTES},
};
use crate::{
    intern::Hash,
    runtime::{Encoding, FunctionInfo, Process, RemoteString, Strings, check_of},
};

/// The longest string that is believed, in bytes.
const MAX_STRING: u64 = 1 << 30;
/// Of the text of a program that is no file's, so many bytes stand for all.
const MAX_TEXT: u64 = 80;

/// The type of what is collected at an address.
#[inline(always)]
pub(super) fn type_of(process: &impl Process, address: u64) -> Option<u64> {
    let [head] = process.read(address.wrapping_add(8))?;
    Some(head >> 8 & 0xff)
}

/// The address of a function's `GCproto`, if it is written in Lua.
#[inline(always)]
pub(super) fn proto_of(process: &impl Process, function: u64) -> Option<u64> {
    let [head, _, _, code] = process.read(function.wrapping_add(8))?;
    // `ffid`: 0 of functions in Lua.
    (head >> 16 & 0xff == 0).then_some(code.wrapping_sub(PROTO_BYTES))
}

/// A `GCproto`.
pub(super) struct Proto {
    pub(super) address: u64,
    pub(super) instructions: u64,
    source: u64,
    first_line: u32,
    /// Hash of fields that hardly two functions share.
    hash: Hash,
}

impl Proto {
    /// That at an address, if there is one.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        if !process.fetch(address, PROTO_BYTES) {
            return None;
        }
        let head = process.fetched(1);
        if head >> 8 & 0xff != PROTO {
            return None;
        }
        let [source, lines, table] =
            [0, 8, 16].map(|place| process.fetched_at(PROTO_SOURCE + place));
        Some(Self {
            address,
            instructions: head >> 32,
            source,
            first_line: lines as u32,
            // Without the collector's marks.
            hash: Hash::new(head >> 16).with(lines).with(table),
        })
    }

    /// See [`FunctionInfo::check`](crate::runtime::FunctionInfo::check).
    #[inline(always)]
    pub(super) fn check(&self, process: &impl Process) -> Option<u32> {
        let [head, hash] = string(process, self.source)?;
        // The string's number, its hash and its length.
        Some(check_of(self.hash.with(head >> 32).with(hash)))
    }
}

/// A string: its head, and a word with its hash and its length.
#[inline(always)]
fn string(process: &impl Process, address: u64) -> Option<[u64; 2]> {
    let [head, hash] = process.read(address.wrapping_add(8))?;
    (head >> 8 & 0xff == STRING && hash >> 32 <= MAX_STRING).then_some([head, hash])
}

impl FunctionInfo for LuaJit {
    const NAMED_BY_CALLER: bool = true;

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        Proto::read(process, function)?.check(process)
    }

    /// Only the file: functions have no names. `extra` is zero.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        let proto = Proto::read(process, function)?;
        let [_, hash] = string(process, proto.source)?;
        let length = hash >> 32;
        let bytes = proto.source.wrapping_add(STRING_BYTES);
        let [first] = process.read(bytes)?;
        // A source that is no path and no name is the program's text.
        let most = match first as u8 {
            b'@' | b'=' => MAX_STRING,
            _ => MAX_TEXT,
        };
        Some(Strings {
            owner: RemoteString::default(),
            name: RemoteString::default(),
            file: RemoteString::new(
                bytes,
                if length < most { length } else { most } as u32,
                Encoding::Bytes,
            ),
            first_line: proto.first_line,
            extra: 0,
        })
    }
}
