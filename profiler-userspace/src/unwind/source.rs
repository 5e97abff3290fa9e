//! Finds an object's unwind instructions.
//!
//! In: an image. Out: its [`Sources`]: code, sections, addresses. Never trusts a size.
//!
//! `.eh_frame` is found by its section header; in a file without section headers, through the program header
//! of its index (`PT_GNU_EH_FRAME`; Linux Standard Base 5.0, core, section 10.6).

use super::{Error, Load};
use crate::object::{Image, Part, image};
use gimli::{BaseAddresses, EhFrameHdr, EndianSlice, LittleEndian, Pointer};
use object::LittleEndian as Little;
use object::elf::{PF_X, PT_GNU_EH_FRAME, PT_LOAD, SHF_COMPRESSED, SHT_NOBITS};
use object::read::elf::{ProgramHeader as _, SectionHeader as _};
use std::ops::Range;

/// The most bytes of one section, unpacked. The largest known, a browser's, has a third of that.
const MAX_SECTION_BYTES: u64 = 64 << 20;

/// The most bytes of code in one object: many times the largest known.
const MAX_CODE_BYTES: u64 = 4 << 30;

/// The most ranges of code.
const MAX_CODE_RANGES: usize = 1024;

/// A section of fewer bytes is read whole: some milliseconds' work.
const LARGE_BYTES: u64 = 256 << 10;

/// The most bytes of an index: eight for each description, and few have less than this in the section itself.
const MAX_INDEX_BYTES: u64 = 16 << 20;

/// Where the descriptions of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(super) index: Part,
    pub(super) frames: Part,
    /// The bases that addresses in them may be relative to.
    pub(super) bases: BaseAddresses,
}

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
    pub(super) index: Option<Places>,
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
        if eh_frame.is_some_and(|section| section.sh_size(Little) > MAX_SECTION_BYTES) {
            return Err(Error::TooLarge);
        }
        let mut sources = Self {
            code: code(&loads)?,
            loads,
            eh_frame: None,
            index: None,
            debug_frame: None,
            linkage: Vec::new(),
            bases: BaseAddresses::default(),
        };
        sources.read_sections(image, large);
        if sources.eh_frame.is_none() && sources.index.is_none() {
            sources.eh_frame = by_index(image);
        }
        if let Some(section) = &sources.eh_frame {
            sources.bases = std::mem::take(&mut sources.bases).set_eh_frame(section.address);
        }
        if let Some(places) = &mut sources.index {
            places.bases = sources.bases.clone().set_eh_frame(places.frames.address);
        }
        Ok(sources)
    }

    /// The total size of the sections, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let sections = [&self.eh_frame, &self.debug_frame];
        let bytes = |section: &Section| section.bytes.len() as u64;
        let index = self.index.as_ref().map_or(0, |places| places.index.bytes);
        sections.into_iter().flatten().map(bytes).sum::<u64>() + index
    }

    fn read_sections(&mut self, image: &Image<'_>, large: Large) {
        for section in &image.sections {
            let address = section.sh_addr(Little);
            if section.sh_type(Little) == SHT_NOBITS {
                continue;
            }
            let read = || {
                let bytes = image.contents(section, MAX_SECTION_BYTES)?;
                Some(Section { bytes, address })
            };
            match image.section_name(section) {
                b".text" => self.bases = std::mem::take(&mut self.bases).set_text(address),
                b".got" => self.bases = std::mem::take(&mut self.bases).set_got(address),
                b".eh_frame" if self.eh_frame.is_none() => {
                    if large == Large::Left {
                        self.index = index(image, section);
                    }
                    if self.index.is_none() {
                        self.eh_frame = read();
                    }
                }
                b".debug_frame" if self.debug_frame.is_none() => self.debug_frame = read(),
                b".plt" | b".plt.sec" | b".plt.got" | b".iplt" if self.linkage.len() < 8 => {
                    self.linkage.extend(read());
                }
                _ => {}
            }
        }
    }
}

/// Where a large section of descriptions is, and its index; none if it has none, or is not large.
fn index(image: &Image<'_>, frames: &image::Section) -> Option<Places> {
    let places = Places {
        index: image.section(b".eh_frame_hdr")?.into(),
        frames: frames.into(),
        bases: BaseAddresses::default(),
    };
    let is_usable = frames.sh_flags(Little) & u64::from(SHF_COMPRESSED) == 0
        && (1..=MAX_INDEX_BYTES).contains(&places.index.bytes)
        && (LARGE_BYTES..=MAX_SECTION_BYTES).contains(&places.frames.bytes);
    is_usable.then_some(places)
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

/// `.eh_frame` found through the program header of its index: it ends somewhere in its segment.
fn by_index(image: &Image<'_>) -> Option<Section> {
    let index = image.of_type(PT_GNU_EH_FRAME).next()?.p_vaddr(Little);
    let head = image.bytes(index, 64);
    let bases = BaseAddresses::default().set_eh_frame_hdr(index);
    let parsed = EhFrameHdr::from(EndianSlice::new(&head, LittleEndian))
        .parse(&bases, 8)
        .ok()?;
    let Pointer::Direct(address) = parsed.eh_frame_ptr() else {
        return None;
    };
    let bytes = image.bytes(address, MAX_SECTION_BYTES as usize);
    (!bytes.is_empty()).then_some(Section { bytes, address })
}
