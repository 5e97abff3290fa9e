//! Where the dynamic symbols of a file without section headers are.
//!
//! In: its program headers. Out: the ranges of the symbols and of their names in the file, as the dynamic linker finds
//! them. How many there are, no entry says: the hash table by which they are found does. Packers and linkers
//! (`-z nosectionheader`) leave section headers out. See the System V ABI, chapter 5, "Dynamic Section".

use object::Endianness;
use object::elf::{DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB};
use object::read::ReadRef;
use object::read::elf::{Dyn as _, FileHeader, GnuHashTable, HashTable, ProgramHeader as _};
use std::ops::Range;

/// The most bytes that are read of a hash table: that of a million symbols.
const MAX_HASH_BYTES: u64 = 8 << 20;

/// Where the dynamic symbols and their names are; none if there are none. `behind`: what the file has from the byte at an
/// address to the end of its segment.
pub(super) fn find<'a, H, R>(
    header: &H,
    endian: Endianness,
    data: R,
    behind: impl Fn(u64) -> Option<Range<u64>>,
) -> Option<[Range<u64>; 2]>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'a>,
{
    let headers = header.program_headers(endian, data).ok()?;
    let mut all = headers.iter();
    let entries = all.find_map(|header| header.dynamic(endian, data).ok()?)?;
    let value = |tag: i64| -> Option<u64> {
        let mut all = entries.iter();
        let entry = all.find(|entry| entry.tag(endian) == tag)?;
        Some(entry.d_val(endian).into())
    };
    let behind = |tag: i64| behind(value(tag)?);
    let table = |tag: i64| {
        let Range { start, end } = behind(tag)?;
        data.read_bytes_at(start, (end - start).min(MAX_HASH_BYTES))
            .ok()
    };
    let (symbols, names) = (behind(DT_SYMTAB)?, behind(DT_STRTAB)?);
    let by_gnu_hash = || {
        let table = GnuHashTable::<H>::parse(endian, table(DT_GNU_HASH)?).ok()?;
        table.symbol_table_length(endian)
    };
    let by_hash = || {
        let table = HashTable::<H>::parse(endian, table(DT_HASH)?).ok()?;
        Some(table.symbol_table_length())
    };
    let count = by_gnu_hash().or_else(by_hash)?;
    let bytes = u64::from(count) * size_of::<H::Sym>() as u64;
    let cut = |range: Range<u64>, bytes: u64| {
        let end = range.start.saturating_add(bytes).min(range.end);
        (range.start < end).then_some(range.start..end)
    };
    Some([cut(symbols, bytes)?, cut(names, value(DT_STRSZ)?)?])
}

#[cfg(test)]
mod tests {
    use super::super::Elf;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// A library with dynamic symbols.
    static LIBRARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5));
        let path = paths.find(|path| path.contains("/libgcc_s.so")).unwrap();
        std::fs::read(path).unwrap()
    });

    /// The same bytes, as if the file had no section headers.
    fn without_sections(bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        // `e_shoff`; `e_shnum` and `e_shstrndx`.
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
        bytes
    }

    #[test]
    fn segments_lead_to_the_same_symbols_as_sections() {
        let by_sections = Elf::parse(LIBRARY.as_slice()).unwrap();
        let bare = without_sections(&LIBRARY);
        let by_segments = Elf::parse(bare.as_slice()).unwrap();
        assert!(by_segments.code.is_empty());
        assert!(by_sections.dynamic_symbols.is_some());
        assert_eq!(by_segments.dynamic_symbols, by_sections.dynamic_symbols);
    }

    proptest! {
        #[test]
        fn a_damaged_dynamic_section_leads_to_no_place_beyond_the_file(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        ) {
            let mut bytes = without_sections(&LIBRARY);
            // The dynamic section is near the end; the program headers stay.
            let from = bytes.len() / 2;
            for (at, byte) in damage {
                let len = bytes.len() - from;
                bytes[from + at.index(len)] = byte;
            }
            if let Some(table) = Elf::parse(bytes.as_slice()).and_then(|elf| elf.dynamic_symbols) {
                let end = bytes.len() as u64;
                prop_assert!(table.symbols.end <= end && table.names.end <= end);
            }
        }
    }
}
