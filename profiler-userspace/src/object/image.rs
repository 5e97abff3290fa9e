//! An ELF file for a 64-bit machine whose code is known: headers, sections, segments, and bytes by offset or address.
//!
//! In: an open file. Out: an [`Image`]. Headers are read once, everything else in small positioned reads when it is
//! asked for: the file may change meanwhile, and is never mapped. Trusts no number in the file. Works without section
//! headers where these are not needed.

use super::arch::MACHINE;
use super::bounded::Bounded;
use super::debug::Packing;
use super::elf::name_at;
use object::FileKind;
use object::LittleEndian as Little;
use object::elf::{
    CompressionHeader64, DF_1_PIE, DT_DEBUG, DT_FLAGS_1, Dyn64, ET_EXEC, FileHeader64, PF_X,
    PT_DYNAMIC, PT_INTERP, PT_LOAD, ProgramHeader64, Rela64, SHF_COMPRESSED, SHF_EXECINSTR,
    SHF_WRITE, SHT_NOBITS, SHT_PROGBITS, SectionHeader64,
};
use object::pod::{Pod, from_bytes, slice_from_all_bytes};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use std::cell::OnceCell;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// The most sections of one kind that are considered, or segments of code.
const MAX_PARTS: usize = 256;

/// The most bytes of the path of a dynamic linker.
const MAX_INTERPRETER_BYTES: usize = 4096;

/// How much of one table of relocations is read, in bytes: five million relocations.
const MAX_RELOCATION_BYTES: u64 = 128 << 20;

/// How much of it is read at a time, in bytes: whole relocations.
const RELOCATION_BLOCK_BYTES: u64 = 24 << 14;

/// The header of a section.
pub type Section = SectionHeader64<Little>;
/// The header of a segment.
pub type ProgramHeader = ProgramHeader64<Little>;
/// A relocation with its addend, as all of 64-bit machines are.
pub type Relocation = Rela64<Little>;

/// A range of an image: in memory before relocation, and in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The address of its first byte.
    pub address: u64,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its bytes in the file.
    pub bytes: u64,
}

impl Part {
    /// Its addresses.
    pub fn addresses(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.bytes)
    }

    /// The part from an address on; none outside of it.
    fn after(self, address: u64) -> Option<Self> {
        let into = address.checked_sub(self.address)?;
        Some(Self {
            address,
            offset: self.offset.checked_add(into)?,
            bytes: self.bytes.checked_sub(into)?,
        })
    }
}

impl From<&Section> for Part {
    fn from(section: &Section) -> Self {
        Self {
            address: section.sh_addr(Little),
            offset: section.sh_offset(Little),
            bytes: section.sh_size(Little),
        }
    }
}

impl From<&ProgramHeader> for Part {
    fn from(segment: &ProgramHeader) -> Self {
        Self {
            address: segment.p_vaddr(Little),
            offset: segment.p_offset(Little),
            bytes: segment.p_filesz(Little),
        }
    }
}

/// Why a file is no [`Image`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoImage {
    /// It cannot be read, or is not an ELF file.
    NotElf,
    /// It is for another machine.
    OtherMachine,
}

/// An ELF file's headers, and the file.
#[derive(Debug)]
pub struct Image<'f> {
    /// The file.
    pub file: &'f File,
    header: FileHeader64<Little>,
    /// The program headers.
    pub segments: Vec<ProgramHeader>,
    /// The section headers; none in a file without.
    pub sections: Vec<Section>,
    section_names: Vec<u8>,
    /// Tags and values of the dynamic section.
    pub(super) dynamic: Vec<(i64, u64)>,
    /// The dynamic strings, once they were asked for.
    pub(super) strings: OnceCell<Vec<u8>>,
    /// Sections with code, ascending; where there are no sections, segments with code.
    pub code: Vec<Part>,
}

impl<'f> Image<'f> {
    /// Reads the headers.
    ///
    /// # Errors
    /// See [`NoImage`].
    pub fn read(file: &'f File) -> Result<Self, NoImage> {
        let data = &Bounded::new(file);
        match FileKind::parse(data) {
            Ok(FileKind::Elf64) => {}
            Ok(FileKind::Elf32) => return Err(NoImage::OtherMachine),
            _ => return Err(NoImage::NotElf),
        }
        let header = FileHeader64::<Little>::parse(data).map_err(|_| NoImage::NotElf)?;
        let is_ours = header.endian().is_ok() && header.e_machine.get(Little) == MACHINE;
        if !is_ours {
            return Err(NoImage::OtherMachine);
        }
        let segments = header.program_headers(Little, data);
        let mut image = Self {
            file,
            header: *header,
            segments: segments.map_err(|_| NoImage::NotElf)?.to_vec(),
            sections: Vec::new(),
            section_names: Vec::new(),
            dynamic: Vec::new(),
            strings: OnceCell::new(),
            code: Vec::new(),
        };
        if let Ok(sections) = header.section_headers(Little, data) {
            let index = header.shstrndx(Little, data).ok();
            let names = index.and_then(|index| sections.get(index as usize));
            let names = names.and_then(|names| names.data(Little, data).ok());
            image.section_names = names.unwrap_or_default().to_vec();
            image.sections = sections.to_vec();
        }
        let tables = image.segments.iter().filter_map(|segment| {
            let entries: &[Dyn64<Little>] = segment.dynamic(Little, data).ok()??;
            Some(entries)
        });
        let entries = tables.flatten().map(|entry| {
            let tag = entry.d_tag.get(Little);
            (tag, entry.d_val.get(Little))
        });
        image.dynamic = entries.take_while(|(tag, _)| *tag != 0).collect();
        image.code = image.find_code();
        Ok(image)
    }

