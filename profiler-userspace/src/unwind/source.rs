//! Finds an object's unwind instructions.
//!
//! In: an ELF file's bytes. Out: its [`Sources`]: code, sections, addresses. Never trusts a size.
//!
//! `.eh_frame` is found by its section header; in a file without section headers, through the program header
//! of its index (`PT_GNU_EH_FRAME`; Linux Standard Base 5.0, core, section 10.6).

use super::{Error, Load, x86_64};
use crate::object::Packing;
use gimli::{BaseAddresses, EhFrameHdr, EndianSlice, LittleEndian, Pointer};
use object::elf::{
    FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, ProgramHeader64, SHT_NOBITS, SectionHeader64,
};
use object::read::ReadRef;
use object::read::elf::{
    CompressionHeader as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable,
};
use object::{FileKind, LittleEndian as Little};
use std::borrow::Cow;
use std::ops::Range;

/// The most bytes of one section, unpacked. The largest known, a browser's, has a third of that.
const MAX_SECTION_BYTES: u64 = 64 << 20;

/// The most bytes of all unwind sections of one file.
pub(super) const MAX_BYTES: u64 = 4 * MAX_SECTION_BYTES;

/// The most bytes of code in one object: many times the largest known.
const MAX_CODE_BYTES: u64 = 4 << 30;

/// The most ranges of code.
const MAX_CODE_RANGES: usize = 1024;

/// A section of fewer bytes is read whole: some milliseconds' work.
const LARGE_BYTES: u64 = 256 << 10;

/// The most bytes of an index: eight for each description, and few have less than this in the section itself.
const MAX_INDEX_BYTES: u64 = 16 << 20;

/// Where a section is, in bytes: in the file, and in memory before relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Where the descriptions of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(super) index: Place,
    pub(super) frames: Place,
    /// The bases that addresses in them may be relative to.
    pub(super) bases: BaseAddresses,
}

/// A section's bytes.
#[derive(Debug)]
pub(super) struct Section<'data> {
    pub(super) bytes: Cow<'data, [u8]>,
    pub(super) address: u64,
}

/// All that a table is made from.
#[derive(Debug)]
pub(super) struct Sources<'data> {
    /// The address ranges of code: sorted and disjoint.
    pub(super) code: Vec<Range<u64>>,
    /// Where the code is in the file.
    pub(super) loads: Vec<Load>,
    pub(super) eh_frame: Option<Section<'data>>,
    /// Where it is and its index, where it is large and was not read.
    pub(super) index: Option<Places>,
    pub(super) debug_frame: Option<Section<'data>>,
    /// Procedure linkage tables, which some linkers do not describe.
    pub(super) linkage: Vec<Section<'data>>,
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

type Header = FileHeader64<Little>;
type Segment = ProgramHeader64<Little>;

impl<'data> Sources<'data> {
    pub(super) fn find<R: ReadRef<'data>>(data: R, large: Large) -> Result<Self, Error> {
        let header = match FileKind::parse(data).map_err(|_| Error::NotElf)? {
            FileKind::Elf64 => Header::parse(data).map_err(|_| Error::NotElf)?,
            FileKind::Elf32 => return Err(Error::OtherMachine),
            _ => return Err(Error::NotElf),
        };
        let endian = header.endian().map_err(|_| Error::OtherMachine)?;
        if header.e_machine.get(endian) != x86_64::MACHINE {
            return Err(Error::OtherMachine);
        }
        let segments = header
            .program_headers(endian, data)
            .map_err(|_| Error::NotElf)?;
        let loads = loads(segments, data.len().map_err(|()| Error::NotElf)?);
        if has_too_large(header, data) {
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
        sources.read_sections(header, data, large);
        if sources.eh_frame.is_none() && sources.index.is_none() {
            sources.eh_frame = by_index(segments, data);
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
        let bytes = |section: &Section<'_>| section.bytes.len() as u64;
        let index = self.index.as_ref().map_or(0, |places| places.index.bytes);
        sections.into_iter().flatten().map(bytes).sum::<u64>() + index
    }

    fn read_sections<R: ReadRef<'data>>(&mut self, header: &Header, data: R, large: Large) {
        let endian = Little;
        let Ok(sections) = header.sections(endian, data) else {
            return;
        };
        for section in sections.iter() {
            let address = section.sh_addr(endian);
            if section.sh_type(endian) == SHT_NOBITS {
                continue;
            }
            match sections.section_name(endian, section) {
                Ok(b".text") => self.bases = std::mem::take(&mut self.bases).set_text(address),
                Ok(b".got") => self.bases = std::mem::take(&mut self.bases).set_got(address),
                Ok(b".eh_frame") if self.eh_frame.is_none() => {
                    if large == Large::Left {
                        self.index = index(&sections, section, data);
                    }
                    if self.index.is_some() {
                        continue;
                    }
                    self.eh_frame = bytes(section, data).map(|bytes| Section { bytes, address });
                }
                Ok(b".debug_frame") if self.debug_frame.is_none() => {
                    self.debug_frame = bytes(section, data).map(|bytes| Section { bytes, address });
                }
                Ok(b".plt" | b".plt.sec" | b".plt.got" | b".iplt") if self.linkage.len() < 8 => {
                    let section = bytes(section, data).map(|bytes| Section { bytes, address });
                    self.linkage.extend(section);
                }
                _ => {}
            }
        }
    }
}

