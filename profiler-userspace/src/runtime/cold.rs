//! Where the rarely used part of a function lies, which compilers put apart from the rest.
//!
//! In: an object's file and a function's address. Out: the addresses of the other part. Stripped objects do not name it, but
//! their `.eh_frame` has an entry for each part, and GCC writes those of one function one after the other. The entry of a
//! second part is told by its first instruction, which says where the caller's frame is: where a function begins, the common
//! entry says it. Programs that no dynamic linker loads may lack the index, `.eh_frame_hdr`; then all of the table is read.
//! Layouts: Linux Standard Base, Core, chapter "Exception Frames".

use crate::object::{Image, Part};
use object::elf::PT_GNU_EH_FRAME;
use std::ops::Range;

/// Beginning of `.eh_frame_hdr`: version 1; the address of `.eh_frame` relative to its place, in
/// four bytes; the number of entries in four bytes; entries relative to the section, in four bytes
/// each. All linkers write this.
const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Bytes of the header.
const HEADER_BYTES: u64 = 12;
/// Bytes of an entry of its table: a function's address, and that of its entry in `.eh_frame`.
const ENTRY_BYTES: u64 = 8;

/// `DW_CFA_def_cfa`, `DW_CFA_def_cfa_register`, `DW_CFA_def_cfa_offset` (DWARF 5, section 7.24).
const DEFINE_FRAME: std::ops::RangeInclusive<u8> = 0x0c..=0x0e;

/// The addresses of the second part of the function at an address, if it has one.
pub(super) fn cold_part(image: &Image<'_>, function: u64) -> Option<Range<u64>> {
    let entry = entry_of(image, function)?;
    let (addresses, next, _) = read_entry(image, entry)?;
    if addresses.start != function {
        return None;
    }
    let (addresses, _, first) = read_entry(image, next)?;
    DEFINE_FRAME.contains(&first[0]).then_some(addresses)
}

/// The addresses of the function that begins at an address, without a second part.
pub(super) fn extent(image: &Image<'_>, function: u64) -> Option<Range<u64>> {
    let (addresses, _, _) = read_entry(image, entry_of(image, function)?)?;
    (addresses.start == function).then_some(addresses)
}

/// Where all functions and second parts begin, from the lowest address. None if that is not told.
pub(super) fn starts(image: &Image<'_>) -> Option<Vec<u64>> {
    /// More are not believed.
    const MOST: u32 = 1 << 22;
    let index = Index::of(image)?;
    let header = match &index.place {
        Place::Read(entries) => return Some(entries.iter().map(|(start, _)| *start).collect()),
        Place::Header(header) => *header,
    };
    if index.entries > MOST {
        return None;
    }
    let mut table = vec![0; index.entries as usize * ENTRY_BYTES as usize];
    image.copy(header.checked_add(HEADER_BYTES)?, &mut table)?;
    let starts = table.chunks_exact(ENTRY_BYTES as usize).map(|entry| {
        let distance = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        header.wrapping_add_signed(i64::from(distance))
    });
    let starts: Vec<u64> = starts.collect();
    starts.is_sorted().then_some(starts)
}

/// All functions and second parts that begin within some addresses, from the lowest.
pub(super) fn functions(image: &Image<'_>, within: Range<u64>) -> Vec<Range<u64>> {
    /// More are not looked at.
    const MOST: usize = 1 << 16;
    let Some(index) = Index::of(image) else {
        return Vec::new();
    };
    let Some(first) = index.first_from(within.start) else {
        return Vec::new();
    };
    let starts = (first..index.entries).take(MOST).map_while(|place| {
        let start = index.function(place)?;
        within.contains(&start).then_some((place, start))
    });
    let all = starts.filter_map(|(place, start)| {
        let (addresses, _, _) = read_entry(image, index.entry(place)?)?;
        (addresses.start == start).then_some(addresses)
    });
    all.collect()
}

