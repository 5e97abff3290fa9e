//! Descriptions of functions that keep their return address where calls put it, read in one pass over their bytes: all but a few.
//!
//! In: the instructions of a description whose shared entry says no more than that. Out: from which offset on which rule holds.
//! Others are left to the other readers, which say the same of these.

use super::super::x86_64;
use super::usual::{array, number};
use profiler_common::abi::Rule;
use profiler_common::walk::x86_64::{RBP, RBX, RSP};

/// Where the CFA is, and where rbp and rbx are saved, in one word: the register (8 bits), the bytes added to it (24), and how many
/// words below the CFA each is saved, and one; zero where it is not.
type Known = u64;

/// The offset of each part of [`Known`] in bits.
const BYTES: u32 = 8;
const SAVED_RBP: u32 = 32;
const SAVED_RBX: u32 = 48;

/// At the first instruction.
const BEGIN: Known = RSP as u64 | 8 << BYTES;

/// States that are set aside at a time, at most. Compilers write one.
const MAX_DEPTH: usize = 4;

/// The binary logarithm of how many rules are remembered.
const REMEMBERED_BITS: u32 = 9;

/// Rules that were made, by what they say. A few are asked for all the time.
#[derive(Debug)]
pub(super) struct Rules(Box<[(Known, Rule); 1 << REMEMBERED_BITS]>);

impl Rules {
    /// None yet.
    pub(super) fn new() -> Self {
        // No state is zero: each has a register.
        Self(Box::new([(0, Rule::MISSING); 1 << REMEMBERED_BITS]))
    }

    fn rule(&mut self, known: Known) -> Rule {
        let place = known.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REMEMBERED_BITS);
        let remembered = &mut self.0[place as usize];
        if remembered.0 != known {
            *remembered = (known, rule(known));
        }
        remembered.1
    }
}

fn rule(known: Known) -> Rule {
    let saved = |place: u32| ((known >> place) as u16).checked_sub(1);
    let bytes = (known as u32) >> BYTES;
    x86_64::plain(known as u8, bytes, saved(SAVED_RBP), saved(SAVED_RBX))
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
    let (mut known, mut aside, mut depth) = (BEGIN, [BEGIN; MAX_DEPTH], 0);
    // Noted last; at first, what no state is.
    let (mut noted, mut last) = (0, None);
    let mut tell = |after: u32, known: Known| {
        if known != noted {
            noted = known;
            let rule = rules.rule(known);
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
                    known = with_saved(known, place, words);
                }
                continue;
            }
            3 => {
                if let Some(place) = place(low)? {
                    known = with_saved(known, place, 0);
                }
                continue;
            }
            _ => match low {
                0x00 => continue,
                0x02 => u8::from_le_bytes(array(&mut rest)?).into(),
                0x03 => u16::from_le_bytes(array(&mut rest)?).into(),
                0x04 => u32::from_le_bytes(array(&mut rest)?),
                0x0a => {
                    *aside.get_mut(depth)? = known;
                    depth += 1;
                    continue;
                }
                0x0b => {
                    depth = depth.checked_sub(1)?;
                    known = aside[depth];
                    continue;
                }
                0x0c => {
                    known = with_register(known, number(&mut rest)?)?;
                    known = with_bytes(known, number(&mut rest)?)?;
                    continue;
                }
                0x0d => {
                    known = with_register(known, number(&mut rest)?)?;
                    continue;
                }
                0x0e => {
                    known = with_bytes(known, number(&mut rest)?)?;
                    continue;
                }
                _ => return None,
            },
        };
        tell(after, known);
        match after.checked_add(delta) {
            Some(next) if next < bytes => after = next,
            _ => return Some(()),
        }
    }
    tell(after, known);
    Some(())
}

/// Where it is said that a register is saved; an inner none for one that is not followed. None for the return address and the
/// stack pointer: these are saved as usual.
#[expect(clippy::option_option, reason = "of no interest, or unusual")]
fn place(register: u8) -> Option<Option<u32>> {
    match register {
        RBP => Some(Some(SAVED_RBP)),
        RBX => Some(Some(SAVED_RBX)),
        RSP => None,
        other if u16::from(other) == x86_64::RETURN_ADDRESS => None,
        _ => Some(None),
    }
}

/// With the CFA by another register; none for one that is not usual.
fn with_register(known: Known, register: u64) -> Option<Known> {
    (1..16)
        .contains(&register)
        .then_some(known & !0xff | register)
}

/// With other bytes added to the register; none where they are too many.
fn with_bytes(known: Known, bytes: u64) -> Option<Known> {
    (bytes < 1 << 24).then_some(known & !(0xff_ffff << BYTES) | bytes << BYTES)
}

/// With a register saved so many words below the CFA, and one.
fn with_saved(known: Known, place: u32, words: u16) -> Known {
    known & !(0xffff << place) | u64::from(words) << place
}
