//! Log lines for user space, in aya-log's wire format.
//!
//! In: what happened, and to which process and address. Out: records in the ring buffer `AYA_LOGS`, which
//! `aya_log::EbpfLogger` reads. Never waits: a record that finds the buffer full is dropped and counted. Nothing of this
//! is in a running program unless [`Switches::LOG`] is on: the verifier drops it.
//!
//! The macros of aya-log-ebpf would do the same. But they make their buffer a map only where they are compiled for the
//! target `bpf`, and the kernel half is compiled for the host (`xtask/src/bpf.rs` has the reason). So the types are
//! aya-log-common's and the record is put together here.

use crate::platform::{
    config,
    maps::{AYA_LOGS, LOGS_DROPPED},
};
use aya_log_common::{ArgumentKind, DisplayHint, Level, RecordFieldKind};
use profiler_common::abi::{StackEnd, Switches};

/// Leaves the reader asleep: it comes by ten times a second.
const NO_WAKEUP: u64 = 1;

/// The longest [`Happened::text`], in bytes.
const TEXT_BYTES: usize = 40;

/// Occurrence that a line reports.
#[derive(Clone, Copy)]
pub(crate) enum Happened {
    /// A walk of a user stack ended before the root; the number is a [`StackEnd`].
    WalkEnded(u64),
    /// Code was met that user space has published nothing of.
    UnknownCode,
    /// A sample found no room for its stack or its tally.
    NoRoom,
}

impl Happened {
    /// At the end of a line, whose length may differ from record to record.
    #[inline(always)]
    fn text(self) -> (Level, &'static [u8; TEXT_BYTES], u16) {
        const fn padded(text: &str) -> ([u8; TEXT_BYTES], u16) {
            let mut bytes = [b' '; TEXT_BYTES];
            let mut at = 0;
            while at < text.len() {
                bytes[at] = text.as_bytes()[at];
                at += 1;
            }
            (bytes, text.len() as u16)
        }
        macro_rules! text {
            ($level:ident, $text:literal) => {{
                static TEXT: ([u8; TEXT_BYTES], u16) = padded($text);
                (Level::$level, &TEXT.0, TEXT.1)
            }};
        }
        const UNREADABLE: u64 = StackEnd::Unreadable as u64;
        const NO_FRAME_POINTER: u64 = StackEnd::NoFramePointer as u64;
        const COMPAT: u64 = StackEnd::Compat as u64;
        const NO_ROW: u64 = StackEnd::NoRow as u64;
        const BAD_ROW: u64 = StackEnd::BadRow as u64;
        const IMPLAUSIBLE: u64 = StackEnd::Implausible as u64;
        const NOT_LOADED: u64 = StackEnd::NotLoaded as u64;
        match self {
            Self::WalkEnded(UNREADABLE) => text!(Debug, "stack memory cannot be read"),
            Self::WalkEnded(NO_FRAME_POINTER) => text!(Debug, "no frame pointer"),
            Self::WalkEnded(COMPAT) => text!(Debug, "32-bit program"),
            Self::WalkEnded(NO_ROW) => text!(Debug, "no unwind row"),
            Self::WalkEnded(BAD_ROW) => text!(Debug, "unwind row cannot be followed"),
            Self::WalkEnded(IMPLAUSIBLE) => text!(Debug, "no code at the caller's address"),
            Self::WalkEnded(NOT_LOADED) => text!(Debug, "unwind table not loaded"),
            Self::WalkEnded(_) => text!(Debug, "too many frames"),
            Self::UnknownCode => text!(Debug, "no table found for this code"),
            Self::NoRoom => text!(Warn, "no room for this sample"),
        }
    }
}

/// A field or an argument of `N` bytes.
#[repr(C, packed)]
struct Field<const N: usize> {
    kind: u8,
    length: u16,
    bytes: [u8; N],
}

/// A number and how it is printed.
#[repr(C, packed)]
struct Number {
    hint: Field<1>,
    value: Field<8>,
}

const BEFORE_PROCESS: &[u8; 8] = b"process ";
const BEFORE_FRAMES: &[u8; 2] = b", ";
const BEFORE_ADDRESS: &[u8; 14] = b" frames, at 0x";
const BEFORE_TEXT: &[u8; 2] = b": ";
const TARGET: &[u8; 9] = b"flame-bpf";

/// Four texts, three numbers with their hints, and what happened.
const ARGUMENTS: u32 = 4 + 3 * 2 + 1;

/// `process 4711, 12 frames, at 0x7f0012345678: no unwind row`.
#[repr(C, packed)]
struct Record {
    size: u16,
    target: Field<{ TARGET.len() }>,
    level: Field<1>,
    module: Field<0>,
    file: Field<0>,
    line: Field<4>,
    arguments: Field<4>,
    before_process: Field<{ BEFORE_PROCESS.len() }>,
    process: Number,
    before_frames: Field<{ BEFORE_FRAMES.len() }>,
    frames: Number,
    before_address: Field<{ BEFORE_ADDRESS.len() }>,
    address: Number,
    before_text: Field<{ BEFORE_TEXT.len() }>,
    text: Field<TEXT_BYTES>,
}

#[inline(always)]
fn field<const N: usize>(kind: RecordFieldKind, bytes: [u8; N]) -> Field<N> {
    Field {
        kind: kind as u8,
        length: N as u16,
        bytes,
    }
}

#[inline(always)]
fn text<const N: usize>(bytes: &[u8; N], length: u16) -> Field<N> {
    Field {
        kind: ArgumentKind::Str as u8,
        length,
        bytes: *bytes,
    }
}

#[inline(always)]
fn number(value: u64, hint: DisplayHint) -> Number {
    Number {
        hint: Field {
            kind: ArgumentKind::DisplayHint as u8,
            length: 1,
            bytes: [hint as u8],
        },
        value: Field {
            kind: ArgumentKind::U64 as u8,
            length: 8,
            bytes: value.to_ne_bytes(),
        },
    }
}

/// Whether lines are wanted. What stands behind this question is dropped by the verifier where they are not.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    config::has(Switches::LOG)
}

/// Writes a line: what happened in which process, behind how many frames, and at which address.
#[inline(always)]
pub(crate) fn note(happened: Happened, tgid: u32, frames: u64, address: u64) {
    let Some(mut entry) = AYA_LOGS.reserve::<Record>(0) else {
        if let Some(dropped) = LOGS_DROPPED.get(0) {
            dropped.add(1);
        }
        return;
    };
    let (level, words, length) = happened.text();
    entry.write(Record {
        size: (size_of::<Record>() - TEXT_BYTES) as u16 + length,
        target: field(RecordFieldKind::Target, *TARGET),
        level: field(RecordFieldKind::Level, [level as u8]),
        module: field(RecordFieldKind::Module, []),
        file: field(RecordFieldKind::File, []),
        line: field(RecordFieldKind::Line, [0; 4]),
        arguments: field(RecordFieldKind::NumArgs, ARGUMENTS.to_ne_bytes()),
        before_process: text(BEFORE_PROCESS, BEFORE_PROCESS.len() as u16),
        process: number(tgid.into(), DisplayHint::Default),
        before_frames: text(BEFORE_FRAMES, BEFORE_FRAMES.len() as u16),
        frames: number(frames, DisplayHint::Default),
        before_address: text(BEFORE_ADDRESS, BEFORE_ADDRESS.len() as u16),
        address: number(address, DisplayHint::LowerHex),
        before_text: text(BEFORE_TEXT, BEFORE_TEXT.len() as u16),
        text: text(words, length),
    });
    entry.submit(NO_WAKEUP);
}
