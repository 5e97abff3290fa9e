//! Finds an object's unwind instructions.
//!
//! In: an image. Out: its [`Sources`]: code, sections, addresses. Never trusts a size.
//!
//! `.eh_frame` is found by its section header; in a file without section headers, through the program header
//! of its index.

use super::{Error, Load};
use crate::object::{FrameSections, Image, MAX_FRAMES_BYTES, bases, image};
use gimli::BaseAddresses;
use object::LittleEndian as Little;
use object::elf::{PF_X, PT_LOAD, SHF_COMPRESSED};
use object::read::elf::{ProgramHeader as _, SectionHeader as _};
use std::ops::Range;

/// The most bytes of code in one object: many times the largest known.
const MAX_CODE_BYTES: u64 = 4 << 30;

/// The most ranges of code.
const MAX_CODE_RANGES: usize = 1024;

/// A section of fewer bytes is read whole: some milliseconds' work.
const LARGE_BYTES: u64 = 256 << 10;

/// A section's bytes.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) bytes: Vec<u8>,
    pub(super) address: u64,
}

/// All that a table is made from.
#[derive(Debug)]
pub(super) struct Sources {
    /// The address ranges of code: sorted and disjoint.
    pub(super) code: Vec<Range<u64>>,
    /// Where the code is in the file.
    pub(super) loads: Vec<Load>,
    pub(super) eh_frame: Option<Section>,
    /// Where it is and its index, where it is large and was not read.
    pub(super) index: Option<FrameSections>,
    pub(super) debug_frame: Option<Section>,
    /// Procedure linkage tables, which some linkers do not describe.
    pub(super) linkage: Vec<Section>,
    /// The bases that addresses in the sections may be relative to.
    pub(super) bases: BaseAddresses,
}

/// Whether a large `.eh_frame` with an index is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Large {
    Read,
    /// Its index is, in its place.
    Left,
}

impl Sources {
    pub(super) fn find(image: &Image<'_>, large: Large) -> Result<Self, Error> {
        let loads = loads(image);
        // A table without it would look complete.
        let eh_frame = image.section(b".eh_frame");
        if eh_frame.is_some_and(|section| section.sh_size(Little) > MAX_FRAMES_BYTES) {
            return Err(Error::TooLarge);
        }
        let read = |name: &[u8]| {
            let section = image.section(name)?;
            let bytes = image.contents(section, MAX_FRAMES_BYTES)?;
            let address = section.sh_addr(Little);
            Some(Section { bytes, address })
        };
        let index = match large {
            Large::Left => eh_frame.and_then(|section| index(image, section)),
            Large::Read => None,
        };
        let eh_frame = match &index {
            None => read(b".eh_frame").or_else(|| by_index(image)),
            Some(_) => None,
        };
        let mut bases = bases(image);
        if let Some(section) = &eh_frame {
            bases = bases.set_eh_frame(section.address);
        }
        let linkage = [&b".plt"[..], b".plt.sec", b".plt.got", b".iplt"].into_iter();
        Ok(Self {
            code: code(&loads)?,
            loads,
            eh_frame,
            index,
            debug_frame: read(b".debug_frame"),
            linkage: linkage.filter_map(read).collect(),
            bases,
        })
    }

    /// The total size of the sections, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let sections = [&self.eh_frame, &self.debug_frame];
        let bytes = |section: &Section| section.bytes.len() as u64;
        let header = self.index.as_ref().and_then(|sections| sections.header);
        let index = header.map_or(0, |header| header.bytes);
        sections.into_iter().flatten().map(bytes).sum::<u64>() + index
    }
}

/// Where a large section of descriptions is, and its index; none if it has none, or is not large.
fn index(image: &Image<'_>, frames: &image::Section) -> Option<FrameSections> {
    let is_packed = frames.sh_flags(Little) & u64::from(SHF_COMPRESSED) != 0;
    let sections = FrameSections::of(image).filter(|_| !is_packed)?;
    let is_large = sections.header.is_some() && sections.frames.bytes >= LARGE_BYTES;
    is_large.then_some(sections)
}

/// The segments of the file that are mapped as code.
fn loads(image: &Image<'_>) -> Vec<Load> {
    let file_bytes = image.file.metadata().map_or(0, |metadata| metadata.len());
    let loads = image.of_type(PT_LOAD);
    loads
        .filter(|load| load.p_flags(Little) & PF_X != 0)
        .filter_map(|load| {
            let (offset, size) = load.file_range(Little);
            // Code beyond the end of the file cannot run.
            let size = size.min(file_bytes.saturating_sub(offset));
            let address = load.p_vaddr(Little);
            address.checked_add(size)?;
            let file = offset..offset.checked_add(size)?;
            (size > 0).then_some(Load { file, address })
        })
        .collect()
}

/// The address ranges of code: sorted and disjoint.
fn code(loads: &[Load]) -> Result<Vec<Range<u64>>, Error> {
    let mut parts: Vec<Range<u64>> = loads
        .iter()
        .map(|load| load.address..load.address + (load.file.end - load.file.start))
        .collect();
    parts.sort_by_key(|part| part.start);
    let mut code: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match code.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => code.push(part),
        }
    }
    let bytes = code
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(part.end - part.start));
    if bytes > MAX_CODE_BYTES || code.len() > MAX_CODE_RANGES {
        return Err(Error::TooLarge);
    }
    Ok(code)
}

/// `.eh_frame` of a file without section headers: it ends somewhere in its segment.
fn by_index(image: &Image<'_>) -> Option<Section> {
    let frames = FrameSections::of(image)?.frames;
    let bytes = image.bytes(frames.address, frames.bytes as usize);
    let address = frames.address;
    (!bytes.is_empty()).then_some(Section { bytes, address })
}