    fn find_code(&self) -> Vec<Part> {
        let executable = |section: &&Section| {
            section.sh_flags(Little) & u64::from(SHF_EXECINSTR) != 0
                && section.sh_type(Little) != SHT_NOBITS
        };
        let sections = self.sections.iter().filter(executable).map(Part::from);
        let mut code: Vec<Part> = sections.take(MAX_PARTS).collect();
        if code.is_empty() {
            let loads = self.of_type(PT_LOAD);
            let loads = loads.filter(|load| load.p_flags(Little) & PF_X != 0);
            code = loads.map(Part::from).take(MAX_PARTS).collect();
        }
        code.retain(|part| part.bytes > 0);
        code.sort_by_key(|part| part.address);
        code
    }

    /// The program headers of this type (`PT_…`).
    pub fn of_type(&self, kind: u32) -> impl Iterator<Item = &ProgramHeader> {
        let all = self.segments.iter();
        all.filter(move |segment| segment.p_type(Little) == kind)
    }

    /// The sections of this type (`SHT_…`).
    pub fn sections_of_type(&self, kind: u32) -> impl Iterator<Item = &Section> {
        let all = self.sections.iter();
        all.filter(move |section| section.sh_type(Little) == kind)
            .take(MAX_PARTS)
    }

    /// Sections of data that a program may write to, or the loader.
    pub fn data(&self) -> impl Iterator<Item = Part> {
        let is_writable = |section: &&Section| section.sh_flags(Little) & u64::from(SHF_WRITE) != 0;
        let all = self.sections.iter();
        all.filter(|section| section.sh_type(Little) == SHT_PROGBITS)
            .filter(is_writable)
            .map(Part::from)
            .take(MAX_PARTS)
    }

    /// The section of that name, if it has bytes in the file.
    pub fn section(&self, name: &[u8]) -> Option<&Section> {
        let mut all = self.sections.iter();
        let section = all.find(|section| self.section_name(section) == name)?;
        (section.sh_type(Little) != SHT_NOBITS).then_some(section)
    }

    /// The name of a section; empty where it has none.
    pub fn section_name(&self, section: &Section) -> &[u8] {
        name_at(&self.section_names, section.sh_name(Little)).unwrap_or_default()
    }

    /// The bytes of a section, unpacked; none if they are none, or more than `max`.
    pub fn contents(&self, section: &Section, max: u64) -> Option<Vec<u8>> {
        let (offset, bytes) = section.file_range(Little)?;
        let fits = bytes <= max && bytes <= self.file.metadata().ok()?.len();
        let mut stored = fits.then(|| vec![0; bytes as usize])?;
        self.file.read_exact_at(&mut stored, offset).ok()?;
        if section.sh_flags(Little) & u64::from(SHF_COMPRESSED) != 0 {
            let (header, packed) = from_bytes::<CompressionHeader64<Little>>(&stored).ok()?;
            let unpacked = Some(header.ch_size.get(Little)).filter(|&bytes| bytes <= max)?;
            stored = Packing::of(header.ch_type.get(Little)).unpack(packed, unpacked)?;
        }
        (!stored.is_empty()).then_some(stored)
    }

    /// Whether it is a program that always has the same addresses.
    pub fn is_fixed(&self) -> bool {
        self.header.e_type(Little) == ET_EXEC
    }

    /// Whether it is a program rather than a library: it names its dynamic linker.
    pub fn is_executable(&self) -> bool {
        self.of_type(PT_INTERP).next().is_some()
    }

    /// The path of the dynamic linker that it names.
    pub fn interpreter(&self) -> Option<Vec<u8>> {
        let path = Part::from(self.of_type(PT_INTERP).next()?);
        let bytes = usize::try_from(path.bytes).ok()?.min(MAX_INTERPRETER_BYTES);
        let path = read_at(self.file, path.offset, bytes);
        Some(path.split(|&byte| byte == 0).next()?.to_vec())
    }

    /// Whether it has no dynamic section, and so exports nothing.
    pub fn is_static(&self) -> bool {
        self.of_type(PT_DYNAMIC).next().is_none()
    }

