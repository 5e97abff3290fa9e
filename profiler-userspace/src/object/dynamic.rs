//! An object as the dynamic linker reads it: exported symbols, needed libraries, relocations.
//!
//! In: an [`Image`]. Out: addresses. A symbol is found through the hash table that the dynamic linker uses, so a file is
//! asked in a few small reads, however many symbols it has. See the System V ABI, chapter 5, "Dynamic Linking".

use super::arch::{MODULE_NUMBER, RELATIVE, SYMBOL_ADDRESS};
use super::image::{Image, Part, Relocation};
use memchr::memmem;
use object::LittleEndian as Little;
use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_NEEDED, DT_RELA, DT_RELASZ, DT_SONAME, DT_STRSZ, DT_STRTAB, DT_SYMTAB,
    GnuHashHeader, HashHeader, PT_TLS, SHN_UNDEF, Sym64, gnu_hash, hash,
};
use object::endian::U32;
use object::read::elf::Sym as _;
use profiler_common::runtime::thread::Libc;

/// The most symbols of one chain of a hash table that are looked at.
const MAX_CHAIN: u32 = 4096;

/// The most bytes of relocations that are looked at.
const MAX_RELOCATION_BYTES: u64 = 16 << 20;

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

impl Image<'_> {
    /// Whether the object has a hash table by which [`symbol`](Self::symbol) finds all that it exports.
    pub fn exports_by_hash(&self) -> bool {
        let mut tags = [DT_GNU_HASH, DT_HASH].into_iter();
        tags.any(|tag| self.dynamic(tag).is_some())
    }

    /// A symbol that the object exports.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        match self.dynamic(DT_GNU_HASH) {
            Some(table) => self.by_gnu_hash(table, name),
            None => self.by_hash(self.dynamic(DT_HASH)?, name),
        }
    }

    /// As `dl-lookup.c` of glibc does.
    fn by_gnu_hash(&self, table: u64, name: &str) -> Option<Symbol> {
        let header: GnuHashHeader<Little> = self.pod(table)?;
        let hash = gnu_hash(name.as_bytes());
        let (buckets, first) = (
            header.bucket_count.get(Little),
            header.symbol_base.get(Little),
        );
        let words = u64::from(header.bloom_count.get(Little));
        let filter = table.checked_add(16)?;
        // Most objects lack most names, and their filter says so.
        let word = u64::from(hash / 64).checked_rem(words)?;
        let [word] = self.words(filter.checked_add(8 * word)?)?;
        let bits = [hash, hash.checked_shr(header.bloom_shift.get(Little))?];
        if bits.iter().any(|bit| word >> (bit % 64) & 1 == 0) {
            return None;
        }
        let starts = filter.checked_add(words.checked_mul(8)?)?;
        let mut index = self.half(starts, hash.checked_rem(buckets)?)?;
        let chains = starts.checked_add(4 * u64::from(buckets))?;
        for _ in 0..MAX_CHAIN {
            let link = self.half(chains, index.checked_sub(first)?)?;
            if (link ^ hash) >> 1 == 0
                && let Some(symbol) = self.defined(index, name)
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
    fn by_hash(&self, table: u64, name: &str) -> Option<Symbol> {
        let header: HashHeader<Little> = self.pod(table)?;
        let buckets = header.bucket_count.get(Little);
        let starts = table.checked_add(8)?;
        let mut index = self.half(starts, hash(name.as_bytes()).checked_rem(buckets)?)?;
        let chains = starts.checked_add(4 * u64::from(buckets))?;
        for _ in 0..MAX_CHAIN {
            if index == 0 {
                return None;
            }
            if let Some(symbol) = self.defined(index, name) {
                return Some(symbol);
            }
            index = self.half(chains, index)?;
        }
        None
    }

    /// The number at this index of an array.
    fn half(&self, array: u64, index: u32) -> Option<u32> {
        let number: U32<Little> = self.pod(array.checked_add(4 * u64::from(index))?)?;
        Some(number.get(Little))
    }

    /// The symbol at this index, if it has the name and the object defines it.
    fn defined(&self, index: u32, name: &str) -> Option<Symbol> {
        let symbol = self.named(index, name)?;
        (symbol.st_shndx(Little) != SHN_UNDEF).then(|| Symbol {
            address: symbol.st_value(Little),
            size: symbol.st_size(Little),
            kind: symbol.st_type(),
        })
    }

    /// The symbol at this index, if it has the name.
    fn named(&self, index: u32, name: &str) -> Option<Sym64<Little>> {
        let symbol = self.dynamic_symbol(index)?;
        let text = [name.as_bytes(), b"\0"].concat();
        self.has_string(symbol.st_name(Little).into(), &text)
            .then_some(symbol)
    }

    fn dynamic_symbol(&self, index: u32) -> Option<Sym64<Little>> {
        let offset = u64::from(index) * size_of::<Sym64<Little>>() as u64;
        self.pod(self.dynamic(DT_SYMTAB)?.checked_add(offset)?)
    }

    /// Whether the dynamic string at this offset begins so.
    fn has_string(&self, offset: u64, text: &[u8]) -> bool {
        let address = self.dynamic(DT_STRTAB);
        let address = address.and_then(|strings| strings.checked_add(offset));
        address.is_some_and(|address| self.bytes(address, text.len()) == text)
    }

    /// Whether the object needs a library whose name begins so.
    pub fn needs(&self, name: &str) -> bool {
        self.has_dynamic_name(DT_NEEDED, name)
    }

    /// Whether the object needs libraries. One that needs none is linked statically, or is a dynamic linker.
    pub fn has_libraries(&self) -> bool {
        self.dynamic(DT_NEEDED).is_some()
    }

    /// Whether the object calls itself by a name that begins so.
    pub fn is_called(&self, name: &str) -> bool {
        self.has_dynamic_name(DT_SONAME, name)
    }

    fn has_dynamic_name(&self, tag: i64, name: &str) -> bool {
        let mut all = self.dynamic.iter().filter(|(other, _)| *other == tag);
        all.any(|(_, offset)| self.has_string(*offset, name.as_bytes()))
    }

    /// Whether the object's dynamic strings, among them what it imports, contain all these names. Those of an object that
    /// has more than a program usually has are not looked at.
    pub fn mentions(&self, names: &[&str]) -> bool {
        // Linkers keep one string for all that end alike.
        let is_there = |name: &&str| {
            let ending = [name.as_bytes(), b"\0"].concat();
            memmem::find(self.dynamic_strings(), &ending).is_some()
        };
        names.iter().all(is_there)
    }

    /// The dynamic strings; none where they are too many.
    fn dynamic_strings(&self) -> &[u8] {
        const MAX_BYTES: u64 = 4 << 20;
        let read = || -> Option<Vec<u8>> {
            let bytes = self.dynamic(DT_STRSZ).filter(|bytes| *bytes <= MAX_BYTES)?;
            let mut strings = vec![0; usize::try_from(bytes).ok()?];
            self.copy(self.dynamic(DT_STRTAB)?, &mut strings)?;
            Some(strings)
        };
        self.strings.get_or_init(|| read().unwrap_or_default())
    }

    /// The C library that it needs. musl calls itself `libc.so`, and distributions' is `libc.musl-…`, with the machine in it.
    pub fn libc(&self) -> Libc {
        if self.needs("libc.musl") || self.needs("libc.so\0") {
            Libc::Musl
        } else {
            Libc::Glibc
        }
    }

    /// Size and alignment of the thread-local storage, if there is any.
    pub fn thread_local(&self) -> Option<(u64, u64)> {
        let segment = self.of_type(PT_TLS).last()?;
        Some((segment.p_memsz.get(Little), segment.p_align.get(Little)))
    }

    /// The relocations that the dynamic linker applies.
    fn relocations(&self) -> Vec<Relocation> {
        let table = || -> Option<Part> {
            let table = self.loaded_at(self.dynamic(DT_RELA)?)?;
            let bytes = self.dynamic(DT_RELASZ)?.min(MAX_RELOCATION_BYTES);
            (bytes <= table.bytes).then_some(Part { bytes, ..table })
        };
        let mut all = Vec::new();
        if let Some(table) = table() {
            self.each_relocation(table, |_, relocation| all.push(*relocation));
        }
        all
    }

    /// The addresses into which relocations write the address of something.
    pub fn relocated_pointers_to(&self, address: u64) -> Vec<u64> {
        let relocations = self.relocations().into_iter().filter(|relocation| {
            relocation.r_info.get(Little) == u64::from(RELATIVE)
                && relocation.r_addend.get(Little).cast_unsigned() == address
        });
        relocations.map(|it| it.r_offset.get(Little)).collect()
    }

    /// The address of a word into which the dynamic linker writes the number of this module, by which its thread-local
    /// variables are found. None if it has none: of programs, and where variables lie at fixed distances.
    pub fn module_word(&self) -> Option<u64> {
        self.dynamic(DT_SYMTAB)?;
        self.relocations().into_iter().find_map(|relocation| {
            if relocation.r_type(Little, false) != MODULE_NUMBER {
                return None;
            }
            let index = relocation.r_sym(Little, false);
            let symbol = self.dynamic_symbol(index)?;
            // Of a variable of another module's, that module's number is written.
            let is_own = index == 0 || symbol.st_shndx(Little) != SHN_UNDEF;
            is_own.then(|| relocation.r_offset.get(Little))
        })
    }

    /// The address into which the dynamic linker writes the address of a variable that the object exports, and by which the
    /// object uses it: a program that uses it, too, may have a copy elsewhere. None if the object uses its own in any
    /// case.
    pub fn slot_of(&self, name: &str) -> Option<u64> {
        let mut slots = self.relocations().into_iter().filter(|relocation| {
            relocation.r_type(Little, false) == SYMBOL_ADDRESS
                && self.named(relocation.r_sym(Little, false), name).is_some()
        });
        Some(slots.next()?.r_offset.get(Little))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

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
    fn a_variable_that_programs_may_have_a_copy_of_has_a_slot() {
        let file = libc();
        let image = Image::read(&file).unwrap();
        let slot = image.slot_of("stdout").unwrap();
        assert_ne!(slot, image.symbol("stdout").unwrap().address);
        assert_eq!(image.slot_of("stdou"), None);
        assert_eq!(image.slot_of("no such variable"), None);
    }
}