/// All functions and second parts of at least so many bytes.
pub(super) fn larger(image: &Image<'_>, bytes: u64) -> Vec<Range<u64>> {
    let Some(index) = Index::of(image) else {
        return Vec::new();
    };
    let all = (0..index.entries).filter_map(|place| {
        let (addresses, _, _) = read_entry(image, index.entry(place)?)?;
        (addresses.end.checked_sub(addresses.start)? >= bytes).then_some(addresses)
    });
    all.collect()
}

/// The largest function that begins within some addresses.
pub(super) fn largest(image: &Image<'_>, within: Range<u64>) -> Option<Range<u64>> {
    largest_of(image, within, |_| true)
}

/// The largest function that begins within some addresses, and of which the first instruction of its entry says that its frame has
/// so many bytes.
pub(super) fn largest_with_frame(
    image: &Image<'_>,
    within: Range<u64>,
    bytes: u8,
) -> Option<Range<u64>> {
    largest_of(image, within, |instructions| {
        instructions == [*DEFINE_FRAME.end(), bytes]
    })
}

fn largest_of(
    image: &Image<'_>,
    within: Range<u64>,
    is_it: impl Fn([u8; 2]) -> bool,
) -> Option<Range<u64>> {
    /// More functions are not looked at.
    const MOST: usize = 1 << 14;
    let index = Index::of(image)?;
    let all = (index.first_from(within.start)?..index.entries).take(MOST);
    let functions = all.map_while(|place| {
        let function = index.function(place)?;
        within.contains(&function).then_some(place)
    });
    let extents = functions.filter_map(|place| {
        let (addresses, _, first) = read_entry(image, index.entry(place)?)?;
        is_it(first).then_some(addresses)
    });
    extents.max_by_key(|addresses| addresses.end.saturating_sub(addresses.start))
}

/// The address of a function's entry in `.eh_frame`.
fn entry_of(image: &Image<'_>, function: u64) -> Option<u64> {
    let index = Index::of(image)?;
    let place = index.first_from(function)?;
    (index.function(place)? == function).then_some(())?;
    index.entry(place)
}

/// A table of functions, sorted by their addresses.
struct Index<'i> {
    image: &'i Image<'i>,
    place: Place,
    entries: u32,
}

/// Where a table of functions is.
enum Place {
    /// In `.eh_frame_hdr`, at this address.
    Header(u64),
    /// Functions, and their entries in `.eh_frame`.
    Read(Vec<(u64, u64)>),
}

impl<'i> Index<'i> {
    fn of(image: &'i Image<'i>) -> Option<Self> {
        let index = image.of_type(PT_GNU_EH_FRAME).next();
        let Some(header) = index.map(|index| Part::from(index).address) else {
            let entries = read_entries(
                image,
                image.section(b".eh_frame").map(Part::from)?.addresses(),
            );
            return Some(Self {
                image,
                entries: u32::try_from(entries.len()).ok()?,
                place: Place::Read(entries),
            });
        };
        (number(image, header)?.to_le_bytes() == HEADER).then_some(())?;
        let entries = number(image, header.checked_add(8)?)?;
        Some(Self {
            image,
            place: Place::Header(header),
            entries,
        })
    }

    /// The address of a function, by its place.
    fn function(&self, place: u32) -> Option<u64> {
        match &self.place {
            Place::Header(header) => self.relative(*header, place, 0),
            Place::Read(entries) => Some(entries.get(place as usize)?.0),
        }
    }

    /// The address of its entry in `.eh_frame`.
    fn entry(&self, place: u32) -> Option<u64> {
        match &self.place {
            Place::Header(header) => self.relative(*header, place, 4),
            Place::Read(entries) => Some(entries.get(place as usize)?.1),
        }
    }

    fn relative(&self, header: u64, place: u32, field: u64) -> Option<u64> {
        let offset = HEADER_BYTES + ENTRY_BYTES * u64::from(place) + field;
        let distance = number(self.image, header.checked_add(offset)?)? as i32;
        Some(header.wrapping_add_signed(i64::from(distance)))
    }

    /// The place of the first function that begins at an address or behind it.
    fn first_from(&self, address: u64) -> Option<u32> {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.function(middle)? < address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.entries).then_some(low)
    }
}

