//! Code that no table describes, and where functions may begin in it.
//!
//! In: an open ELF file, and the code that is described. Out: the rest, and the addresses in it to which symbols, calls,
//! relocations and data lead. Described code is searched for the bytes of calls and addresses; what is found counts
//! only where an instruction begins. Files may be hostile: every read has a bound.

use super::arch::padding::{ALIGNMENT, is_padding};
use super::arch::start::is_start;
use super::arch::{context, references};
use super::kept;
use super::listed::listed;
use super::{relocations, start};
use crate::object::image::read_at;
use crate::object::{Elf, Image, Part};
use std::fs::File;
use std::ops::Range;

/// The most undescribed code of one file that is considered, in bytes: a few seconds' work.
const MAX_BYTES: u64 = 32 << 20;

/// How much of a file's code and data is searched for addresses, in bytes: a second's work.
const MAX_SEARCHED_BYTES: u64 = 512 << 20;

/// How much is searched at a time, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// The most addresses that are kept.
const MAX_FOUND: usize = 1 << 20;

/// Between described functions, so little is padding.
const PADDING_BYTES: u64 = 16;

/// How much code is read at the entry point, in bytes.
const START_BYTES: usize = 16;

/// Code that no table describes, by the way in which it is walked.
#[derive(Debug)]
pub(crate) enum WithoutTable {
    /// It keeps frame pointers: these ranges, ascending and disjoint.
    KeepsFramePointers(Vec<Range<u64>>),
    /// Stacks end here: the last bytes before addresses to which the first functions of coroutines return.
    EndsStacks(Vec<Range<u64>>),
    /// It can be read. These are its bytes, where reading was asked for.
    Readable(Option<Undescribed>),
}

impl WithoutTable {
    /// That of a file, other than in the `described` ranges, which ascend by their start. What can be read is, if `reads` says so.
    /// `kept`: code that is known to keep frame pointers.
    pub(crate) fn find(
        image: &Image<'_>,
        described: &[Range<u64>],
        reads: bool,
        kept: Option<Range<u64>>,
    ) -> Vec<Self> {
        let mut known = described.to_vec();
        known.extend(kept.clone());
        known.sort_by_key(|range| range.start);
        let gaps = gaps(image, &known);
        let mut found: Vec<Self> = kept
            .map(|kept| Self::KeepsFramePointers(vec![kept]))
            .into_iter()
            .collect();
        if gaps.is_empty() {
            return found;
        }
        let ends = ends_of_stacks(image.file, &gaps);
        if !ends.is_empty() {
            found.push(Self::EndsStacks(ends));
        }
        if kept::keeps_frame_pointers(image.file, &gaps) {
            let ranges = gaps.iter().map(Part::addresses).collect();
            found.push(Self::KeepsFramePointers(ranges));
        } else {
            let read = reads.then(|| Undescribed::in_gaps(image, &known, gaps));
            found.push(Self::Readable(read.flatten()));
        }
        found
    }
}

/// Code that no table describes.
#[derive(Debug, Default)]
pub(crate) struct Undescribed {
    /// Its addresses and bytes, ascending and disjoint.
    pub(crate) parts: Vec<(u64, Vec<u8>)>,
    /// Where functions begin: symbols and calls say so.
    pub(crate) certain: Vec<u64>,
    /// Where functions probably begin: their addresses are taken.
    pub(crate) likely: Vec<u64>,
    /// Where the program is started.
    pub(crate) started: Option<u64>,
}

impl Undescribed {
    /// As [`WithoutTable::find`], whether it keeps frame pointers or not.
    #[cfg(test)]
    pub(crate) fn read(image: &Image<'_>, described: &[Range<u64>]) -> Option<Self> {
        Self::in_gaps(image, described, gaps(image, described))
    }

    fn in_gaps(image: &Image<'_>, described: &[Range<u64>], gaps: Vec<Part>) -> Option<Self> {
        let mut found = Self::code(image.file, gaps)?;
        found.find_beginnings(image, described);
        Some(found)
    }