/// Whether `.eh_frame` exceeds the limit. A table without it would look complete.
fn has_too_large<'data, R: ReadRef<'data>>(header: &Header, data: R) -> bool {
    header.sections(Little, data).is_ok_and(|sections| {
        sections.iter().any(|section| {
            section.sh_type(Little) != SHT_NOBITS
                && section.sh_size(Little) > MAX_SECTION_BYTES
                && sections.section_name(Little, section) == Ok(b".eh_frame")
        })
    })
}

/// Where a large section of descriptions is, and its index; none if it has none, or is not large.
fn index<'data, R: ReadRef<'data>>(
    sections: &SectionTable<'data, Header, R>,
    frames: &SectionHeader64<Little>,
    data: R,
) -> Option<Places> {
    let is_packed = frames.compression(Little, data).ok()?.is_some();
    let (_, index) = sections.section_by_name(Little, b".eh_frame_hdr")?;
    let place = |section: &SectionHeader64<Little>| Place {
        address: section.sh_addr(Little),
        offset: section.sh_offset(Little),
        bytes: section.sh_size(Little),
    };
    let places = Places {
        index: place(index),
        frames: place(frames),
        bases: BaseAddresses::default(),
    };
    let is_usable = !is_packed
        && index.sh_type(Little) != SHT_NOBITS
        && (1..=MAX_INDEX_BYTES).contains(&places.index.bytes)
        && (LARGE_BYTES..=MAX_SECTION_BYTES).contains(&places.frames.bytes);
    is_usable.then_some(places)
}

/// The bytes of a section, unpacked; none if it is absent or exceeds the limit.
fn bytes<'data, R: ReadRef<'data>>(
    section: &SectionHeader64<Little>,
    data: R,
) -> Option<Cow<'data, [u8]>> {
    if section.sh_size(Little) > MAX_SECTION_BYTES {
        return None;
    }
    let found = match section.compression(Little, data).ok()? {
        None => Cow::Borrowed(section.data(Little, data).ok()?),
        Some((header, offset, size)) => {
            let unpacked = header.ch_size(Little);
            if unpacked > MAX_SECTION_BYTES {
                return None;
            }
            let packed = data.read_bytes_at(offset, size).ok()?;
            Cow::Owned(Packing::of(header.ch_type(Little)).unpack(packed, unpacked)?)
        }
    };
    (!found.is_empty()).then_some(found)
}

/// The segments of the file that are mapped as code.
fn loads(segments: &[Segment], file_bytes: u64) -> Vec<Load> {
    let executable = |segment: &&Segment| {
        segment.p_type(Little) == PT_LOAD && segment.p_flags(Little) & PF_X != 0
    };
    segments
        .iter()
        .filter(executable)
        .filter_map(|segment| {
            let (offset, size) = segment.file_range(Little);
            // Code beyond the end of the file cannot run.
            let size = size.min(file_bytes.saturating_sub(offset));
            let address = segment.p_vaddr(Little);
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
fn by_index<'data, R: ReadRef<'data>>(segments: &[Segment], data: R) -> Option<Section<'data>> {
    let index = segments
        .iter()
        .find(|segment| segment.p_type(Little) == PT_GNU_EH_FRAME)?;
    let address = index.p_vaddr(Little);
    let head = at(segments, address, data, 64)?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(address);
    let parsed = EhFrameHdr::from(EndianSlice::new(head, LittleEndian))
        .parse(&bases, 8)
        .ok()?;
    let Pointer::Direct(address) = parsed.eh_frame_ptr() else {
        return None;
    };
    Some(Section {
        bytes: Cow::Borrowed(at(segments, address, data, MAX_SECTION_BYTES)?),
        address,
    })
}

/// The bytes loaded at an address: at most so many, to the end of the segment.
fn at<'data, R: ReadRef<'data>>(
    segments: &[Segment],
    address: u64,
    data: R,
    most: u64,
) -> Option<&'data [u8]> {
    segments
        .iter()
        .filter(|segment| segment.p_type(Little) == PT_LOAD)
        .find_map(|segment| {
            let into = address.checked_sub(segment.p_vaddr(Little))?;
            let (offset, size) = segment.file_range(Little);
            let size = size.checked_sub(into)?.min(most);
            let offset = offset.checked_add(into)?;
            let size = size.min(data.len().ok()?.checked_sub(offset)?);
            (size > 0).then(|| data.read_bytes_at(offset, size).ok())?
        })
}
