//! The tables of an ELF file.
//!
//! In: bytes, or a file read piece by piece. Out: an [`Elf`]. Pure, never fails halfway: what cannot be
//! read is not there. See `elf(5)`.

use super::bounded::Bounded;
use super::{BuildId, ElfAddress, FileOffset};
use object::elf::{
    ELFCOMPRESS_ZLIB, FileHeader32, FileHeader64, PF_X, PT_LOAD, SHF_EXECINSTR, SHT_DYNSYM,
    SHT_NOBITS, SHT_SYMTAB,
};
use object::read::ReadRef;
use object::read::elf::{
    CompressionHeader as _, FileHeader, ProgramHeader as _, SectionHeader as _,
};
use object::{Endianness, FileKind};
use std::ffi::OsString;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt as _;

/// The most that debug sections may grow to when unpacked, in bytes; the packed size is the file's
/// word alone.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;

/// How the file's numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// 64 bits; otherwise 32.
    pub wide: bool,
    /// Which byte comes first.
    pub endian: Endianness,
}

/// One part of the file that is loaded into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    file: Range<u64>,
    address: u64,
    executable: bool,
}

/// The parts of the file that are loaded into memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

impl Segments {
    /// The address that the byte at `offset` is meant for. Where segments overlap in the file, the
    /// executable one is asked first: offsets come from code.
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

/// Where a symbol table lies in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolTable {
    /// The symbols.
    pub symbols: Range<u64>,
    /// Their names.
    pub names: Range<u64>,
}

/// The name of a separate debug file, and the checksum that proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// A file name, without any directory.
    pub name: OsString,
    /// The CRC-32 of the whole debug file.
    pub crc: u32,
}

/// What an ELF file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// How its numbers are written.
    pub layout: Layout,
    /// What of it is loaded.
    pub segments: Segments,
    /// Which build it is.
    pub build_id: Option<BuildId>,
    /// Which file holds what was stripped from it.
    pub debug_link: Option<DebugLink>,
    /// All symbols, in a file that was not stripped.
    pub symbols: Option<SymbolTable>,
    /// The symbols that other objects may use.
    pub dynamic_symbols: Option<SymbolTable>,
    /// The addresses of each section, by index, if it holds code.
    pub code: Vec<Option<Range<u64>>>,
    /// Whether it holds DWARF that can be read without opening other files and in bounded memory.
    pub has_dwarf: bool,
}

impl Elf {
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
            segments: Segments::default(),
            build_id: None,
            debug_link: None,
            symbols: None,
            dynamic_symbols: None,
            code: Vec::new(),
            has_dwarf: false,
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
        let mut debug = Debug::default();
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
            match names.and_then(|names| name(names, section.sh_name(endian))) {
                Some(b".gnu_debuglink") => {
                    self.debug_link = section
                        .data(endian, data)
                        .ok()
                        .and_then(|link| debug_link(link, endian));
                    debug.elsewhere = true;
                }
                Some(b".gnu_debugaltlink" | b".debug_sup") => debug.elsewhere = true,
                Some(name)
                    if name.starts_with(b".debug_") && section.sh_type(endian) != SHT_NOBITS =>
                {
                    debug.found |= name == b".debug_info";
                    match section.compression(endian, data) {
                        Ok(None) => {}
                        Ok(Some((header, ..))) if header.ch_type(endian) == ELFCOMPRESS_ZLIB => {
                            debug.unpacked =
                                debug.unpacked.saturating_add(header.ch_size(endian).into());
                        }
                        _ => debug.elsewhere = true,
                    }
                }
                _ => {}
            }
        }
        self.has_dwarf = debug.found && !debug.elsewhere && debug.unpacked <= MAX_UNPACKED_BYTES;
    }
}

/// What the sections tell of DWARF.
#[derive(Default)]
struct Debug {
    found: bool,
    /// Some of it is in another file, or packed in a way that is not read.
    elsewhere: bool,
    /// How large the packed sections claim to be, in bytes.
    unpacked: u64,
}

/// The NUL-terminated name at `offset`.
fn name(names: &[u8], offset: u32) -> Option<&[u8]> {
    let rest = names.get(usize::try_from(offset).ok()?..)?;
    rest.split(|&byte| byte == 0).next()
}

/// A debug link: a name, NULs up to a multiple of four bytes, and a checksum.
fn debug_link(section: &[u8], endian: Endianness) -> Option<DebugLink> {
    let end = section.iter().position(|&byte| byte == 0)?;
    let crc = section
        .get((end + 1).next_multiple_of(4)..)?
        .first_chunk()?;
    let name = &section[..end];
    // A name with directories in it would reach beyond those that are searched.
    let plain = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
    plain.then(|| DebugLink {
        name: OsString::from_vec(name.to_vec()),
        crc: match endian {
            Endianness::Little => u32::from_le_bytes(*crc),
            Endianness::Big => u32::from_be_bytes(*crc),
        },
    })
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
    fn reads_its_own_program() {
        let elf = Elf::read(&OURSELVES).unwrap();
        assert!(elf.layout.wide);
        assert!(elf.symbols.is_some());
        assert!(elf.dynamic_symbols.is_some());
        assert!(elf.code.iter().flatten().any(|code| !code.is_empty()));
        assert!(elf.has_dwarf);
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(Elf::parse(bytes.as_slice()), Some(elf));
    }

    #[test]
    fn a_debug_link_is_a_plain_name_and_a_checksum() {
        let link = |bytes: &[u8]| debug_link(bytes, Endianness::Little);
        let found = link(b"libx.debug\0\0\x78\x56\x34\x12").unwrap();
        assert_eq!(
            (found.name.to_str(), found.crc),
            (Some("libx.debug"), 0x1234_5678)
        );
        assert!(link(b"abc\0\x78\x56\x34\x12").is_some());
        for bad in [
            b"../x\0\0\0\0\x01\x02\x03\x04".as_slice(),
            b"..\0\0\x01\x02\x03\x04",
            b"abc\0\x78\x56",
            b"abc",
            b"",
        ] {
            assert_eq!(link(bad), None);
        }
    }

    #[test]
    fn what_is_no_elf_file_is_none() {
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
            // Program headers and section headers, at one place, of arbitrary contents.
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
