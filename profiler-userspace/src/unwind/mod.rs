//! Unwind tables: how to get from any address in an object's code to the caller.
//!
//! In: an ELF file's bytes. Out: an [`UnwindTable`] of the rows the kernel half walks with
//! ([`profiler_common::abi::TableRow`]). Making one is pure over bytes, takes time and memory in proportion to the
//! file's unwind sections, and trusts no size in a file. Only [`loader`] and [`offline`] touch the machine.
//!
//! [`source`] finds the sections, [`eh_frame`] reads their descriptions, those of a large one as far as [`index`] says, [`program`] runs the instructions of
//! one, [`arch`] turns the result into rules, [`go`] makes those of Go's functions, [`arch::assembly`] those of code that
//! nothing describes, and [`compact`] lays them out.

mod compact;
mod eh_frame;
mod expression;
mod found;
mod functions;
mod go;
mod index;
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

pub use functions::stretches_around;
pub use rules::RuleSet;
pub use show::show;

use crate::code::{self, GoFunctions, WithoutTable};
use crate::object::{ElfAddress, FrameIndex, FrameSections, Image, NoImage, RegularFile};
use profiler_common::abi::{PageRows, Rule, TABLE_PAGE_BITS, TableRow};
use profiler_common::walk::bisect::Span;
use std::fs::File;
use std::ops::Range;
use x86_64 as arch;

/// How many bytes of Go's own table make one of rows, at least.
const GO_TABLE_SHARE: u64 = 4;

/// Why an object has no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot be read, or is not an ELF file.
    #[error("it is no ELF file that can be read")]
    NotElf,
    /// Its machine's unwind instructions are not supported.
    #[error(
        "it holds code for another machine than {}; its frame pointers can still be walked",
        crate::object::arch::NAME
    )]
    OtherMachine,
    /// It exceeds a limit that no honest object comes near.
    #[error(
        "it claims more code or unwind instructions than are believed; its frame pointers can still be walked"
    )]
    TooLarge,
}

impl From<NoImage> for Error {
    fn from(reason: NoImage) -> Self {
        match reason {
            NoImage::NotElf => Self::NotElf,
            NoImage::OtherMachine => Self::OtherMachine,
        }
    }
}

/// How much of a file is read for its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// As below, but of large tables only which code they describe: the rest where walks come to.
    Outline,
    /// Its tables, and a sample of the rest, which tells whether that keeps frame pointers: milliseconds.
    Described,
    /// Also code that nothing describes: tenths of a second, where there is much of it.
    Code,
}

/// How to find the caller from each address of an object's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindTable {
    /// The address ranges of code, sorted.
    pub ranges: Vec<CodeRange>,
    /// Where the code is in the file.
    pub loads: Vec<Load>,
    /// The rows of each page of each range.
    pub pages: Vec<PageRows>,
    /// The rows of all pages. Their rules are indices into `rules`.
    pub rows: Vec<TableRow>,
    /// The rules the rows refer to.
    pub rules: Vec<Rule>,
    /// Statistics of the unwind sections that it was made from.
    pub origin: Statistics,
    /// Where the descriptions are that were left out.
    pub(crate) index: Option<FrameSections>,
}

/// One executable part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// Its addresses, before relocation.
    pub addresses: Range<u64>,
    /// The index in [`UnwindTable::pages`] of its first page.
    pub first_page: u32,
}

/// A segment of the file that is mapped as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its bytes in the file.
    pub file: Range<u64>,
    /// The address of its first byte, before relocation.
    pub address: u64,
}

/// Statistics of an object's unwind sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of unwind sections.
    pub section_bytes: u64,
    /// Descriptions (FDEs) of code that is in the table.
    pub descriptions: u32,
    /// Descriptions of code that is not in this object, such as functions the linker dropped.
    pub strays: u32,
    /// Descriptions of code that another description covers, too.
    pub overlaps: u32,
    /// Descriptions that could be read only in part.
    pub broken: u32,
    /// Rule changes in the descriptions, before compaction.
    pub changes: u32,
    /// Bytes of code that nothing describes.
    pub undescribed_bytes: u64,
    /// Those of them for which rows were read from the code itself.
    pub read_bytes: u64,
    /// Those of them that keep frame pointers, as a sample says.
    pub kept_bytes: u64,
    /// Whether there is code that nothing describes and that was not read.
    pub has_unread: bool,
}

