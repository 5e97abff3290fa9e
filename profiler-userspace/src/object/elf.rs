//! The tables of an ELF file.
//!
//! In: bytes, or a file read piece by piece. Out: an [`Elf`]. Pure. A table that cannot be read is
//! treated as absent. See `elf(5)`.

use super::bounded::Bounded;
use super::debug::{Debug, DebugSection, Packing, debug_link, shared_link};
use super::dynamic_table;
use super::{BuildId, ElfAddress, FileOffset};
use object::elf::{
    FileHeader32, FileHeader64, PF_X, PT_LOAD, SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB,
};
use object::read::ReadRef;
use object::read::elf::{CompressionHeader as _, FileHeader, ProgramHeader as _, SectionHeader};
use object::{Endianness, FileKind};
use std::fs::File;
use std::ops::Range;

/// At most so many sections of DWARF are considered; there are two dozen kinds.
const MAX_DEBUG_SECTIONS: usize = 64;

/// The prefix of sections compressed in the old GNU format: by binutils before 2.26 and by Go up to 1.18.
const PACKED_PREFIX: &[u8] = b".zdebug_";

/// Such a section begins with `ZLIB` and its unpacked size.
const PACKED_HEADER_BYTES: u64 = 12;

/// The file's word size and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Whether it is a 64-bit file; otherwise 32-bit.
    pub wide: bool,
    /// The byte order.
    pub endian: Endianness,
}

/// A segment that is loaded into memory (`PT_LOAD`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Where it is in the file.
    pub file: Range<u64>,
    /// Its address in memory, before relocation.
    pub address: u64,
    /// Whether it is executable.
    pub executable: bool,
}

/// The segments that are loaded into memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segments(Vec<Segment>);

impl Segments {
    /// These segments, in the order of the program headers.
    pub fn new(all: Vec<Segment>) -> Self {
        Self(all)
    }

    /// The segments.
    pub fn all(&self) -> &[Segment] {
        &self.0
    }

    /// The file offset of the byte at an address.
    pub fn offset(&self, address: ElfAddress) -> Option<FileOffset> {
        self.0.iter().find_map(|segment| {
            let into = address.0.checked_sub(segment.address)?;
            let size = segment.file.end.checked_sub(segment.file.start)?;
            (into < size).then(|| FileOffset(segment.file.start + into))
        })
    }

    /// The file's bytes from the one at an address to the end of its segment.
    fn behind(&self, address: ElfAddress) -> Option<Range<u64>> {
        let FileOffset(start) = self.offset(address)?;
        let mut files = self.0.iter().map(|segment| &segment.file);
        Some(start..files.find(|file| file.contains(&start))?.end)
    }

    /// The address of the byte at `offset`. If segments overlap in the file, the executable one wins,
    /// because offsets come from code.
    pub fn address(&self, offset: FileOffset) -> Option<ElfAddress> {
        let covering = |segment: &&Segment| segment.file.contains(&offset.0);
        let mut all = self.0.iter().filter(covering);
        let segment = all
            .clone()
            .find(|segment| segment.executable)
            .or_else(|| all.next())?;
        Some(ElfAddress(
            segment.address.wrapping_add(offset.0 - segment.file.start),
        ))
    }
}

/// Where a symbol table is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolTable {
    /// The symbols.
    pub symbols: Range<u64>,
    /// Their names.
    pub names: Range<u64>,
}

/// Layout, segments, build ID, symbol tables and code of an ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// Its word size and byte order.
    pub layout: Layout,
    /// Its loaded segments.
    pub segments: Segments,
    /// Its build ID.
    pub build_id: Option<BuildId>,
    /// All symbols (`.symtab`); absent in a stripped file.
    pub symbols: Option<SymbolTable>,
    /// The dynamic symbols (`.dynsym`, or what the dynamic linker takes for it).
    pub dynamic_symbols: Option<SymbolTable>,
    /// The address ranges of executable sections, by section index.
    pub code: Vec<Option<Range<u64>>>,
    /// Where its debug information is.
    pub debug: Debug,
}

impl Elf {
    /// An object known only by its segments and build ID, such as one from a raw recording.
    pub fn outline(segments: Segments, build_id: Option<BuildId>) -> Self {
        Self {
            layout: Layout {
                wide: true,
                endian: Endianness::Little,
            },
            segments,
            build_id,
            symbols: None,
            dynamic_symbols: None,
            code: Vec::new(),
            debug: Debug::default(),
        }
    }

    /// Reads the tables of an open file.
    pub fn read(file: &File) -> Option<Self> {
        Self::parse(&Bounded::new(file))
    }