    /// The code alone; none if there is none.
    fn code(file: &File, gaps: Vec<Part>) -> Option<Self> {
        let mut left = MAX_BYTES;
        let mut found = Self::default();
        for gap in gaps {
            let bytes = gap.bytes.min(left);
            let bytes = read_at(file, gap.offset, usize::try_from(bytes).unwrap_or(0));
            if !is_padding(&bytes, gap.address) {
                left -= bytes.len() as u64;
                found.parts.push((gap.address, bytes));
            }
        }
        (!found.parts.is_empty()).then_some(found)
    }

    /// Whether an address is in it.
    fn contains(&self, address: u64) -> bool {
        let behind = self.parts.partition_point(|part| part.0 <= address);
        let part = self.parts[..behind].last();
        part.is_some_and(|(start, bytes)| address - start < bytes.len() as u64)
    }

    fn find_beginnings(&mut self, image: &Image<'_>, described: &[Range<u64>]) {
        let started = Some(image.start()).filter(|&start| {
            // Also the loader is started by the kernel; other libraries' entries are of no use.
            let code = image.bytes(start, START_BYTES);
            self.contains(start) && (image.entry() == Some(start) || is_start(&code))
        });
        let start = start::Start::find(image);
        let (mut certain, mut likely) = (listed(image), Vec::new());
        certain.extend(start.addresses().filter(|&at| Some(at) != started));
        if let Some(elf) = Elf::read(image.file) {
            elf.each_function(image.file, |function| {
                // The part of a function that is rarely run begins in its middle.
                if !function.name.ends_with(b".cold") {
                    certain.extend(function.address.map(|address| address.0));
                }
            });
        }
        // Data also holds the labels of computed jumps, such as those of interpreters' loops, which are seldom aligned.
        let is_likely = |address: u64| address.is_multiple_of(ALIGNMENT) && self.contains(address);
        relocations::each_address(image, |address| {
            if is_likely(address) {
                likely.push(address);
            }
        });
        let mut search = Search {
            wanted: self,
            bounds: self.bounds(),
            left: MAX_SEARCHED_BYTES,
            references: Vec::new(),
        };
        if image.is_fixed() {
            // Elsewhere the loader writes all addresses.
            for part in image.data() {
                search.words(image.file, part, &mut likely);
            }
        }
        for &part in &image.code {
            search.code(image.file, part);
        }
        let references = search.references;
        confirm(image, described, references, |reference| {
            match reference.is_call {
                true => certain.push(reference.target),
                false => likely.push(reference.target),
            }
        });
        for all in [&mut certain, &mut likely] {
            all.retain(|&address| self.contains(address));
            all.sort_unstable();
            all.dedup();
        }
        self.certain = certain;
        self.likely = likely;
        self.started = started;
    }

    fn bounds(&self) -> Range<u64> {
        let end = |part: &(u64, Vec<u8>)| part.0.saturating_add(part.1.len() as u64);
        self.parts.first().map_or(0, |part| part.0)..self.parts.last().map_or(0, end)
    }
}

/// Code outside of the `described` ranges.
pub(super) fn gaps(image: &Image<'_>, described: &[Range<u64>]) -> Vec<Part> {
    let mut gaps = Vec::new();
    let mut reached = 0;
    for part in &image.code {
        let code = part.addresses();
        let mut at = code.start.max(reached);
        let mut add = |gap: Range<u64>| {
            if gap.start < gap.end && gap.end <= code.end {
                gaps.push(Part {
                    address: gap.start,
                    offset: part.offset.saturating_add(gap.start - part.address),
                    bytes: gap.end - gap.start,
                });
            }
        };
        let first = described.partition_point(|range| range.end <= at);
        for range in described.get(first..).unwrap_or_default() {
            if range.start >= code.end {
                break;
            }
            let is_padding = range.start.saturating_sub(at) < PADDING_BYTES
                && range.start.is_multiple_of(PADDING_BYTES);
            if !is_padding {
                add(at..range.start);
            }
            at = at.max(range.end);
        }
        add(at..code.end);
        reached = at.max(code.end);
    }
    gaps
}

