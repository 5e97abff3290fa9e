//! Functions: what tells them apart, and where their files are.

use super::{
    Lua,
    layout::{CLOSURE, LONG_STRING, LUA_FUNCTION, SHORT_STRING, STRING_BYTES, at},
};
use crate::{
    intern::Hash,
    runtime::{Encoding, FunctionInfo, Process, RemoteString, Strings, check_of},
};

/// The longest string that is believed, in bytes.
const MAX_STRING: u64 = 1 << 30;
/// Of the text of a program that is no file's, so many bytes stand for all.
const MAX_TEXT: u64 = 80;

/// The address of the `Proto` of the value at an address, if that is a function written in Lua.
#[inline(always)]
pub(super) fn proto_of(process: &impl Process, value: u64) -> Option<u64> {
    let [function, kind] = process.read(value)?;
    if kind & 0xff != LUA_FUNCTION {
        return None;
    }
    let [head, _, proto] = process.read(function.wrapping_add(8))?;
    (head & 0xff == CLOSURE).then_some(proto)
}

/// A `Proto`.
pub(super) struct Proto {
    pub(super) address: u64,
    pub(super) code: u64,
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
        // `source` is the last of what is needed.
        let source = process.descriptor(at::PROTO_SOURCE);
        if !process.fetch(address, source.wrapping_add(8))
            || process.fetched(1) & 0xff != process.descriptor(at::PROTO_TYPE)
        {
            return None;
        }
        let code = process.fetched(process.descriptor(at::PROTO_CODE) as usize);
        // Sizes, and the lines of the definition.
        let (instructions, lines) = (process.fetched(3), process.fetched(5));
        Some(Self {
            address,
            code,
            instructions: instructions & 0xffff_ffff,
            source: process.fetched_at(source),
            first_line: (lines >> (process.descriptor(at::LINE_SHIFT) & 63)) as u32,
            hash: Hash::new(code)
                .with(instructions)
                .with(lines)
                .with(process.fetched(7)),
        })
    }

    /// See [`FunctionInfo::check`](crate::runtime::FunctionInfo::check).
    #[inline(always)]
    pub(super) fn check(&self, process: &impl Process) -> Option<u32> {
        let source = Text::read(process, self.source)?;
        Some(check_of(source.mixed_into(process, self.hash)?))
    }
}

impl FunctionInfo for Lua {
    const NAMED_BY_CALLER: bool = true;

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        Proto::read(process, function)?.check(process)
    }

    /// Only the file: functions have no names. `extra` is zero.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        let proto = Proto::read(process, function)?;
        let source = Text::read(process, proto.source)?;
        let [first] = process.read(source.bytes)?;
        // A source that is no path and no name is the program's text.
        let most = match first as u8 {
            b'@' | b'=' => MAX_STRING,
            _ => MAX_TEXT,
        };
        let bytes = source.length;
        Some(Strings {
            owner: RemoteString::default(),
            name: RemoteString::default(),
            file: RemoteString::new(
                source.bytes,
                if bytes < most { bytes } else { most } as u32,
                Encoding::Bytes,
            ),
            first_line: proto.first_line,
            extra: 0,
        })
    }
}

/// A string.
struct Text {
    bytes: u64,
    length: u64,
    /// The hash of a short one.
    hash: u64,
    is_short: bool,
}

impl Text {
    #[inline(always)]
    fn read(process: &impl Process, address: u64) -> Option<Self> {
        let [head, length] = process.read(address.wrapping_add(8))?;
        let is_short = head & 0xff == SHORT_STRING;
        let length = if is_short { head >> 24 & 0xff } else { length };
        let is_string = is_short || head & 0xff == LONG_STRING;
        (is_string && length <= MAX_STRING).then_some(Self {
            bytes: address.wrapping_add(STRING_BYTES),
            length,
            hash: head >> 32,
            is_short,
        })
    }

    /// Mixes the string in: by the runtime's own hash of it, or where there is none, by its length, beginning and end.
    #[inline(always)]
    fn mixed_into(&self, process: &impl Process, hash: Hash) -> Option<Hash> {
        if self.is_short {
            return Some(hash.with(self.hash));
        }
        // More than 40 bytes.
        let begin: [u64; 4] = process.read(self.bytes)?;
        let end: [u64; 4] = process.read(self.bytes.wrapping_add(self.length).wrapping_sub(32))?;
        let hash = hash.with(self.length);
        let hash = hash
            .with(begin[0])
            .with(begin[1])
            .with(begin[2])
            .with(begin[3]);
        Some(hash.with(end[0]).with(end[1]).with(end[2]).with(end[3]))
    }
}
