//! Descriptions as compilers write nearly all of them, read without detours: some tenths of a microsecond each.
//!
//! In: the bytes of a description in `.eh_frame`. Out: its code and its instructions. What is of another kind is
//! left to the general reader, which says the same of these.

use gimli::{CallFrameInstruction, DwEhPe, Register};
use std::ops::Range;

/// How addresses are written: signed halves, relative to themselves.
pub(super) const ENCODING: DwEhPe = DwEhPe(gimli::DW_EH_PE_pcrel.0 | gimli::DW_EH_PE_sdata4.0);

/// Lengths from here on say that another follows, or are reserved.
const LONG: u32 = 0xffff_fff0;

/// Where an entry begins, behind its length.
const ENTRY: usize = 4;

/// Where it has the address of its code, how many bytes that has, and the length of what else it says: behind the distance to what
/// it shares with others.
const ADDRESS: usize = 4;
const BYTES: usize = 8;
const MORE: usize = 12;

/// A description of the usual kind.
pub(super) struct Usual<'a> {
    /// The addresses of its code.
    pub(super) addresses: Range<u64>,
    pub(super) instructions: Instructions<'a>,
}

impl<'a> Usual<'a> {
    /// The description that these bytes begin with, and that lies at `address`. What it shares with others says that addresses
    /// are [written as usual](ENCODING).
    pub(super) fn of(bytes: &'a [u8], address: u64) -> Option<Self> {
        let length = half(bytes, 0).filter(|length| *length < LONG)?;
        let entry = bytes.get(ENTRY..)?.get(..length as usize)?;
        let distance = half(entry, ADDRESS)?.cast_signed();
        let begin = address
            .wrapping_add((ENTRY + ADDRESS) as u64)
            .wrapping_add_signed(distance.into());
        let bytes = u64::try_from(half(entry, BYTES)?.cast_signed()).ok()?;
        let mut rest = entry.get(MORE..)?;
        let more = number(&mut rest)?;
        Some(Self {
            addresses: begin..begin.checked_add(bytes)?,
            instructions: Instructions(rest.get(usize::try_from(more).ok()?..)?),
        })
    }
}

/// Instructions of a description.
pub(super) struct Instructions<'a>(pub(super) &'a [u8]);

/// An instruction that compilers hardly write.
pub(super) struct Unusual;

impl Instructions<'_> {
    /// The next instruction; none at their end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<CallFrameInstruction<usize>>, Unusual> {
        let Some((&code, mut rest)) = self.0.split_first() else {
            return Ok(None);
        };
        let instruction = decode(code, &mut rest).ok_or(Unusual)?;
        self.0 = rest;
        Ok(Some(instruction))
    }
}

/// See DWARF 5, section 7.24.
#[inline]
fn decode(code: u8, rest: &mut &[u8]) -> Option<CallFrameInstruction<usize>> {
    use CallFrameInstruction as I;
    let low = code & 0x3f;
    let low_register = Register(low.into());
    Some(match code >> 6 {
        1 => I::AdvanceLoc { delta: low.into() },
        2 => I::Offset {
            register: low_register,
            factored_offset: number(rest)?,
        },
        3 => I::Restore {
            register: low_register,
        },
        _ => match low {
            0x00 => I::Nop,
            0x02 => I::AdvanceLoc {
                delta: u8::from_le_bytes(array(rest)?).into(),
            },
            0x03 => I::AdvanceLoc {
                delta: u16::from_le_bytes(array(rest)?).into(),
            },
            0x04 => I::AdvanceLoc {
                delta: u32::from_le_bytes(array(rest)?),
            },
            0x0a => I::RememberState,
            0x0b => I::RestoreState,
            0x0c => I::DefCfa {
                register: register(rest)?,
                offset: number(rest)?,
            },
            0x0d => I::DefCfaRegister {
                register: register(rest)?,
            },
            0x0e => I::DefCfaOffset {
                offset: number(rest)?,
            },
            _ => return None,
        },
    })
}

fn register(rest: &mut &[u8]) -> Option<Register> {
    u16::try_from(number(rest)?).ok().map(Register)
}

/// A number of at most four bytes of seven bits, the lowest first.
#[inline]
pub(super) fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (place, &byte) in rest.iter().take(4).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            *rest = &rest[place + 1..];
            return Some(value);
        }
    }
    None
}

#[inline]
pub(super) fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*first)
}

/// Where in the section that is which a description, at this place of it, shares with others.
pub(super) fn shared(bytes: &[u8], place: usize) -> Option<usize> {
    let back = half(bytes, ENTRY)?;
    (place + ENTRY).checked_sub(back as usize)
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}
