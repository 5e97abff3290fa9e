//! Where the rarely used part of a function lies, which compilers put apart from the rest.
//!
//! In: an object's file and a function's address. Out: the addresses of the other part. Stripped objects do not name it, but
//! their `.eh_frame` has an entry for each part, and GCC writes those of one function one after the other. The entry of a
//! second part is told by its first instruction, which says where the caller's frame is: where a function begins, the common
//! entry says it. Layouts: Linux Standard Base, Core, chapter "Exception Frames".

use super::Image;
use std::ops::Range;

/// What `.eh_frame_hdr` begins with: version 1; the address of `.eh_frame` relative to its place, in four bytes; the number
/// of entries in four bytes; entries relative to the section, in four bytes each. All linkers write this.
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
    if index.entries > MOST {
        return None;
    }
    let mut table = vec![0; index.entries as usize * ENTRY_BYTES as usize];
    image.copy(index.header.checked_add(HEADER_BYTES)?, &mut table)?;
    let starts = table.chunks_exact(ENTRY_BYTES as usize).map(|entry| {
        let distance = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        index.header.wrapping_add_signed(i64::from(distance))
    });
    let starts: Vec<u64> = starts.collect();
    starts.is_sorted().then_some(starts)
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

/// The table of `.eh_frame_hdr`, which is sorted by the functions' addresses.
struct Index<'i> {
    image: &'i Image<'i>,
    header: u64,
    entries: u32,
}

impl<'i> Index<'i> {
    fn of(image: &'i Image<'i>) -> Option<Self> {
        let header = image.frame_index()?;
        (number(image, header)?.to_le_bytes() == HEADER).then_some(())?;
        let entries = number(image, header.checked_add(8)?)?;
        Some(Self {
            image,
            header,
            entries,
        })
    }

    /// The address of a function, by its place.
    fn function(&self, place: u32) -> Option<u64> {
        self.relative(place, 0)
    }

    /// The address of its entry in `.eh_frame`.
    fn entry(&self, place: u32) -> Option<u64> {
        self.relative(place, 4)
    }

    fn relative(&self, place: u32, field: u64) -> Option<u64> {
        let offset = HEADER_BYTES + ENTRY_BYTES * u64::from(place) + field;
        let distance = number(self.image, self.header.checked_add(offset)?)? as i32;
        Some(self.header.wrapping_add_signed(i64::from(distance)))
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

fn number(image: &Image<'_>, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    image.copy(address, &mut bytes)?;
    Some(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write as _;

    const INDEX: usize = 0x200;
    const FRAMES: usize = 0x300;
    const FUNCTION: u32 = 0x1000;
    const COLD: u32 = 0x800;

    /// An object with an index of one function, and entries of two parts, the second of which begins with an instruction.
    fn object(instruction: u8, is_followed: bool) -> File {
        let mut bytes = vec![0; 0x400];
        let mut put = |at: usize, new: &[u8]| bytes[at..at + new.len()].copy_from_slice(new);
        put(0, b"\x7fELF\x02\x01");
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