    /// The entry point; libraries have one, too.
    pub fn start(&self) -> u64 {
        self.header.e_entry(Little)
    }

    /// The entry point, if it is a program.
    pub fn entry(&self) -> Option<u64> {
        let entry = self.start();
        let flags = self.dynamic(DT_FLAGS_1).unwrap_or(0);
        let is_program =
            self.is_fixed() || self.dynamic(DT_DEBUG).is_some() || flags & u64::from(DF_1_PIE) != 0;
        (is_program && entry != 0).then_some(entry)
    }

    /// The value of the first entry with this tag (`DT_…`) in the dynamic section.
    pub fn dynamic(&self, tag: i64) -> Option<u64> {
        let mut all = self.dynamic.iter();
        Some(all.find(|(other, _)| *other == tag)?.1)
    }

    /// The code that an address lies in: its section.
    pub fn code_at(&self, address: u64) -> Option<Range<u64>> {
        let behind = self.code.partition_point(|part| part.address <= address);
        let code = self.code[..behind].last()?.addresses();
        code.contains(&address).then_some(code)
    }

    /// The part of the file that is loaded at an address, up to the end of its segment.
    pub fn loaded_at(&self, address: u64) -> Option<Part> {
        let mut loads = self.of_type(PT_LOAD).map(Part::from);
        loads.find_map(|load| load.after(address).filter(|part| part.bytes > 0))
    }

    /// At most `max` bytes at an address, fewer at the end of what the file holds there.
    pub fn bytes(&self, address: u64, max: usize) -> Vec<u8> {
        self.loaded_at(address).map_or_else(Vec::new, |part| {
            let bytes = usize::try_from(part.bytes).unwrap_or(usize::MAX);
            read_at(self.file, part.offset, max.min(bytes))
        })
    }

    /// Copies initialized bytes at an address.
    pub fn copy(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let mut loads = self.of_type(PT_LOAD).map(Part::from);
        let bytes = into.len() as u64;
        let part = loads.find_map(|load| load.after(address).filter(|part| bytes <= part.bytes))?;
        self.file.read_exact_at(into, part.offset).ok()
    }

    /// A structure at an address.
    pub(super) fn pod<T: Pod>(&self, address: u64) -> Option<T> {
        let mut bytes = vec![0; size_of::<T>()];
        self.copy(address, &mut bytes)?;
        Some(*from_bytes(&bytes).ok()?.0)
    }

    /// Initialized words at an address.
    pub fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = vec![0; 8 * N];
        self.copy(address, &mut bytes)?;
        let words = bytes.as_chunks::<8>().0;
        Some(std::array::from_fn(|at| u64::from_le_bytes(words[at])))
    }

    /// Calls `visit` for each relocation of a table, with its number.
    pub fn each_relocation(&self, table: Part, mut visit: impl FnMut(u64, &Relocation)) {
        let size = table.bytes.min(MAX_RELOCATION_BYTES);
        let mut at = 0;
        while at < size {
            let bytes = RELOCATION_BLOCK_BYTES.min(size - at) as usize;
            let block = read_at(self.file, table.offset.saturating_add(at), bytes);
            let whole = block.len() - block.len() % size_of::<Relocation>();
            if whole == 0 {
                return;
            }
            let all: &[Relocation] = slice_from_all_bytes(&block[..whole]).unwrap_or_default();
            let first = at / size_of::<Relocation>() as u64;
            for (number, relocation) in (first..).zip(all) {
                visit(number, relocation);
            }
            at += whole as u64;
        }
    }
}

/// At most `max` bytes of a file, fewer at its end.
pub fn read_at(file: &File, offset: u64, max: usize) -> Vec<u8> {
    let mut bytes = vec![0; most_held(file, offset, max)];
    let filled = read_into(file, &mut bytes, offset);
    bytes.truncate(filled);
    bytes
}

/// Reads as much of a buffer as there is of a file. Returns how much.
pub fn read_into(file: &File, buffer: &mut [u8], offset: u64) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    filled
}

/// How much memory is made for so many bytes.
fn most_held(file: &File, offset: u64, max: usize) -> usize {
    /// So little need not be compared with the file's length.
    const LITTLE: usize = 64 << 10;
    if max <= LITTLE {
        return max;
    }
    // Claimed sizes may be a lie; no more is held than the file has.
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let left = usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX);
    max.min(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_that_is_no_object_is_no_image() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01", &[0x7f; 300]] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            assert_eq!(Image::read(&file).unwrap_err(), NoImage::NotElf);
        }
    }

    #[test]
    fn this_program_has_a_section_of_frames() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let image = Image::read(&file).unwrap();
        assert!(!image.is_static());
        let frames = Part::from(image.section(b".eh_frame").unwrap());
        // Its first entry is a shared one.
        let [first] = image.words(frames.address).unwrap();
        assert_eq!(first >> 32, 0);
        assert!(frames.bytes > 1000);
    }
}
