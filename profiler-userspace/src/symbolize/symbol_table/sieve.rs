//! Which symbols of a table matter at all.
//!
//! In: the addresses asked for, in order, where code lies, and symbols, in any order. Out: the few that may name one of them. Nearly all others
//! are kept out by a dozen instructions without a branch, so that looking at a table takes little more than reading it.
//! Pure.
//!
//! Addresses are divided into *stretches* of one length. A symbol of at most that length covers addresses in its own
//! stretch and the next one alone; and it can be the nearest in front of an address only where no other is known to lie
//! between, and none but code. So each stretch is *live* or not, and ever fewer are.

use crate::object::ElfAddress;
use object::read::elf::Sym;
use std::ops::Range;

/// How many stretches there are, at most: a power of two, and bytes that a CPU's nearest cache holds beside the symbols.
const STRETCHES: usize = 1 << 14;

/// A stretch has two to the power of this many bytes at least: nearly all functions are shorter.
const MIN_SHIFT: u32 = 12;

/// How many symbols are looked at together.
pub(super) const FEW: usize = 128;

/// Nothing in the stretch matters but what reaches beyond the next.
const DEAD: u8 = 0;
/// A symbol may be the nearest in front of an address.
const LIVE: u8 = 1;
/// A symbol may cover an address.
const PINNED: u8 = 2;

/// Keeps out symbols that name none of the addresses. What it lets through need not name one either.
pub(super) struct Sieve {
    /// Where the first stretch begins. What lies in front of it is counted to it, and too far away to cover anything.
    base: u64,
    /// How far behind that the last stretch ends.
    reach: u64,
    shift: u32,
    /// The stretches, the highest first: number zero is for all that lies behind the last address.
    stretches: Box<[u8; STRETCHES]>,
}

impl Sieve {
    /// A sieve for addresses in ascending order, of which there is one at least, in an object with such sections of code.
    pub(super) fn new(addresses: &[ElfAddress], code: &[Option<Range<u64>>]) -> Option<Self> {
        let code = joined(code);
        // Symbols without a size reach no further than their section.
        let begins = |address: u64| {
            let before = code.partition_point(|code| code.start <= address);
            let around = code[..before].last();
            let around = around.filter(|code| code.contains(&address));
            around.map_or(address, |code| code.start)
        };
        let (first, last) = (begins(addresses.first()?.0), addresses.last()?.0);
        let span = last - first;
        // Beside those from the beginning of the code to the last address, two in front and one behind.
        let shift = (MIN_SHIFT..u64::BITS).find(|shift| span >> shift < STRETCHES as u64 - 4)?;
        let base = first.saturating_sub(2 << shift);
        let reach = (last - base).saturating_add(1 << shift);
        let stretches = vec![LIVE; STRETCHES].into_boxed_slice();
        let mut sieve = Self {
            base,
            reach,
            shift,
            stretches: stretches.try_into().ok()?,
        };
        // At the very end of all addresses there is no room to tell apart what lies behind.
        if reach < u64::MAX {
            sieve.stretches[0] = DEAD;
        }
        for address in addresses {
            let stretch = sieve.stretch(address.0);
            sieve.stretches[stretch] = PINNED;
            sieve.stretches[(stretch + 1) % STRETCHES] = PINNED;
        }
        let mut lower = 0;
        for address in addresses {
            let begins = begins(address.0);
            if begins > lower {
                sieve.narrow(lower, begins);
            }
            lower = address.0;
        }
        Some(sieve)
    }

    /// The stretch that an address lies in.
    fn stretch(&self, address: u64) -> usize {
        let from_end = self.reach.saturating_sub(address.saturating_sub(self.base));
        // It is less than their number, which the compiler does not know.
        (from_end >> self.shift) as usize % STRETCHES
    }

    /// The places of those of `few` that may matter.
    pub(super) fn sift<'l, S: Sym>(
        &self,
        few: &[S],
        endian: S::Endian,
        places: &'l mut [u8; FEW],
    ) -> &'l [u8] {
        let mut kept = 0;
        for (place, symbol) in (0..).zip(few) {
            let stretch = self.stretches[self.stretch(symbol.st_value(endian).into())];
            let beyond = symbol.st_size(endian).into() >> self.shift;
            // Written in any case, and overwritten if it does not matter.
            places[kept % FEW] = place;
            kept += usize::from(u64::from(stretch) | beyond != 0);
        }
        &places[..kept]
    }

    /// Of the symbols from `lower` to `start`, none matters that does not cover anything: what lies at `start` is nearer to
    /// the next address, and no address lies between.
    pub(super) fn narrow(&mut self, lower: u64, start: u64) {
        for stretch in self.stretch(start) + 1..=self.stretch(lower) {
            if self.stretches[stretch] == LIVE {
                self.stretches[stretch] = DEAD;
            }
        }
    }
}

/// Sections in order, as one where they overlap or touch.
fn joined(sections: &[Option<Range<u64>>]) -> Vec<Range<u64>> {
    let mut sections: Vec<Range<u64>> = sections.iter().flatten().cloned().collect();
    sections.sort_unstable_by_key(|section| section.start);
    sections.dedup_by(|next, known| {
        let touches = next.start <= known.end;
        if touches {
            known.end = known.end.max(next.end);
        }
        touches
    });
    sections
}
