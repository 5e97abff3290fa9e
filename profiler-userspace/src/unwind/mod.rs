//! Unwind tables: how to get from any address of an object's code to the caller.
//!
//! In: an ELF file's bytes. Out: an [`UnwindTable`], as the kernel half walks with it
//! ([`profiler_common::abi::Row`]). Pure over bytes; never touches the kernel, never believes a size
//! that it finds in a file, and takes time and memory in proportion to the file's unwind sections.
//!
//! [`source`] finds the sections, [`eh_frame`] goes through their descriptions, [`program`] runs the
//! instructions of one, [`x86_64`] makes rules of what they say, and [`compact`] lays them out.

mod compact;
mod eh_frame;
mod expression;
pub mod loader;
pub(crate) mod offline;
mod program;
#[cfg(test)]
mod proof;
mod rules;
mod show;
mod source;
#[cfg(test)]
mod tests;
mod x86_64;

pub use rules::RuleSet;
pub use show::show;

use crate::object::{Bounded, ElfAddress};
use object::read::ReadRef;
use profiler_common::abi::{PageRows, Row, Rule, TABLE_PAGE_BITS};
use profiler_common::walk::bisect::Span;
use std::fs::File;
use std::ops::Range;

/// Why there is no table of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot be read, or is none.
    #[error("it is no ELF file that can be read")]
    NotElf,
    /// Code for a machine whose unwind instructions are not understood.
    #[error(
        "it holds code for another machine than 64-bit x86; its frame pointers can still be walked"
    )]
    OtherMachine,
    /// More than is believed of any object.
    #[error(
        "it claims more code or unwind instructions than are believed; its frame pointers can still be walked"
    )]
    TooLarge,
}

/// How to find the caller from each address of an object's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindTable {
    /// Where code is, sorted.
    pub ranges: Vec<CodeRange>,
    /// Where in the file the code lies.
    pub loads: Vec<Load>,
    /// The rows of each page of each range.
    pub pages: Vec<PageRows>,
    /// The rows of all pages. Their rules are places in `rules`.
    pub rows: Vec<Row>,
    /// The rules that the rows name.
    pub rules: Vec<Rule>,
    /// How it came about.
    pub origin: Statistics,
}

/// One executable part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// Its addresses in the object's own terms.
    pub addresses: Range<u64>,
    /// The place in [`UnwindTable::pages`] of the page in which the range begins.
    pub first_page: u32,
}

/// A part of the file that is mapped as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its bytes in the file.
    pub file: Range<u64>,
    /// The address of the first one, in the object's own terms.
    pub address: u64,
}

/// What was found in an object's unwind sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of unwind sections.
    pub section_bytes: u64,
    /// Descriptions of code (FDEs) that are in the table.
    pub descriptions: u32,
    /// Descriptions of what is no code of this object, such as functions that the linker left out.
    pub strays: u32,
    /// Descriptions of code that another one describes, too.
    pub overlaps: u32,
    /// Descriptions of which some part could not be read.
    pub broken: u32,
    /// Changes of the rule that the descriptions tell of, before compaction.
    pub changes: u32,
}

impl UnwindTable {
    /// Makes the table of an open file.
    ///
    /// # Errors
    /// See [`Error`]. An object without any unwind sections is no error: its table knows no rule.
    pub fn read(file: &File) -> Result<Self, Error> {
        Self::read_expecting(file, |_| ())
    }

    /// As [`read`](Self::read). Before the long part of the work, `expect` is told about how many bytes the table
    /// [will take](Self::bytes).
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_expecting(file: &File, expect: impl FnOnce(u64)) -> Result<Self, Error> {
        let data = &Bounded::with_budget(file, source::MAX_BYTES);
        let sources = source::Sources::find(data)?;
        // Of distributions' large objects, 0.59 to 0.87 bytes for each of the sections.
        expect(sources.bytes() / 5 * 4);
        Ok(Self::make(sources))
    }

    /// Makes the table of the ELF file in `data`.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn parse<'a, R: ReadRef<'a>>(data: R) -> Result<Self, Error> {
        source::Sources::find(data).map(Self::make)
    }

    fn make(sources: source::Sources<'_>) -> Self {
        let found = eh_frame::collect(&sources);
        let mut table = compact::lay_out(&sources.code, &found);
        table.origin.section_bytes = sources.bytes();
        table.loads = sources.loads;
        table.rules = found.rules.into_rules();
        table
    }

    /// Whether no address has a rule.
    pub fn is_empty(&self) -> bool {
        self.origin.descriptions == 0
    }

    /// How much memory the table takes in the kernel, in bytes; rules are shared and not counted.
    pub fn bytes(&self) -> usize {
        size_of_val(self.rows.as_slice()) + size_of_val(self.pages.as_slice())
    }

    /// Gives the rows the places that their rules have elsewhere; see [`RuleSet::adopt`]. The table's own
    /// list of rules is of no use from then on, and goes.
    pub fn adopt(&mut self, rules: &mut RuleSet) {
        let places = rules.adopt(&std::mem::take(&mut self.rules));
        for row in &mut self.rows {
            row.rule = places
                .get(usize::from(row.rule))
                .copied()
                .unwrap_or(RuleSet::MISSING);
        }
    }

    /// Where the [`PageRows`] of the page of `address`, which lies in code, stand in
    /// [`pages`](Self::pages).
    pub fn page_at(&self, address: u64) -> Option<u32> {
        let before = |range: &CodeRange| range.addresses.start <= address;
        let place = self.ranges.partition_point(before).checked_sub(1)?;
        let range = self.ranges.get(place)?;
        let page = page_of(address) - page_of(range.addresses.start);
        u32::try_from(page).ok()?.checked_add(range.first_page)
    }

    /// The rule for an address, found as the kernel half finds it; none outside of code.
    pub fn rule_at(&self, address: ElfAddress) -> Option<Rule> {
        let row = self.rows.get(self.row_at(address)?)?;
        self.rules.get(usize::from(row.rule)).copied()
    }

    /// The place of the row that holds at an address.
    fn row_at(&self, ElfAddress(address): ElfAddress) -> Option<usize> {
        let before = |range: &CodeRange| range.addresses.start <= address;
        let place = self.ranges.partition_point(before).checked_sub(1)?;
        let range = self.ranges.get(place)?;
        if !range.addresses.contains(&address) {
            return None;
        }
        let page = page_of(address) - page_of(range.addresses.start);
        let page = usize::try_from(page).ok()? + range.first_page as usize;
        let mut span = Span::new(*self.pages.get(page)?);
        while let Some(middle) = span.middle() {
            span = span.narrow(*self.rows.get(middle as usize)?, low_of(address));
        }
        Some(span.first() as usize)
    }
}

/// Which page of all addresses this one is in.
fn page_of(address: u64) -> u64 {
    address >> TABLE_PAGE_BITS
}

/// Where in its page an address is.
fn low_of(address: u64) -> u16 {
    (address & 0xffff) as u16
}
