//! An object's file, as far as runtimes are recognized by it: dynamic symbols by name, and initialized data by address.
//!
//! In: an open file. Out: addresses and words. A symbol is found through the hash table that the dynamic linker uses, so a
//! file is asked in a few small reads, however many symbols it has. Trusts no number in the file.

use memchr::memmem::Finder;
use profiler_common::runtime::thread::Libc;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Program headers and entries of the dynamic section that are looked at.
const MOST_HEADERS: usize = 128;
const MOST_DYNAMIC: usize = 512;
/// Symbols of one chain of a hash table that are looked at.
const MOST_CHAIN: u32 = 4096;
/// The longest name that is compared, in bytes.
const NAME_BYTES: usize = 96;

/// Bytes of relocations (`DT_RELA`) that are looked at.
const MOST_RELOCATIONS: u64 = 16 << 20;
/// Bytes of a segment that are searched for text, and how many at a time.
const MOST_SEARCHED: u64 = 64 << 20;
const CHUNK: usize = 64 << 10;

/// Bytes of a relocation (`Elf64_Rela`).
const RELOCATION_BYTES: usize = 24;
/// Bytes of a symbol (`Elf64_Sym`).
const SYMBOL_BYTES: u64 = 24;

/// The object's own address and the size of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes; zero where the object does not say.
    pub size: u64,
    /// Its type (`STT_…`).
    pub kind: u8,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    offset: u64,
    bytes: u64,
}

/// An object for x86-64.
#[derive(Debug)]
pub struct Image<'f> {
    file: &'f File,
    segments: Vec<Segment>,
    /// Tags and values of the dynamic section.
    dynamic: Vec<(u64, u64)>,
    /// Size and alignment of the thread-local storage, if there is any.
    thread_local: Option<(u64, u64)>,
    /// The address of `.eh_frame_hdr`.
    frame_index: Option<u64>,
    /// Where the section headers are in the file, how many there are, and which has their names.
    sections: (u64, u16, u16),
    is_executable: bool,
    is_static: bool,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_TLS: u32 = 7;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const DT_NEEDED: u64 = 1;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_SONAME: u64 = 14;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

impl<'f> Image<'f> {
    /// The object in a file; none if it is none for x86-64. One without a dynamic section exports nothing.
    pub fn read(file: &'f File) -> Option<Self> {
        let header = bytes_at::<64>(file, 0)?;
        let is_elf = header.starts_with(b"\x7fELF\x02\x01");
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        if !is_elf || half(18) != 62 || half(54) != 56 {
            return None;
        }
        let first = u64::from_le_bytes(header[32..40].try_into().ok()?);
        let mut image = Self {
            file,
            segments: Vec::new(),
            dynamic: Vec::new(),
            thread_local: None,
            frame_index: None,
            sections: (
                u64::from_le_bytes(header[40..48].try_into().ok()?),
                half(60),
                half(62),
            ),
            is_executable: false,
            is_static: false,
        };
        let mut dynamic = None;
        for index in 0..usize::from(half(56)).min(MOST_HEADERS) {
            let header = bytes_at::<56>(file, first.checked_add(56 * index as u64)?)?;
            let word = |at: usize| -> u64 {
                let bytes = header[at..at + 8].try_into();
                u64::from_le_bytes(bytes.unwrap_or_default())
            };
            let segment = Segment {
                offset: word(8),
                address: word(16),
                bytes: word(32),
            };
            match word(0) as u32 {
                PT_LOAD => image.segments.push(segment),
                PT_DYNAMIC => dynamic = Some(segment),
                PT_INTERP => image.is_executable = true,
                PT_GNU_EH_FRAME => image.frame_index = Some(segment.address),
                PT_TLS => image.thread_local = Some((word(40), word(48))),
                _ => {}
            }
        }
        let Some(dynamic) = dynamic else {
            image.is_static = true;
            return Some(image);
        };
        for index in 0..(dynamic.bytes / 16).min(MOST_DYNAMIC as u64) {
            let entry = bytes_at::<16>(file, dynamic.offset.checked_add(16 * index)?)?;
            let (tag, value) = entry.split_at(8);
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            if number(tag) == 0 {
                break;
            }
            image.dynamic.push((number(tag), number(value)));
        }
        Some(image)
    }

