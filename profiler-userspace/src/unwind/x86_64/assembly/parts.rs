//! Stretches of code, and places in them.
//!
//! In: bytes and their addresses. Out: places, which count the bytes of all stretches. Never says what an instruction does.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use std::ops::Range;

/// Functions begin at multiples of this.
const ALIGNMENT: u64 = 16;

/// A stretch of code.
#[derive(Debug)]
pub(super) struct Part<'c> {
    pub(super) address: u64,
    pub(super) bytes: &'c [u8],
    /// The place of its first byte, counted over all parts.
    pub(super) first: u32,
}

/// All stretches, in the order of their addresses.
#[derive(Debug)]
pub(super) struct Parts<'c>(Vec<Part<'c>>);

impl<'c> Parts<'c> {
    /// These stretches: ascending, each with the address of its first byte, with less than 2²⁸ bytes together.
    pub(super) fn new(all: impl Iterator<Item = (u64, &'c [u8])>) -> Self {
        let mut first = 0;
        let part = |(address, bytes): (u64, &'c [u8])| {
            let part = Part {
                address,
                bytes,
                first,
            };
            first += bytes.len() as u32;
            part
        };
        Self(all.map(part).collect())
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        self.0.iter().map(|part| part.bytes.len()).sum()
    }

    /// The place of an address.
    pub(super) fn place(&self, address: u64) -> Option<u32> {
        let behind = self.0.partition_point(|part| part.address <= address);
        let part = self.0[..behind].last()?;
        let into = address - part.address;
        (into < part.bytes.len() as u64).then_some(part.first + into as u32)
    }

    /// The part that a place is in, and the offset there.
    pub(super) fn at(&self, place: u32) -> Option<(&Part<'c>, usize)> {
        let behind = self.0.partition_point(|part| part.first <= place);
        let part = self.0[..behind].last()?;
        let into = (place - part.first) as usize;
        (into < part.bytes.len()).then_some((part, into))
    }

    /// The places of the stretch that a place is in.
    pub(super) fn around(&self, place: u32) -> Range<u32> {
        self.at(place).map_or(place..place, |(part, _)| {
            part.first..part.first + part.bytes.len() as u32
        })
    }

    /// Whether a function can begin at a place.
    pub(super) fn is_aligned(&self, place: u32) -> bool {
        self.at(place).is_some_and(|(part, into)| {
            part.address
                .wrapping_add(into as u64)
                .is_multiple_of(ALIGNMENT)
        })
    }

    /// The first place from this one on that is no padding.
    pub(super) fn skip_padding(&self, place: u32) -> u32 {
        let Some((part, into)) = self.at(place) else {
            return place;
        };
        let mut decoder = Decoder::with_ip(64, &part.bytes[into..], 0, DecoderOptions::NONE);
        let mut skipped = 0;
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if !is_padding(&instruction) {
                break;
            }
            skipped = decoder.position() as u32;
        }
        place.saturating_add(skipped)
    }
}

/// Whether an instruction is what linkers and assemblers fill up with.
pub(super) fn is_padding(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Nop | Mnemonic::Int3 => true,
        // `xchg ax, ax` and the like.
        Mnemonic::Xchg => {
            instruction.op0_register() == instruction.op1_register()
                && instruction.op0_register() != Register::None
        }
        _ => false,
    }
}
