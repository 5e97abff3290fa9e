//! Large `.eh_frame` sections, read where walks come to.
//!
//! In: a file, and the section's index, `.eh_frame_hdr` (Linux Standard Base 5.0, core, section 10.6.2). Out: which code is
//! described, and later the descriptions of some of it. Trusts no size and no place in a file.

use super::eh_frame;
use super::found::Found;
use super::source::Places;
use crate::object::Part;
use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian, UnwindSection as _};
use memmap2::{Advice, MmapMut};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// The head of an index as all linkers write it: the version; the addresses of the section and of functions as signed halves, relative
/// to themselves and to the index; an unsigned number of entries.
const HEAD: u32 = u32::from_le_bytes([1, 0x1b, 0x03, 0x3b]);

/// The bytes of the head, and of an entry.
const HEAD_BYTES: usize = 12;
const ENTRY_BYTES: usize = 8;

/// Where two descriptions begin this far apart, the first says where its code ends. Nearer ones have nothing between them that would
/// be worth the time.
const FAR: u64 = 64 << 10;

/// So many bytes of the section are read at once.
const BLOCK_BYTES: usize = 4096;

/// Descriptions of more bytes than this are left out: ten times the largest known.
const MAX_DESCRIPTION_BYTES: usize = 1 << 20;

/// The index of a section, and what was read of both.
pub(super) struct Index<'f> {
    /// Where each description's code begins, ascending, and where the description is.
    entries: Pieces<'f>,
    /// How many entries there are.
    count: usize,
    frames: Pieces<'f>,
    bases: BaseAddresses,
}

impl<'f> Index<'f> {
    /// Begins to read an index; none if it is none of the usual kind.
    pub(super) fn open(file: &'f File, places: &Places) -> Option<Self> {
        let mut entries = Pieces::new(file, places.index)?;
        let kinds = entries.half(0)?;
        let count = usize::try_from(entries.half(8)?).ok()?;
        let is_whole = count <= entries.bytes.len().saturating_sub(HEAD_BYTES) / ENTRY_BYTES;
        (kinds == HEAD && is_whole).then_some(Self {
            entries,
            count,
            frames: Pieces::new(file, places.frames)?,
            bases: places.bases.clone(),
        })
    }

    /// Where the code of a description begins.
    fn begin(&mut self, at: usize) -> Option<u64> {
        self.relative(HEAD_BYTES + at * ENTRY_BYTES)
    }

    /// Where a description is in the section.
    fn description(&mut self, at: usize) -> Option<usize> {
        let address = self.relative(HEAD_BYTES + at * ENTRY_BYTES + 4)?;
        usize::try_from(address.checked_sub(self.frames.place.address)?).ok()
    }

    fn relative(&mut self, at: usize) -> Option<u64> {
        let distance = self.entries.half(at)?.cast_signed();
        let base = self.entries.place.address;
        Some(base.wrapping_add_signed(distance.into()))
    }

    /// The code that is described, in runs: disjoint, ascending, each in one part of `code`. None if the index is not in order.
    pub(super) fn described(&mut self, code: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut next = (self.count > 0).then(|| self.begin(0))??;
        for at in 0..self.count {
            let begin = next;
            let has_next = at + 1 < self.count;
            next = if has_next {
                self.begin(at + 1)?
            } else {
                u64::MAX
            };
            if next < begin {
                return None;
            }
            let behind = code.partition_point(|part| part.start <= begin);
            let part = code[..behind].last().filter(|part| part.contains(&begin));
            let Some(part) = part else { continue };
            let is_near = next - begin < FAR && next <= part.end;
            let end = if is_near {
                Some(next)
            } else {
                self.end(at, begin)
            };
            let Some(end) = end.map(|end| end.min(part.end)).filter(|end| *end > begin) else {
                continue;
            };
            match runs.last_mut() {
                Some(last) if last.end >= begin && part.contains(&last.start) => {
                    last.end = last.end.max(end);
                }
                _ => runs.push(begin..end),
            }
        }
        Some(runs)
    }