/// The bytes before addresses to which the first functions of coroutines return. What makes these is a few hundred bytes
/// of assembly; large parts without descriptions are of another kind.
fn ends_of_stacks(file: &File, gaps: &[Part]) -> Vec<Range<u64>> {
    let mut left = MAX_BYTES;
    let mut ends = Vec::new();
    for gap in gaps.iter().filter(|gap| gap.bytes <= BLOCK_BYTES as u64) {
        let bytes = usize::try_from(gap.bytes.min(left)).unwrap_or(0);
        let code = read_at(file, gap.offset, bytes);
        left -= code.len() as u64;
        let found = context::fcontext_ends(&code).map(|end| gap.address + end as u64);
        ends.extend(found.map(|end| end - 1..end));
    }
    ends
}

/// Bytes that may be an instruction that refers to undescribed code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reference {
    /// Where the instruction is.
    at: u64,
    /// The address that it refers to.
    target: u64,
    is_call: bool,
}

/// Searches bytes for addresses.
struct Search<'u> {
    wanted: &'u Undescribed,
    bounds: Range<u64>,
    left: u64,
    references: Vec<Reference>,
}

impl Search<'_> {
    /// Calls `visit` with the blocks of a part and their addresses, each with the first bytes of the next.
    fn blocks(&mut self, file: &File, part: Part, visit: &mut dyn FnMut(&mut Self, u64, &[u8])) {
        /// The longest thing that is searched.
        const OVERLAP: usize = 8;
        let size = part.bytes.min(self.left);
        self.left -= size;
        let mut at = 0;
        while at < size {
            let offset = part.offset.saturating_add(at);
            let most = usize::try_from(size - at).unwrap_or(usize::MAX);
            let block = read_at(file, offset, most.min(BLOCK_BYTES + OVERLAP));
            if block.is_empty() {
                return;
            }
            visit(self, part.address.wrapping_add(at), &block);
            at += BLOCK_BYTES as u64;
        }
    }

    /// Whether an address is of undescribed code.
    fn wants(&self, address: u64) -> bool {
        self.bounds.contains(&address) && self.wanted.contains(address)
    }

    /// Finds addresses in data.
    fn words(&mut self, file: &File, part: Part, found: &mut Vec<u64>) {
        self.blocks(file, part, &mut |search, _, block| {
            for word in block.as_chunks::<8>().0 {
                let word = u64::from_le_bytes(*word);
                let is_likely = word.is_multiple_of(ALIGNMENT) && search.wants(word);
                if is_likely && found.len() < MAX_FOUND {
                    found.push(word);
                }
            }
        });
    }

    /// Finds what may be instructions that refer to other code.
    fn code(&mut self, file: &File, part: Part) {
        self.blocks(file, part, &mut |search, address, block| {
            for (place, window) in block.windows(references::BYTES).enumerate() {
                let at = address.wrapping_add(place as u64);
                let Some((target, is_call)) = references::target(window, at) else {
                    continue;
                };
                if search.wants(target) && search.references.len() < MAX_FOUND {
                    search.references.push(Reference {
                        at,
                        target,
                        is_call,
                    });
                }
            }
        });
    }
}

/// Calls `visit` with those of the references that are instructions of described code.
fn confirm(
    image: &Image<'_>,
    described: &[Range<u64>],
    mut references: Vec<Reference>,
    mut visit: impl FnMut(Reference),
) {
    references.sort_unstable();
    references.dedup();
    let mut references = references.into_iter().peekable();
    while let Some(first) = references.next() {
        let behind = described.partition_point(|range| range.start <= first.at);
        let around = described[..behind].last();
        let Some(around) = around.filter(|range| range.contains(&first.at)) else {
            continue;
        };
        let mut wanted = vec![first];
        while let Some(next) = references.next_if(|next| around.contains(&next.at)) {
            wanted.push(next);
        }
        let bytes = usize::try_from(around.end - around.start).unwrap_or(usize::MAX);
        let code = image.bytes(around.start, bytes.min(BLOCK_BYTES));
        let mut wanted = wanted.into_iter().peekable();
        for ip in references::instructions(&code, around.start) {
            if wanted.peek().is_none() {
                break;
            }
            while let Some(reference) = wanted.next_if(|reference| reference.at <= ip) {
                if reference.at == ip {
                    visit(reference);
                }
            }
        }
    }
}