    /// Reads the tables out of `data`.
    pub fn parse<'a, R: ReadRef<'a>>(data: R) -> Option<Self> {
        match FileKind::parse(data).ok()? {
            FileKind::Elf32 => Self::parse_as::<FileHeader32<Endianness>, R>(data),
            FileKind::Elf64 => Self::parse_as::<FileHeader64<Endianness>, R>(data),
            _ => None,
        }
    }

    fn parse_as<'a, H, R>(data: R) -> Option<Self>
    where
        H: FileHeader<Endian = Endianness>,
        R: ReadRef<'a>,
    {
        let header = H::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let mut elf = Self {
            layout: Layout {
                wide: header.is_class_64(),
                endian,
            },
            ..Self::outline(Segments::default(), None)
        };
        for segment in header.program_headers(endian, data).unwrap_or_default() {
            if segment.p_type(endian) == PT_LOAD {
                let (offset, size) = segment.file_range(endian);
                elf.segments.0.push(Segment {
                    file: offset..offset.saturating_add(size),
                    address: segment.p_vaddr(endian).into(),
                    executable: segment.p_flags(endian) & PF_X != 0,
                });
            }
            if elf.build_id.is_none()
                && let Ok(Some(notes)) = segment.notes(endian, data)
            {
                elf.build_id = BuildId::among(notes, endian);
            }
        }
        elf.read_sections::<H, R>(header, data);
        if elf.dynamic_symbols.is_none() {
            let behind = |address| elf.segments.behind(ElfAddress(address));
            elf.dynamic_symbols = dynamic_table::find(header, endian, data, behind)
                .map(|[symbols, names]| SymbolTable { symbols, names });
        }
        Some(elf)
    }

    fn read_sections<'a, H, R>(&mut self, header: &H, data: R)
    where
        H: FileHeader<Endian = Endianness>,
        R: ReadRef<'a>,
    {
        let endian = self.layout.endian;
        let Ok(sections) = header.section_headers(endian, data) else {
            return;
        };
        let names = header.shstrndx(endian, data).ok().and_then(|index| {
            let names = sections.get(usize::try_from(index).ok()?)?;
            names.data(endian, data).ok()
        });
        let table = |section: &H::SectionHeader| {
            let names = sections.get(section.link(endian).0)?;
            let range = |section: &H::SectionHeader| {
                let (offset, size) = section.file_range(endian)?;
                (size > 0).then(|| offset..offset.saturating_add(size))
            };
            Some(SymbolTable {
                symbols: range(section)?,
                names: range(names)?,
            })
        };
        for section in sections {
            let start: u64 = section.sh_addr(endian).into();
            let size: u64 = section.sh_size(endian).into();
            let executable = section.sh_flags(endian).into() & u64::from(SHF_EXECINSTR) != 0;
            self.code
                .push(executable.then(|| start..start.saturating_add(size)));
            match section.sh_type(endian) {
                SHT_SYMTAB => self.symbols = self.symbols.take().or_else(|| table(section)),
                SHT_DYNSYM => {
                    self.dynamic_symbols = self.dynamic_symbols.take().or_else(|| table(section))
                }
                _ => {}
            }
            let Some(name) = names.and_then(|names| name_at(names, section.sh_name(endian))) else {
                continue;
            };
            let bytes = || section.data(endian, data).ok();
            match name {
                b".gnu_debuglink" => {
                    self.debug.link = bytes().and_then(|link| debug_link(link, endian));
                }
                b".gnu_debugaltlink" => self.debug.shared = bytes().and_then(shared_link),
                b".gnu_debugdata" => {
                    self.debug.minimal = section
                        .file_range(endian)
                        .map(|(start, size)| start..start.saturating_add(size));
                }
                _ if (name.starts_with(b".debug_") || name.starts_with(PACKED_PREFIX))
                    && self.debug.sections.len() < MAX_DEBUG_SECTIONS =>
                {
                    self.debug
                        .sections
                        .extend(debug_section(name, section, endian, data));
                }
                _ => {}
            }
        }
    }
}

/// Where a section of DWARF is, if it is in this file.
fn debug_section<'a, S, R>(
    name: &[u8],
    section: &S,
    endian: Endianness,
    data: R,
) -> Option<DebugSection>
where
    S: SectionHeader<Endian = Endianness>,
    R: ReadRef<'a>,
{
    // A section without bytes has no offset either.
    let (start, size) = section.file_range(endian)?;
    if let Some(rest) = name.strip_prefix(PACKED_PREFIX) {
        let header = data.read_bytes_at(start, PACKED_HEADER_BYTES).ok()?;
        let (magic, bytes) = header.split_first_chunk::<4>()?;
        // This size is big-endian in files of either byte order.
        let bytes = u64::from_be_bytes(bytes.try_into().ok()?);
        return (magic == b"ZLIB").then(|| DebugSection {
            name: [b".debug_", rest].concat().into(),
            file: start + PACKED_HEADER_BYTES..start.saturating_add(size),
            packing: Packing::Zlib,
            bytes,
        });
    }
    let (packing, start, size, bytes) = match section.compression(endian, data).ok()? {
        None => (Packing::None, start, size, size),
        Some((header, start, size)) => {
            let packing = Packing::of(header.ch_type(endian));
            (packing, start, size, header.ch_size(endian).into())
        }
    };
    Some(DebugSection {
        name: name.into(),
        file: start..start.saturating_add(size),
        packing,
        bytes,
    })
}