    /// Where the code of a description ends.
    fn end(&mut self, at: usize, begin: u64) -> Option<u64> {
        let place = self.description(at)?;
        self.need(place)?;
        let section = self.frames.section();
        let entry = section.partial_fde_from_offset(&self.bases, place.into());
        let common =
            |section: &EhFrame<_>, bases: &BaseAddresses, at| section.cie_from_offset(bases, at);
        begin.checked_add(entry.ok()?.parse(common).ok()?.len())
    }

    /// The descriptions of some code.
    pub(super) fn read(&mut self, wanted: &[Range<u64>], code: &[Range<u64>]) -> Found {
        let mut found = Found::default();
        let mut all = Vec::new();
        // Honest descriptions are in the section once each; hostile entries could lead to a long one again and again.
        let mut left = self.frames.bytes.len();
        for range in wanted {
            // The one before may reach into it.
            let first = self.first_from(range.start).saturating_sub(1);
            for at in first..self.first_from(range.end) {
                let place = self.description(at);
                let bytes = place.and_then(|place| self.need(place));
                let bytes = bytes.filter(|&bytes| bytes <= left);
                left -= bytes.unwrap_or(0);
                match place.filter(|_| bytes.is_some()) {
                    Some(place) => all.push(place),
                    None => found.statistics.broken += 1,
                }
            }
        }
        let section = self.frames.section();
        eh_frame::read_some(&section, &self.bases, &all, code, &mut found);
        found.sort();
        found
    }

    /// The number of the first description whose code does not begin before an address.
    fn first_from(&mut self, address: u64) -> usize {
        let mut range = 0..self.count;
        while range.start < range.end {
            let middle = range.start.midpoint(range.end);
            match self.begin(middle).is_some_and(|begin| begin < address) {
                true => range.start = middle + 1,
                false => range.end = middle,
            }
        }
        range.start
    }

    /// Reads what a description needs: itself, whose bytes it returns, and what it shares with others.
    fn need(&mut self, at: usize) -> Option<usize> {
        let bytes = self.frames.read_entry(at)?;
        let place = at + 4;
        let back = usize::try_from(self.frames.half(place)?).ok()?;
        self.frames.read_entry(place.checked_sub(back)?)?;
        Some(bytes)
    }
}

/// A section of which only some is read; the rest is zero.
struct Pieces<'f> {
    file: &'f File,
    place: Part,
    /// Memory that is never written to takes none.
    bytes: MmapMut,
    /// Which blocks were read.
    is_read: Vec<bool>,
}

impl<'f> Pieces<'f> {
    fn new(file: &'f File, place: Part) -> Option<Self> {
        let length = usize::try_from(place.bytes).ok()?;
        let bytes = MmapMut::map_anon(length).ok()?;
        // Few of its pages are written to.
        let _advised = bytes.advise(Advice::NoHugePage);
        Some(Self {
            file,
            place,
            bytes,
            is_read: vec![false; length.div_ceil(BLOCK_BYTES)],
        })
    }

    fn section(&self) -> EhFrame<EndianSlice<'_, LittleEndian>> {
        EhFrame::from(EndianSlice::new(&self.bytes, LittleEndian))
    }

    /// Reads an entry of the section, and returns how many bytes it has.
    fn read_entry(&mut self, at: usize) -> Option<usize> {
        let bytes = usize::try_from(self.half(at)?).ok()?.checked_add(4)?;
        let is_honest = (8..=MAX_DESCRIPTION_BYTES).contains(&bytes);
        is_honest.then(|| self.read(at, bytes))??;
        Some(bytes)
    }

    fn half(&mut self, at: usize) -> Option<u32> {
        self.read(at, 4)?;
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Reads these bytes of the section.
    fn read(&mut self, at: usize, bytes: usize) -> Option<()> {
        let end = at.checked_add(bytes)?;
        if end > self.bytes.len() {
            return None;
        }
        for block in at / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            if self.is_read[block] {
                continue;
            }
            let begin = block * BLOCK_BYTES;
            let end = self.bytes.len().min(begin + BLOCK_BYTES);
            let offset = self.place.offset.checked_add(begin as u64)?;
            let place = &mut self.bytes[begin..end];
            self.file.read_exact_at(place, offset).ok()?;
            self.is_read[block] = true;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
