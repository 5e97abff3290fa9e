//! An ELF file for 64-bit x86, by its sections and segments.
//!
//! In: the file's headers, read within a bound. Out: bytes of sections, and bytes at addresses.

use crate::object::Bounded;
use object::LittleEndian as Little;
use object::elf::{
    DF_1_PIE, DT_DEBUG, DT_FLAGS_1, EM_X86_64, ET_EXEC, FileHeader64, PF_X, PT_DYNAMIC, PT_LOAD,
    ProgramHeader64, SHF_EXECINSTR, SHF_WRITE, SHT_FINI_ARRAY, SHT_INIT_ARRAY, SHT_NOBITS,
    SHT_PREINIT_ARRAY, SHT_PROGBITS, SHT_RELA, SectionHeader64,
};
use object::read::ReadRef;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

type Header = FileHeader64<Little>;
type Section = SectionHeader64<Little>;
type Segment = ProgramHeader64<Little>;

/// Compilers, assemblers and linkers begin functions at multiples of this, unless they pack them.
pub(super) const ALIGNMENT: u64 = 16;

/// At most so many sections or segments of code are considered, and so many arrays of functions.
const MAX_PARTS: usize = 256;

/// Where bytes of the image are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The address of the first.
    pub(super) address: u64,
    /// Its place in the file.
    pub(super) offset: u64,
    /// How many there are in the file.
    pub(super) bytes: u64,
}

impl Part {
    pub(super) fn addresses(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.bytes)
    }
}

/// A file's headers.
pub(super) struct Image<'data> {
    data: &'data Bounded<'data>,
    header: &'data Header,
    segments: &'data [Segment],
    sections: SectionTable<'data, Header, &'data Bounded<'data>>,
    /// Sections with code; where there are no sections, segments with code.
    pub(super) code: Vec<Part>,
}

impl<'data> Image<'data> {
    /// Reads the headers; none where it is no such file.
    pub(super) fn read(data: &'data Bounded<'data>) -> Option<Self> {
        let header = Header::parse(data).ok()?;
        header.endian().ok()?;
        if header.e_machine.get(Little) != EM_X86_64 {
            return None;
        }
        let mut image = Self {
            data,
            header,
            segments: header.program_headers(Little, data).ok()?,
            sections: header.sections(Little, data).unwrap_or_default(),
            code: Vec::new(),
        };
        let code = image.sections.iter().filter(|section| {
            section.sh_flags(Little) & u64::from(SHF_EXECINSTR) != 0
                && section.sh_type(Little) != SHT_NOBITS
        });
        image.code = code.map(part).take(MAX_PARTS).collect();
        if image.code.is_empty() {
            let code = image
                .loads()
                .filter(|load| load.p_flags(Little) & PF_X != 0);
            image.code = code.map(loaded).take(MAX_PARTS).collect();
        }
        image.code.retain(|part| part.bytes > 0);
        image.code.sort_by_key(|part| part.address);
        Some(image)
    }

    fn loads(&self) -> impl Iterator<Item = &'data Segment> + use<'data> {
        let segments = self.segments;
        segments
            .iter()
            .filter(|segment| segment.p_type(Little) == PT_LOAD)
    }

    /// Whether it is a program that always has the same addresses.
    pub(super) fn is_fixed(&self) -> bool {
        self.header.e_type(Little) == ET_EXEC
    }

    /// The entry point; libraries have one, too.
    pub(super) fn start(&self) -> u64 {
        self.header.e_entry(Little)
    }

    /// The entry point, if it is a program.
    pub(super) fn entry(&self) -> Option<u64> {
        let entry = self.start();
        let is_program = self.header.e_type(Little) == ET_EXEC
            || self.dynamic(DT_DEBUG).is_some()
            || self
                .dynamic(DT_FLAGS_1)
                .is_some_and(|flags| flags & u64::from(DF_1_PIE) != 0);
        (is_program && entry != 0).then_some(entry)
    }

    /// The value of the first entry with this tag in the dynamic section.
    pub(super) fn dynamic(&self, tag: i64) -> Option<u64> {
        let mut all = self
            .segments
            .iter()
            .filter(|segment| segment.p_type(Little) == PT_DYNAMIC)
            .filter_map(|segment| segment.dynamic(Little, self.data).ok()?)
            .flatten();
        let entry = all.find(|entry| entry.d_tag.get(Little) == tag)?;
        Some(entry.d_val.get(Little))
    }

    /// The code that an address lies in: its section.
    pub(super) fn code_at(&self, address: u64) -> Option<Range<u64>> {
        let behind = self.code.partition_point(|part| part.address <= address);
        let code = self.code[..behind].last()?.addresses();
        code.contains(&address).then_some(code)
    }