/// The addresses that an entry of `.eh_frame` is about, the address of the next entry, and its first two bytes of instructions.
fn read_entry(image: &Image<'_>, entry: u64) -> Option<(Range<u64>, u64, [u8; 2])> {
    let length = number(image, entry)?;
    let next = entry.checked_add(4)?.checked_add(u64::from(length))?;
    // The end of the table, an entry of 64 bits, and one that is common to others.
    if length == 0 || length == u32::MAX || number(image, entry.checked_add(4)?)? == 0 {
        return None;
    }
    let place = entry.checked_add(8)?;
    let begin = place.wrapping_add_signed(i64::from(number(image, place)? as i32));
    let bytes = number(image, place.checked_add(4)?)?;
    // Between: additional data, as long as the first byte says.
    let mut byte = [0];
    let additional = place.checked_add(8)?;
    image.copy(additional, &mut byte)?;
    let first = additional.checked_add(1 + u64::from(byte[0]))?;
    let mut instructions = [0; 2];
    image.copy(first, &mut instructions)?;
    let end = begin.checked_add(u64::from(bytes))?;
    Some((begin..end, next, instructions))
}

/// Functions and their entries, of a whole `.eh_frame`.
fn read_entries(image: &Image<'_>, section: Range<u64>) -> Vec<(u64, u64)> {
    /// The usual CIE: version 1, addresses that are relative and of four bytes (`zR`), the
    /// alignments of x86-64.
    const USUAL: [u8; 9] = [1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b];
    let mut entries = Vec::new();
    let mut common = (0, false);
    let mut place = section.start;
    while place < section.end {
        let (Some(length), Some(distance)) = (number(image, place), number(image, place + 4))
        else {
            break;
        };
        if length == 0 || length == u32::MAX {
            break;
        }
        let mut is_usual = |address: u64| {
            if common.0 != address {
                let mut bytes = [0; USUAL.len()];
                let is_read = image.copy(address.wrapping_add(8), &mut bytes).is_some();
                common = (address, is_read && bytes == USUAL);
            }
            common.1
        };
        if distance != 0
            && is_usual((place + 4).wrapping_sub(u64::from(distance)))
            && let Some((addresses, _, _)) = read_entry(image, place)
        {
            entries.push((addresses.start, place));
        }
        place += 4 + u64::from(length);
    }
    entries.sort_unstable();
    entries
}

