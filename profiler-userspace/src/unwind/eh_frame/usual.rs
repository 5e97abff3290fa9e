//! Descriptions as compilers write nearly all of them, read without detours: some tenths of a microsecond each.
//!
//! In: the bytes of a description in `.eh_frame` whose shared entry says where calls put the return address, and no more. Out: its
//! code, and from which offset on which rule holds, in one pass over the bytes. A description of another kind is left to the general
//! reader, which says the same of these.

use super::super::arch;
use gimli::DwEhPe;
use profiler_common::abi::Rule;
use profiler_common::walk::arch::{CFA_AT_ENTRY, FP, SAVED, SP};
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
    pub(super) instructions: &'a [u8],
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
            instructions: rest.get(usize::try_from(more).ok()?..)?,
        })
    }
}

/// Where the CFA is, and where the frame pointer and the saved register are, in one word: the register (8 bits), the bytes added to
/// it (24), and how many words below the CFA each is saved, and one; zero where it is not.
type Packed = u64;

/// The offset of each part of [`Packed`] in bits.
const OFFSET: u32 = 8;
const PLACE_OF_FP: u32 = 32;
const PLACE_OF_SAVED: u32 = 48;

/// At the first instruction.
const BEGIN: Packed = SP as u64 | (CFA_AT_ENTRY as u64) << OFFSET;

/// States that are set aside at a time, at most. Compilers write one.
const MAX_DEPTH: usize = 4;

/// The binary logarithm of how many rules are remembered.
const REMEMBERED_BITS: u32 = 9;

/// Rules that were made, by what they say. A few are asked for all the time.
#[derive(Debug)]
pub(super) struct Rules(Box<[(Packed, Rule); 1 << REMEMBERED_BITS]>);

impl Rules {
    /// None yet.
    pub(super) fn new() -> Self {
        // No state is zero: each has a register.
        Self(Box::new([(0, Rule::MISSING); 1 << REMEMBERED_BITS]))
    }

    fn rule(&mut self, state: Packed) -> Rule {
        let place = state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REMEMBERED_BITS);
        let remembered = &mut self.0[place as usize];
        if remembered.0 != state {
            *remembered = (state, rule(state));
        }
        remembered.1
    }
}

fn rule(state: Packed) -> Rule {
    let saved = |place: u32| ((state >> place) as u16).checked_sub(1);
    let bytes = (state as u32) >> OFFSET;
    arch::usual_rule(
        state as u8,
        bytes,
        saved(PLACE_OF_FP),
        saved(PLACE_OF_SAVED),
    )
}

/// Calls `note` with each offset from which another rule holds, in code of so many bytes. None if an instruction is of another
/// kind.
pub(super) fn follow(
    instructions: &[u8],
    bytes: u32,
    rules: &mut Rules,
    mut note: impl FnMut(u32, Rule),
) -> Option<()> {
    let (mut rest, mut after) = (instructions, 0);
    let (mut state, mut aside, mut depth) = (BEGIN, [BEGIN; MAX_DEPTH], 0);
    // Noted last; at first, what no state is.
    let (mut noted, mut last) = (0, None);
    let mut tell = |after: u32, state: Packed| {
        if state != noted {
            noted = state;
            let rule = rules.rule(state);
            if last != Some(rule) {
                last = Some(rule);
                note(after, rule);
            }
        }
    };
    while let Some((&code, behind)) = rest.split_first() {
        rest = behind;
        let low = code & 0x3f;
        let delta = match code >> 6 {
            1 => u32::from(low),
            2 => {
                let words = u16::try_from(number(&mut rest)?).ok()?.checked_add(1)?;
                if let Some(place) = place(low)? {
                    state = with_saved(state, place, words);
                }
                continue;
            }
            3 => {
                if let Some(place) = place(low)? {
                    state = with_saved(state, place, 0);
                }
                continue;
            }
            _ => match low {
                0x00 => continue,
                0x02 => u8::from_le_bytes(array(&mut rest)?).into(),
                0x03 => u16::from_le_bytes(array(&mut rest)?).into(),
                0x04 => u32::from_le_bytes(array(&mut rest)?),
                0x0a => {
                    *aside.get_mut(depth)? = state;
                    depth += 1;
                    continue;
                }
                0x0b => {
                    depth = depth.checked_sub(1)?;
                    state = aside[depth];
                    continue;
                }
                0x0c => {
                    state = with_register(state, number(&mut rest)?)?;
                    state = with_bytes(state, number(&mut rest)?)?;
                    continue;
                }
                0x0d => {
                    state = with_register(state, number(&mut rest)?)?;
                    continue;
                }
                0x0e => {
                    state = with_bytes(state, number(&mut rest)?)?;
                    continue;
                }
                _ => return None,
            },
        };
        tell(after, state);
        match after.checked_add(delta) {
            Some(next) if next < bytes => after = next,
            _ => return Some(()),
        }
    }
    tell(after, state);
    Some(())
}

/// Where it is said that a register is saved; an inner none for one that is not followed. None for the return address and the
/// stack pointer: these are saved as usual.
#[expect(clippy::option_option, reason = "of no interest, or unusual")]
fn place(register: u8) -> Option<Option<u32>> {
    match register {
        FP => Some(Some(PLACE_OF_FP)),
        SAVED => Some(Some(PLACE_OF_SAVED)),
        SP => None,
        other if u16::from(other) == arch::RETURN_ADDRESS => None,
        _ => Some(None),
    }
}

/// With the CFA by another register; none for one that is not usual.
fn with_register(state: Packed, register: u64) -> Option<Packed> {
    (1..16)
        .contains(&register)
        .then_some(state & !0xff | register)
}

/// With other bytes added to the register; none where they are too many.
fn with_bytes(state: Packed, bytes: u64) -> Option<Packed> {
    (bytes < 1 << 24).then_some(state & !(0xff_ffff << OFFSET) | bytes << OFFSET)
}

/// With a register saved so many words below the CFA, and one.
fn with_saved(state: Packed, place: u32, words: u16) -> Packed {
    state & !(0xffff << place) | u64::from(words) << place
}

/// A number of at most four bytes of seven bits, the lowest first.
#[inline]
fn number(rest: &mut &[u8]) -> Option<u64> {
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
fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
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
