//! From an address to the next of the requested ones.
//!
//! In: the requested addresses, in order. Out: for any address, the index of the first requested one that is
//! not below it, nearly always without searching. Pure.

use crate::object::ElfAddress;

/// The span of all addresses is divided into at least so many stretches, and so many more for each address.
const MIN_STRETCHES: usize = 1 << 10;
const STRETCHES_AN_ADDRESS: usize = 4;

/// The most stretches.
const MAX_STRETCHES: usize = 1 << 16;

/// Leads from any address to the first requested one that is not below it. A table has a symbol for every few
/// bytes and is asked for a few addresses, so a search is rarely necessary.
pub(super) struct Index<'a> {
    pub(super) addresses: &'a [ElfAddress],
    base: u64,
    shift: u32,
    /// For each stretch, and one past the end, the first address in or after it.
    firsts: Vec<usize>,
}

impl<'a> Index<'a> {
    /// An index of addresses in ascending order.
    pub(super) fn new(addresses: &'a [ElfAddress]) -> Self {
        let base = addresses.first().map_or(0, |first| first.0);
        let span = addresses.last().map_or(0, |last| last.0 - base);
        let wanted = addresses.len().saturating_mul(STRETCHES_AN_ADDRESS);
        let stretches = wanted.clamp(MIN_STRETCHES, MAX_STRETCHES) as u64;
        let shift = (0..u64::BITS)
            .find(|shift| span >> shift < stretches)
            .unwrap_or(0);
        let mut firsts = Vec::with_capacity(usize::try_from(stretches).unwrap_or(0) + 2);
        for (number, address) in addresses.iter().enumerate() {
            let stretch = usize::try_from((address.0 - base) >> shift).unwrap_or(usize::MAX);
            // Up to and including its own.
            while firsts.len() <= stretch {
                firsts.push(number);
            }
        }
        firsts.push(addresses.len());
        Self {
            addresses,
            base,
            shift,
            firsts,
        }
    }

    /// The index of the first address from `start` on.
    pub(super) fn first_from(&self, start: u64) -> usize {
        let Some(into) = start.checked_sub(self.base) else {
            return 0;
        };
        let stretch = usize::try_from(into >> self.shift).unwrap_or(usize::MAX);
        let Some(&[first, behind]) = self
            .firsts
            .get(stretch..)
            .and_then(|rest| rest.first_chunk())
        else {
            return self.addresses.len();
        };
        let within = &self.addresses[first..behind];
        first + within.partition_point(|address| address.0 < start)
    }
}