impl UnwindTable {
    /// Makes the table of an open file, [as deep](Depth::Code) as can be.
    ///
    /// # Errors
    /// See [`Error`]. An object without unwind sections is no error: its table has no rule.
    pub fn read(file: &File) -> Result<Self, Error> {
        Self::read_expecting(file, Depth::Code, None, |_| ())
    }

    /// As [`read`](Self::read), to this depth. Calls `expect` with the estimated [size](Self::bytes) of the table before the
    /// long part of the work.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_expecting(
        file: &File,
        depth: Depth,
        kept: Option<Range<u64>>,
        expect: impl FnOnce(u64),
    ) -> Result<Self, Error> {
        let image = &Image::read(file)?;
        let context = code::start_context(image);
        // Its rule is put in the place of another.
        let is_outline = depth == Depth::Outline && context.is_none();
        let (sources, unread) = sources(image, is_outline)?;
        let mut go = GoFunctions::find(image);
        // 0.59 to 0.87 bytes of table for each byte of the sections, in distributions' large objects.
        let of_go = go.as_ref().map_or(0, GoFunctions::table_bytes);
        expect(sources.bytes() / 5 * 4 + of_go / GO_TABLE_SHARE);
        let go = go.as_mut();
        Ok(Self::make(sources, unread, go, context, |described| {
            WithoutTable::find(image, described, depth == Depth::Code, kept)
        }))
    }

    /// Makes the table of the ELF file in `data`, without what only Go's own table knows, or the code itself.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn parse(data: &[u8]) -> Result<Self, Error> {
        let file = RegularFile::in_memory("object", data).map_err(|_| Error::NotElf)?;
        source::Sources::find(&Image::read(&file.file)?, source::Large::Read)
            .map(|sources| Self::make(sources, Vec::new(), None, None, |_| Vec::new()))
    }

    fn make(
        sources: source::Sources,
        unread: Vec<Range<u64>>,
        mut go: Option<&mut GoFunctions<'_>>,
        context: Option<u64>,
        without_table: impl FnOnce(&[Range<u64>]) -> Vec<WithoutTable>,
    ) -> Self {
        let mut found = eh_frame::collect(&sources, unread, go.as_deref_mut());
        if let Some(begin) = context {
            found.end_stacks_at(begin);
        }
        for code in without_table(&found.addresses()) {
            match code {
                WithoutTable::KeepsFramePointers(ranges) => {
                    found.add_where_silent(|found| found.add_kept(ranges));
                }
                WithoutTable::EndsStacks(ranges) => {
                    found.add_where_silent(|found| found.add_alike(ranges, Rule::ROOT));
                }
                WithoutTable::Readable(Some(code)) => {
                    found.add_where_silent(|found| arch::assembly::describe(&code, found));
                }
                WithoutTable::Readable(None) => found.statistics.has_unread = true,
            }
        }
        let mut table = compact::lay_out(&sources.code, &found);
        let of_go = go.map_or(0, |go| go.table_bytes());
        table.origin.section_bytes = sources.bytes() + of_go;
        table.loads = sources.loads;
        table.index = sources.index;
        table.rules = found.rules.into_rules();
        table
    }

    /// The address of a position in the file, if it is in code.
    pub(crate) fn address_of(&self, position: u64) -> Option<u64> {
        let load = self
            .loads
            .iter()
            .find(|load| load.file.contains(&position))?;
        Some(load.address + (position - load.file.start))
    }

    /// Whether no address has a rule.
    pub fn is_empty(&self) -> bool {
        let Statistics {
            descriptions,
            read_bytes,
            kept_bytes,
            has_unread,
            ..
        } = self.origin;
        descriptions == 0 && read_bytes == 0 && kept_bytes == 0 && !has_unread
    }

    /// The table's memory in the kernel, in bytes, without the shared rules.
    pub fn bytes(&self) -> usize {
        size_of_val(self.rows.as_slice()) + size_of_val(self.pages.as_slice())
    }

    /// Replaces the rows' rule numbers by those in the shared list; see [`RuleSet::adopt`]. The table's own
    /// list of rules is dropped.
    pub fn adopt(&mut self, rules: &mut RuleSet) {
        let places = rules.adopt(&std::mem::take(&mut self.rules));
        for row in &mut self.rows {
            row.rule = places
                .get(usize::from(row.rule))
                .copied()
                .unwrap_or(RuleSet::MISSING);
        }
    }

    /// The index in [`pages`](Self::pages) of the [`PageRows`] for `address`, which must be in code.
    pub fn page_at(&self, address: u64) -> Option<u32> {
        let range = self.range_from(address)?;
        let page = page_of(address) - page_of(range.addresses.start);
        u32::try_from(page).ok()?.checked_add(range.first_page)
    }

    /// The rows of a page, by its index in [`pages`](Self::pages).
    pub(crate) fn rows_of(&self, page: u32) -> &[TableRow] {
        let Some(&PageRows { first, count }) = self.pages.get(page as usize) else {
            return &[];
        };
        let rows = first as usize..(first + count) as usize;
        self.rows.get(rows).unwrap_or_default()
    }

    /// The rule for an address, found as the kernel half finds it; none outside of code.
    pub fn rule_at(&self, address: ElfAddress) -> Option<Rule> {
        let row = self.rows.get(self.row_at(address)?)?;
        self.rules.get(usize::from(row.rule)).copied()
    }

    /// The rule for an address, which the descriptions of its file have and the table leaves out.
    fn described_at(&self, file: &File, address: ElfAddress) -> Option<Rule> {
        let mut index = FrameIndex::open(file, self.index.as_ref()?)?;
        let code: Vec<Range<u64>> = self
            .ranges
            .iter()
            .map(|range| range.addresses.clone())
            .collect();
        let alone = address.0..address.0.checked_add(1)?;
        let found = index::read(&mut index, std::slice::from_ref(&alone), &code);
        let mut read = compact::lay_out(&[alone], &found);
        read.rules = found.rules.rules().to_vec();
        match read.rule_at(address)? {
            Rule::MISSING if self.origin.kept_bytes > 0 => Some(Rule::FRAME_POINTER),
            rule => Some(rule),
        }
    }

    /// The last range that begins at or before an address.
    fn range_from(&self, address: u64) -> Option<&CodeRange> {
        let before = |range: &CodeRange| range.addresses.start <= address;
        let place = self.ranges.partition_point(before).checked_sub(1)?;
        self.ranges.get(place)
    }

    /// The index of the row that holds at an address.
    fn row_at(&self, ElfAddress(address): ElfAddress) -> Option<usize> {
        if !self.range_from(address)?.addresses.contains(&address) {
            return None;
        }
        let page = self.page_at(address)? as usize;
        let mut span = Span::new(*self.pages.get(page)?);
        while let Some(middle) = span.middle() {
            span = span.narrow(*self.rows.get(middle as usize)?, low_of(address));
        }
        Some(span.first() as usize)
    }
}

/// Sources of a table, and the code whose descriptions were not read, if an outline is enough.
fn sources(
    image: &Image<'_>,
    is_outline: bool,
) -> Result<(source::Sources, Vec<Range<u64>>), Error> {
    use source::{Large, Sources};
    if is_outline {
        let mut sources = Sources::find(image, Large::Left)?;
        let Some(places) = &mut sources.index else {
            return Ok((sources, Vec::new()));
        };
        let index = FrameIndex::open(image.file, places);
        let unread = index.and_then(|mut index| {
            let unread = index::described(&mut index, &sources.code)?;
            places.steps = index.steps();
            Some(unread)
        });
        if let Some(unread) = unread {
            return Ok((sources, unread));
        }
    }
    Ok((Sources::find(image, Large::Read)?, Vec::new()))
}

/// The number of the page that contains an address.
fn page_of(address: u64) -> u64 {
    address >> TABLE_PAGE_BITS
}

/// The offset of an address in its page.
fn low_of(address: u64) -> u16 {
    (address & 0xffff) as u16
}
