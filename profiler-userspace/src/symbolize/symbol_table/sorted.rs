//! A symbol table in the order of addresses, for one that is asked again and again.
//!
//! In: a table of 64 bits, little endian, read once; later, addresses. Out: the few symbols that may name these, so that all others need not
//! be read again. Which of them do is decided as in the whole table.

use super::{BLOCK_BYTES, each_block, function, lies_in};
use crate::object::{Elf, ElfAddress, SymbolTable};
use object::elf::Sym64;
use object::{Endianness, LittleEndian};
use std::cmp::Reverse;
use std::fs::File;

/// Tables with more functions are not kept: they would take more than 16 MiB.
const MAX_FUNCTIONS: usize = 1 << 20;

/// So many functions in a row are passed over together where all of them end before an address.
const GROUP: usize = 64;

/// So many functions before an address are looked at until one covers it. Honest ones hardly overlap.
const MAX_LOOKS: usize = 4096;

/// With more symbols near addresses than these, the whole table is read.
const MAX_NEAR: usize = 1 << 16;

/// A symbol as the table has it.
pub(super) type Symbol = Sym64<LittleEndian>;

/// The functions of a table, by where they begin.
#[derive(Debug, Default)]
pub(in crate::symbolize) struct Sorted {
    starts: Vec<u64>,
    sizes: Vec<u32>,
    /// Their numbers in the table.
    numbers: Vec<u32>,
    /// Of each group where the last of its functions ends, or of those in front of it.
    reach: Vec<u64>,
}

impl Sorted {
    /// Reads a table; none if it has too many functions, or some that no honest one has.
    pub(in crate::symbolize) fn read(file: &File, elf: &Elf, table: &SymbolTable) -> Option<Self> {
        if !elf.layout.wide || elf.layout.endian != Endianness::Little {
            return None;
        }
        let mut all: Vec<(u64, u32, u32)> = Vec::new();
        each_block::<Symbol>(file, table, |first, symbols| {
            for (number, symbol) in (first..).zip(symbols) {
                let Some(function) = function(symbol, LittleEndian) else {
                    continue;
                };
                // As where the whole table is read.
                if function.size == 0 && !lies_in(elf, function.section, function.start) {
                    continue;
                }
                let size = u32::try_from(function.size).ok()?;
                all.push((function.start, u32::try_from(number).ok()?, size));
            }
            (all.len() <= MAX_FUNCTIONS).then_some(())
        })?;
        all.sort_unstable();
        let mut reach = 0;
        let groups = all.chunks(GROUP).map(|group| {
            let ends = group.iter().map(|(start, _, size)| end(*start, *size));
            reach = ends.fold(reach, u64::max);
            reach
        });
        Some(Self {
            reach: groups.collect(),
            starts: all.iter().map(|(start, ..)| *start).collect(),
            sizes: all.iter().map(|(.., size)| *size).collect(),
            numbers: all.iter().map(|(_, number, _)| *number).collect(),
        })
    }

    /// The memory that it takes, in bytes.
    pub(in crate::symbolize) fn bytes(&self) -> usize {
        size_of_val(self.starts.as_slice())
            + size_of_val(self.sizes.as_slice())
            + size_of_val(self.numbers.as_slice())
            + size_of_val(self.reach.as_slice())
    }

    /// The numbers of all symbols that may name addresses, in the order in which a whole table is read; none if that takes too long.
    pub(super) fn near(&self, addresses: &[ElfAddress]) -> Option<Vec<u32>> {
        let mut numbers = Vec::new();
        for address in addresses {
            let behind = self.starts.partition_point(|start| *start <= address.0);
            let Some(nearest) = behind.checked_sub(1) else {
                continue;
            };
            self.add_all_at(self.starts[nearest], &mut numbers);
            if let Some(start) = self.covering(address.0, nearest)? {
                self.add_all_at(start, &mut numbers);
            }
            if numbers.len() > MAX_NEAR {
                return None;
            }
        }
        // Each block is read from its end on.
        let block = |number: u32| number as usize / (BLOCK_BYTES / size_of::<Symbol>());
        numbers.sort_unstable_by_key(|number| (block(*number), Reverse(*number)));
        numbers.dedup();
        Some(numbers)
    }

    /// Adds all functions that begin at an address.
    fn add_all_at(&self, start: u64, numbers: &mut Vec<u32>) {
        let first = self.starts.partition_point(|it| *it < start);
        let those = self.starts[first..].iter().take_while(|it| **it == start);
        let count = those.take(MAX_NEAR + 1).count();
        numbers.extend(&self.numbers[first..first + count]);
    }

    /// Where the innermost function begins that covers an address, of those up to a place; none at all if there are too many.
    #[expect(
        clippy::option_option,
        reason = "none that covers it, and not known, are different"
    )]
    fn covering(&self, address: u64, nearest: usize) -> Option<Option<u64>> {
        for place in (0..=nearest).rev().take(MAX_LOOKS) {
            if self.reach[place / GROUP] <= address {
                return Some(None);
            }
            if end(self.starts[place], self.sizes[place]) > address {
                return Some(Some(self.starts[place]));
            }
        }
        (nearest < MAX_LOOKS).then_some(None)
    }
}

/// Where a function ends.
fn end(start: u64, size: u32) -> u64 {
    start.saturating_add(u64::from(size))
}