    /// The address and the bytes of the section with this name, if it has no more than `most`.
    pub(super) fn section(&self, name: &[u8], most: u64) -> Option<(u64, &'data [u8])> {
        let (_, section) = self.sections.section_by_name(Little, name)?;
        let is_there = section.sh_type(Little) != SHT_NOBITS && section.sh_size(Little) <= most;
        let bytes = is_there.then(|| section.data(Little, self.data).ok())??;
        Some((section.sh_addr(Little), bytes))
    }

    /// Where a section is and how large each of its entries is, by its name.
    pub(super) fn section_part(&self, name: &[u8]) -> Option<(Part, u64)> {
        let (_, section) = self.sections.section_by_name(Little, name)?;
        (section.sh_type(Little) != SHT_NOBITS).then(|| (part(section), section.sh_entsize(Little)))
    }

    /// Sections of data that a program may write to, or the loader.
    pub(super) fn data(&self) -> impl Iterator<Item = Part> {
        let writable = |section: &&Section| {
            let flags = section.sh_flags(Little);
            flags & u64::from(SHF_WRITE) != 0 && section.sh_type(Little) == SHT_PROGBITS
        };
        self.sections
            .iter()
            .filter(writable)
            .map(part)
            .take(MAX_PARTS)
    }

    /// Where relocations are, each part with its section's name.
    pub(super) fn relocations(&self) -> impl Iterator<Item = (&'data [u8], Part)> {
        let all = self.sections.iter();
        let relocations = all.filter(|section| section.sh_type(Little) == SHT_RELA);
        relocations.take(MAX_PARTS).map(|section| {
            let name = self.sections.section_name(Little, section);
            (name.unwrap_or_default(), part(section))
        })
    }

    /// At most `most` bytes at an address, fewer at the end of what the file holds there.
    pub(super) fn bytes(&self, file: &File, address: u64, most: usize) -> Vec<u8> {
        let found = self.loads().map(loaded).find_map(|load| {
            let into = address.checked_sub(load.address)?;
            let left = load.bytes.checked_sub(into).filter(|&left| left > 0)?;
            Some((load.offset.checked_add(into)?, left))
        });
        let Some((offset, left)) = found else {
            return Vec::new();
        };
        read(
            file,
            offset,
            most.min(usize::try_from(left).unwrap_or(usize::MAX)),
        )
    }

    /// The first byte that is no padding: an address behind a function, up to which linkers align the next.
    pub(super) fn skip_padding(&self, address: u64) -> u64 {
        let aligned = address.next_multiple_of(ALIGNMENT);
        let Ok(wanted) = usize::try_from(aligned - address) else {
            return address;
        };
        let mut padding = [0; ALIGNMENT as usize];
        let offset = self.code.iter().find_map(|part| {
            let into = address.checked_sub(part.address)?;
            (into < part.bytes).then(|| part.offset.saturating_add(into))
        });
        // The bounded reader keeps what it read; a few bytes for each gap are little.
        let Some(bytes) = offset.and_then(|at| self.data.read_bytes_at(at, wanted as u64).ok())
        else {
            return address;
        };
        padding[..wanted].copy_from_slice(bytes);
        match is_padding(&padding[..wanted], address) {
            true => aligned,
            false => address,
        }
    }

    /// The arrays of functions that are called when the object is loaded and unloaded.
    pub(super) fn function_arrays(&self) -> Vec<Part> {
        let arrays = self.sections.iter().filter(|section| {
            let kind = section.sh_type(Little);
            [SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY].contains(&kind)
        });
        arrays.map(part).take(MAX_PARTS).collect()
    }
}

/// Whether these bytes behind a function are no code that runs.
pub(super) fn is_padding(bytes: &[u8], address: u64) -> bool {
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let all_zero = bytes.iter().all(|&byte| byte == 0);
    all_zero
        || decoder
            .iter()
            .all(|instruction| matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
}

fn part(section: &Section) -> Part {
    Part {
        address: section.sh_addr(Little),
        offset: section.sh_offset(Little),
        bytes: section.sh_size(Little),
    }
}

fn loaded(segment: &Segment) -> Part {
    Part {
        address: segment.p_vaddr(Little),
        offset: segment.p_offset(Little),
        bytes: segment.p_filesz(Little),
    }
}

/// At most `most` bytes of the file, fewer at its end.
pub(super) fn read(file: &File, offset: u64, most: usize) -> Vec<u8> {
    // Claimed sizes may be a lie; no more is held than the file has.
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let there = usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; most.min(there)];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}