    /// A symbol that the object exports.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        let symbols = self.dynamic(DT_SYMTAB)?;
        let names = self.dynamic(DT_STRTAB)?;
        let is_it = |index: u32| -> Option<Symbol> {
            let place = symbols.checked_add(u64::from(index).checked_mul(SYMBOL_BYTES)?)?;
            let [first, address, size] = self.words::<3>(place)?;
            let (string, kind, section) = (first as u32, (first >> 32) as u8 & 15, first >> 48);
            let is_defined = section != 0;
            let it = Symbol {
                address,
                size,
                kind,
            };
            (is_defined && self.has_name(names, string, name)).then_some(it)
        };
        match self.dynamic(DT_GNU_HASH) {
            Some(table) => self.by_gnu_hash(table, name, is_it),
            None => self.by_hash(self.dynamic(DT_HASH)?, name, is_it),
        }
    }

    /// Whether the object needs a library whose name begins so.
    pub fn needs(&self, name: &str) -> bool {
        self.has_dynamic_name(DT_NEEDED, name)
    }

    /// Whether the object needs libraries. What needs none is linked statically, or is a dynamic linker.
    pub fn has_libraries(&self) -> bool {
        self.dynamic(DT_NEEDED).is_some()
    }

    /// Whether the object's dynamic strings, among them what it imports, contain all these names. Those of an object that has
    /// more than a program usually has are not looked at.
    pub fn mentions(&self, names: &[&str]) -> bool {
        const MOST: u64 = 4 << 20;
        let strings = || -> Option<Vec<u8>> {
            let bytes = self.dynamic(DT_STRSZ).filter(|bytes| *bytes <= MOST)?;
            let mut strings = vec![0; usize::try_from(bytes).ok()?];
            self.copy(self.dynamic(DT_STRTAB)?, &mut strings)?;
            Some(strings)
        };
        let Some(strings) = strings() else {
            return false;
        };
        let mut missing: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        for string in strings.split(|byte| *byte == 0) {
            // Linkers keep one string for all that end alike.
            missing.retain(|name| !string.ends_with(name));
            if missing.is_empty() {
                return true;
            }
        }
        false
    }

    /// Where the object has the address of something: where its relocations write it, or if it lies at fixed addresses, where
    /// it stands.
    pub fn pointers_to(&self, address: u64) -> Vec<u64> {
        const R_X86_64_RELATIVE: u64 = 8;
        let relocations = self.relocations().into_iter();
        let written: Vec<u64> = relocations
            .filter(|[_, info, to]| *info == R_X86_64_RELATIVE && *to == address)
            .map(|[place, ..]| place)
            .collect();
        if !written.is_empty() {
            return written;
        }
        let mut standing = Vec::new();
        for segment in &self.segments {
            let Ok(bytes) = usize::try_from(segment.bytes.min(MOST_SEARCHED)) else {
                continue;
            };
            let mut contents = vec![0; bytes];
            if self.copy(segment.address, &mut contents).is_none() {
                continue;
            }
            let first = segment.address.wrapping_neg() as usize % 8;
            let words = contents.get(first..).unwrap_or_default().as_chunks::<8>().0;
            let places = words.iter().enumerate().filter_map(|(number, word)| {
                let place = segment.address.checked_add((first + 8 * number) as u64)?;
                (u64::from_le_bytes(*word) == address).then_some(place)
            });
            standing.extend(places);
        }
        standing
    }

    /// The C library that it needs. musl calls itself `libc.so`, and distributions' is `libc.musl-x86_64.so.1`.
    pub fn libc(&self) -> Libc {
        if self.needs("libc.musl") || self.needs("libc.so\0") {
            Libc::Musl
        } else {
            Libc::Glibc
        }
    }

    /// Whether the object calls itself by a name that begins so.
    pub fn is_called(&self, name: &str) -> bool {
        self.has_dynamic_name(DT_SONAME, name)
    }

    fn has_dynamic_name(&self, tag: u64, name: &str) -> bool {
        let Some(names) = self.dynamic(DT_STRTAB) else {
            return false;
        };
        let mut all = self.dynamic.iter().filter(|(other, _)| *other == tag);
        all.any(|(_, string)| {
            let mut bytes = [0; NAME_BYTES];
            let place = names.checked_add(*string);
            let read = place.and_then(|place| self.copy(place, &mut bytes[..name.len()]));
            read.is_some() && &bytes[..name.len()] == name.as_bytes()
        })
    }

    /// Size and alignment of the thread-local storage, if there is any.
    pub fn thread_local(&self) -> Option<(u64, u64)> {
        self.thread_local
    }

    /// Whether it is a program rather than a library: it names its dynamic linker.
    pub fn is_executable(&self) -> bool {
        self.is_executable
    }

    /// Whether it is a program without a dynamic section, which exports nothing.
    pub fn is_static(&self) -> bool {
        self.is_static
    }

    /// The address of a word into which the dynamic linker writes the number of this module, by which its thread-local
    /// variables are found. None if it has none: of programs, and where variables lie at fixed distances.
    pub fn module_word(&self) -> Option<u64> {
        const R_X86_64_DTPMOD64: u32 = 16;
        let symbols = self.dynamic(DT_SYMTAB)?;
        self.relocations().into_iter().find_map(|[place, info, _]| {
            if info as u32 != R_X86_64_DTPMOD64 {
                return None;
            }
            let symbol = symbols.checked_add((info >> 32) * SYMBOL_BYTES)?;
            let [first] = self.words(symbol)?;
            // Of a variable of another module's, that module's number is written.
            let is_own = info >> 32 == 0 || first >> 48 != 0;
            is_own.then_some(place)
        })
    }

    /// Its relocations (`Elf64_Rela`), as many as are looked at: place, type and symbol, and what is added.
    fn relocations(&self) -> Vec<[u64; 3]> {
        let copied = || -> Option<Vec<u8>> {
            let bytes = self.dynamic(DT_RELASZ)?.min(MOST_RELOCATIONS);
            let mut relocations = vec![0; usize::try_from(bytes).ok()?];
            self.copy(self.dynamic(DT_RELA)?, &mut relocations)?;
            Some(relocations)
        };
        let copied = copied().unwrap_or_default();
        let entries = copied.chunks_exact(RELOCATION_BYTES).map(|entry| {
            let mut words = [0; 3];
            for (word, bytes) in words.iter_mut().zip(entry.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            words
        });
        entries.collect()
    }

    /// Where the dynamic linker writes the address of a variable that the object exports, and by which the object uses it: a
    /// program that uses it, too, may have a copy in the object's place. None if the object uses its own in any case.
    pub fn slot_of(&self, name: &str) -> Option<u64> {
        const R_X86_64_GLOB_DAT: u32 = 6;
        let symbols = self.dynamic(DT_SYMTAB)?;
        let names = self.dynamic(DT_STRTAB)?;
        let is_it = |symbol: u64| -> Option<bool> {
            let place = symbols.checked_add(symbol.checked_mul(SYMBOL_BYTES)?)?;
            let [first] = self.words::<1>(place)?;
            Some(self.has_name(names, first as u32, name))
        };
        let mut slots = self.relocations().into_iter().filter(|[_, info, _]| {
            *info as u32 == R_X86_64_GLOB_DAT && is_it(info >> 32) == Some(true)
        });
        slots.next().map(|[place, ..]| place)
    }

    /// The address of the index of its frame table (`.eh_frame_hdr`), if there is one.
    pub fn frame_index(&self) -> Option<u64> {
        self.frame_index
    }

    /// The addresses of its frame table (`.eh_frame`), by the section's name.
    pub fn frames(&self) -> Option<Range<u64>> {
        self.section(b".eh_frame\0")
    }

    /// The addresses of the section of that name, which ends with a NUL.
    fn section<const N: usize>(&self, wanted: &[u8; N]) -> Option<Range<u64>> {
        const HEADER_BYTES: u64 = 64;
        let (first, count, names) = self.sections;
        let section = |index: u16| -> Option<[u64; 8]> {
            let place = first.checked_add(HEADER_BYTES * u64::from(index))?;
            let bytes = bytes_at::<64>(self.file, place)?;
            let (words, _) = bytes.as_chunks::<8>();
            let mut section = [0; 8];
            for (word, bytes) in section.iter_mut().zip(words) {
                *word = u64::from_le_bytes(*bytes);
            }
            Some(section)
        };
        // Name and type, flags, address, offset, bytes.
        let [_, _, _, names, ..] = section(names)?;
        (0..count).find_map(|index| {
            let [name, _, address, _, bytes, ..] = section(index)?;
            let name = names.checked_add(u64::from(name as u32))?;
            let is_it = bytes_at::<N>(self.file, name)? == *wanted;
            let end = address.checked_add(bytes)?;
            (is_it && address != 0).then_some(address..end)
        })
    }

    /// The first text in the object that begins with `before`, is `length` bytes long and `is_it`.
    pub fn find(
        &self,
        before: &[u8],
        length: usize,
        is_it: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let mut all = self.segments.iter();
        all.find_map(|segment| {
            let end = segment.address.checked_add(segment.bytes)?;
            self.find_within(segment.address..end, before, length, &is_it)
        })
    }

    /// As [`find`](Self::find), in constants only, as far as the object tells where they are.
    pub fn find_constant(
        &self,
        before: &[u8],
        length: usize,
        is_it: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        match self.section(b".rodata\0") {
            Some(section) => self.find_within(section, before, length, &is_it),
            None => self.find(before, length, is_it),
        }
    }

    fn find_within(
        &self,
        within: Range<u64>,
        before: &[u8],
        length: usize,
        is_it: &impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let finder = Finder::new(before);
        let end = within.end.min(within.start.checked_add(MOST_SEARCHED)?);
        let mut chunk = vec![0; CHUNK];
        let mut place = within.start;
        while place < end {
            let bytes = usize::try_from(end - place).unwrap_or(CHUNK).min(CHUNK);
            let chunk = &mut chunk[..bytes];
            self.copy(place, chunk)?;
            let mut all = finder.find_iter(chunk).map(|at| &chunk[at..]);
            let found = all.find_map(|rest| rest.get(..length).filter(|found| is_it(found)));
            if let Some(found) = found {
                return Some(found.to_vec());
            }
            if bytes < CHUNK {
                break;
            }
            // Texts that lie across two chunks are seen whole in the next.
            place = place.checked_add((CHUNK - length) as u64)?;
        }
        None
    }

    /// Initialized words at an address of the object's own.
    pub fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        let mut place = address;
        for word in &mut words {
            let mut bytes = [0; 8];
            self.copy(place, &mut bytes)?;
            *word = u64::from_le_bytes(bytes);
            place = place.checked_add(8)?;
        }
        Some(words)
    }

    /// Copies initialized bytes at an address of the object's own.
    pub fn copy(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let segment = self.segments.iter().find(|segment| {
            let into_segment = address.checked_sub(segment.address);
            let end = into_segment.and_then(|from| from.checked_add(into.len() as u64));
            end.is_some_and(|end| end <= segment.bytes)
        })?;
        let offset = segment.offset.checked_add(address - segment.address)?;
        self.file.read_exact_at(into, offset).ok()
    }

    fn dynamic(&self, tag: u64) -> Option<u64> {
        let mut all = self.dynamic.iter();
        Some(all.find(|(other, _)| *other == tag)?.1)
    }

    fn has_name(&self, names: u64, string: u32, name: &str) -> bool {
        let mut bytes = [0; NAME_BYTES];
        let length = name.len() + 1;
        let place = names.checked_add(u64::from(string));
        let read = place.and_then(|place| self.copy(place, bytes.get_mut(..length)?));
        read.is_some() && &bytes[..name.len()] == name.as_bytes() && bytes[name.len()] == 0
    }

    fn half(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.copy(address, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// As `dl-lookup.c` of glibc does.
    fn by_gnu_hash(
        &self,
        table: u64,
        name: &str,
        is_it: impl Fn(u32) -> Option<Symbol>,
    ) -> Option<Symbol> {
        let hash = name.bytes().fold(5381u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(byte))
        });
        let [buckets, first, filter] =
            [0, 4, 8].map(|at| table.checked_add(at).and_then(|at| self.half(at)));
        let (buckets, first, filter) = (buckets?, first?, filter?);
        let starts = table
            .checked_add(16)?
            .checked_add(u64::from(filter).checked_mul(8)?)?;
        let bucket = u64::from(hash.checked_rem(buckets)?);
        let mut index = self.half(starts.checked_add(4 * bucket)?)?;
        if index < first {
            return None;
        }
        let chains = starts.checked_add(4 * u64::from(buckets))?;
        for _ in 0..MOST_CHAIN {
            let link = self.half(chains.checked_add(4 * u64::from(index - first))?)?;
            if (link ^ hash) >> 1 == 0
                && let Some(symbol) = is_it(index)
            {
                return Some(symbol);
            }
            if link & 1 != 0 {
                return None;
            }
            index = index.checked_add(1)?;
        }
        None
    }

    /// As the System V ABI has it.
    fn by_hash(
        &self,
        table: u64,
        name: &str,
        is_it: impl Fn(u32) -> Option<Symbol>,
    ) -> Option<Symbol> {
        let hash = name.bytes().fold(0u32, |hash, byte| {
            let hash = (hash << 4).wrapping_add(u32::from(byte));
            let high = hash & 0xf000_0000;
            (hash ^ high >> 24) & !high
        });
        let buckets = self.half(table)?;
        let starts = table.checked_add(8)?;
        let bucket = u64::from(hash.checked_rem(buckets)?);
        let mut index = self.half(starts.checked_add(4 * bucket)?)?;
        let chains = starts.checked_add(4 * u64::from(buckets))?;
        for _ in 0..MOST_CHAIN {
            if index == 0 {
                return None;
            }
            if let Some(symbol) = is_it(index) {
                return Some(symbol);
            }
            index = self.half(chains.checked_add(4 * u64::from(index))?)?;
        }
        None
    }
}