/// The NUL-terminated name at `offset`.
pub(super) fn name_at(names: &[u8], offset: u32) -> Option<&[u8]> {
    let rest = names.get(usize::try_from(offset).ok()?..)?;
    rest.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static OURSELVES: LazyLock<File> = LazyLock::new(|| File::open("/proc/self/exe").unwrap());

    static START: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut bytes = vec![0; 4096];
        std::os::unix::fs::FileExt::read_exact_at(&*OURSELVES, &mut bytes, 0).unwrap();
        bytes
    });

    fn segments() -> Segments {
        let segment = |file, address, executable| Segment {
            file,
            address,
            executable,
        };
        Segments(vec![
            segment(0..0x1100, 0x40_0000, false),
            segment(0x1000..0x3000, 0x40_2000, true),
            segment(0x8000..0x8000, 0x50_0000, true),
        ])
    }

    #[test]
    fn an_address_far_beyond_all_segments_has_no_offset() {
        assert_eq!(segments().offset(ElfAddress(u64::MAX)), None);
        let last = Segment {
            file: u64::MAX - 0x10..u64::MAX,
            address: 0x1000,
            executable: true,
        };
        let last = Segments(vec![last]);
        assert_eq!(last.offset(ElfAddress(u64::MAX)), None);
        let first = FileOffset(u64::MAX - 0x10);
        assert_eq!(last.offset(ElfAddress(0x1000)), Some(first));
    }

    #[test]
    fn an_offset_in_code_becomes_an_address() {
        let address = |offset| {
            segments()
                .address(FileOffset(offset))
                .map(|address| address.0)
        };
        assert_eq!(address(0x10), Some(0x40_0010));
        assert_eq!(
            address(0x1010),
            Some(0x40_2010),
            "the executable one of two"
        );
        assert_eq!(address(0x2fff), Some(0x40_3fff));
        assert_eq!(address(0x3000), None);
        assert_eq!(address(0x8000), None);
    }

    #[test]
    fn an_address_converts_to_an_offset_and_back() {
        for offset in [0x10, 0x1010, 0x2fff] {
            let address = segments().address(FileOffset(offset)).unwrap();
            assert_eq!(segments().offset(address), Some(FileOffset(offset)));
        }
        for nowhere in [0, 0x40_1100, 0x40_4000, 0x50_0000, u64::MAX] {
            assert_eq!(segments().offset(ElfAddress(nowhere)), None);
        }
    }

    #[test]
    fn the_elf_reader_reads_its_own_program() {
        let elf = Elf::read(&OURSELVES).unwrap();
        assert!(elf.layout.wide);
        assert!(elf.symbols.is_some());
        assert!(elf.dynamic_symbols.is_some());
        assert!(elf.code.iter().flatten().any(|code| !code.is_empty()));
        assert!(elf.debug.has_dwarf());
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(Elf::parse(bytes.as_slice()), Some(elf));
    }

    #[test]
    fn a_file_that_is_no_elf_is_rejected() {
        for bytes in [b"".as_slice(), b"\x7fELF", b"#!/bin/sh\n", &[0; 200]] {
            assert_eq!(Elf::parse(bytes), None);
        }
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_read_without_a_panic(
            damage in proptest::collection::vec((0usize..64, any::<u8>()), 1..6),
            cut in 64usize..4096,
        ) {
            let mut bytes = START[..cut.min(START.len())].to_vec();
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            if let Some(elf) = Elf::parse(bytes.as_slice()) {
                elf.segments.address(FileOffset(0x1000));
            }
        }

        #[test]
        fn hostile_tables_are_read_without_a_panic(table in proptest::collection::vec(any::<u64>(), 16..64)) {
            let mut bytes = START[..64].to_vec();
            // Program and section headers at the same offset, with arbitrary contents.
            bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
            bytes[40..48].copy_from_slice(&64u64.to_le_bytes());
            bytes[56..58].copy_from_slice(&4u16.to_le_bytes());
            bytes[60..62].copy_from_slice(&2u16.to_le_bytes());
            bytes[62..64].copy_from_slice(&1u16.to_le_bytes());
            bytes.extend(table.iter().flat_map(|word| word.to_le_bytes()));
            let elf = Elf::parse(bytes.as_slice());
            prop_assert!(elf.is_some());
        }
    }
}