fn number(image: &Image<'_>, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    image.copy(address, &mut bytes)?;
    Some(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek as _, SeekFrom, Write as _};

    const INDEX: usize = 0x200;
    const FRAMES: usize = 0x300;
    const FUNCTION: u32 = 0x1000;
    const COLD: u32 = 0x800;

    /// An object with an index of one function, and entries of two parts, the second of which begins with an instruction.
    fn object(instruction: u8, is_followed: bool) -> File {
        let mut bytes = vec![0; 0x400];
        let mut put = |at: usize, new: &[u8]| bytes[at..at + new.len()].copy_from_slice(new);
        put(0, b"\x7fELF\x02\x01\x01");
        put(18, &62u16.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(54, &[56, 0, 3, 0]);
        let segments = [
            (1u32, 0u64, 0x400u64),
            (2, 0x1f0, 16),
            (0x6474_e550, INDEX as u64, 0x40),
        ];
        for (place, (kind, address, length)) in segments.into_iter().enumerate() {
            let at = 64 + 56 * place;
            put(at, &kind.to_le_bytes());
            for (field, word) in [(8, address), (16, address), (32, length), (40, length)] {
                put(at + field, &word.to_le_bytes());
            }
        }
        let relative = |to: u32, from: usize| to.wrapping_sub(from as u32).to_le_bytes();
        put(INDEX, &HEADER);
        put(INDEX + 4, &relative(FRAMES as u32, INDEX + 4));
        put(INDEX + 8, &1u32.to_le_bytes());
        put(INDEX + 12, &relative(FUNCTION, INDEX));
        put(INDEX + 16, &relative(FRAMES as u32, INDEX));
        // Length, distance to what is common, addresses, no additional data, instructions.
        for (at, begin, first) in [(FRAMES, FUNCTION, 0x42), (FRAMES + 24, COLD, instruction)] {
            let length = if at == FRAMES || is_followed {
                20u32
            } else {
                0
            };
            put(at, &length.to_le_bytes());
            put(at + 4, &1u32.to_le_bytes());
            put(at + 8, &relative(begin, at + 8));
            put(at + 12, &0x40u32.to_le_bytes());
            put(at + 17, &[first]);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    /// An object as [`object`], without an index, with a table of sections and what is common to entries.
    fn object_without_index(common: u8) -> File {
        let mut file = object(0x0e, true);
        let mut put = |at: u64, new: &[u8]| {
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(new).unwrap();
        };
        // The third segment is none of these.
        put(64 + 2 * 56, &[0; 8]);
        // Sections at 0x500, of which the second is the table and the third has the names.
        put(40, &0x500u64.to_le_bytes());
        put(58, &[64, 0, 3, 0, 2, 0]);
        put(0x500, &[0; 192]);
        put(0x500 + 64, &1u32.to_le_bytes());
        put(0x500 + 64 + 16, &0x2e0u64.to_le_bytes());
        put(0x500 + 64 + 24, &0x2e0u64.to_le_bytes());
        put(0x500 + 64 + 32, &0x60u64.to_le_bytes());
        put(0x500 + 128 + 24, &0x4c0u64.to_le_bytes());
        put(0x500 + 128 + 32, &11u64.to_le_bytes());
        put(0x4c0, b"\0.eh_frame\0");
        // 28 bytes up to the entries, which are relative to it.
        put(0x2e0, &28u32.to_le_bytes());
        put(0x2e8, &[1, b'z', b'R', 0, 1, 0x78, 16, 1, common]);
        for entry in [FRAMES as u64, FRAMES as u64 + 24] {
            put(entry + 4, &(entry as u32 + 4 - 0x2e0).to_le_bytes());
        }
        file
    }

    #[test]
    fn without_an_index_the_table_is_read() {
        let file = object_without_index(0x1b);
        let image = Image::read(&file).unwrap();
        let parts = [0x800..0x840, 0x1000..0x1040];
        assert_eq!(larger(&image, 0x40), parts);
        assert_eq!(larger(&image, 0x41), []);
        assert_eq!(starts(&image), Some(vec![0x800, 0x1000]));
        assert_eq!(extent(&image, 0x1000), Some(parts[1].clone()));
        assert_eq!(cold_part(&image, 0x1000), Some(parts[0].clone()));
        assert_eq!(largest(&image, 0..0x900), Some(parts[0].clone()));
        assert_eq!(functions(&image, 0..0x2000), parts);
        assert_eq!(functions(&image, 0x900..0x2000), parts[1..]);
        assert_eq!(functions(&image, 0..0x1000), parts[..1]);
        assert_eq!(functions(&image, 0x1001..0x2000), []);
        // Addresses in another form are not read.
        let file = object_without_index(0x03);
        assert_eq!(larger(&Image::read(&file).unwrap(), 1), []);
    }

    fn found(file: &File, function: u32) -> Option<Range<u64>> {
        cold_part(&Image::read(file).unwrap(), u64::from(function))
    }

    #[test]
    fn the_second_part_of_a_function_is_the_entry_behind_its_own() {
        assert_eq!(found(&object(0x0e, true), FUNCTION), Some(0x800..0x840));
        assert_eq!(found(&object(0x0c, true), FUNCTION), Some(0x800..0x840));
    }

    #[test]
    fn another_function_is_no_second_part() {
        // One that runs an instruction first, one that never moves its frame, none at all, no such function.
        assert_eq!(found(&object(0x41, true), FUNCTION), None);
        assert_eq!(found(&object(0, true), FUNCTION), None);
        assert_eq!(found(&object(0x0e, false), FUNCTION), None);
        assert_eq!(found(&object(0x0e, true), FUNCTION + 1), None);
    }
}