fn bytes_at<const N: usize>(file: &File, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// The C library that this process has mapped.
    fn libc() -> File {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.lines().find_map(|line| {
            let path = line.split_whitespace().nth(5)?;
            path.contains("/libc.so").then(|| path.to_owned())
        });
        File::open(path.unwrap()).unwrap()
    }

    #[test]
    fn a_library_s_symbols_are_found_by_name() {
        let file = libc();
        let image = Image::read(&file).unwrap();
        assert!(image.symbol("getenv").is_some_and(|symbol| symbol.size > 0));
        assert_eq!(image.symbol("no_such_function_anywhere"), None);
        assert!(image.is_called("libc."));
    }

    #[test]
    fn the_frame_table_is_found_by_its_section() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let image = Image::read(&file).unwrap();
        assert!(!image.is_static());
        let frames = image.frames().unwrap();
        // Its first entry is what is common to others.
        let [first] = image.words(frames.start).unwrap();
        assert_eq!(first >> 32, 0);
        assert!(frames.end - frames.start > 1000);
    }

    #[test]
    fn what_is_no_object_is_none() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01", &[0x7f; 300]] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            assert!(Image::read(&file).is_none());
        }
    }

    #[test]
    fn a_variable_that_programs_may_have_a_copy_of_has_a_slot() {
        let file = libc();
        let image = Image::read(&file).unwrap();
        let slot = image.slot_of("stdout").unwrap();
        assert_ne!(slot, image.symbol("stdout").unwrap().address);
        assert_eq!(image.slot_of("stdou"), None);
        assert_eq!(image.slot_of("no such variable"), None);
    }
}
