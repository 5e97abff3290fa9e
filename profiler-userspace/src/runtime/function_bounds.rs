//! Functions of an object, and where the rarely used part of one lies, which compilers put apart from the rest.
//!
//! In: an object's file and a function's address. Out: addresses of functions and parts. Stripped objects do not name them, but
//! their `.eh_frame` has an entry for each part, and GCC writes those of one function one after the other. The entry of a
//! second part is told by its first instruction, which says where the caller's frame is: where a function begins, the common
//! entry says it.

use crate::object::{Frame, FrameIndex, Image};
use gimli::CallFrameInstruction;
use std::ops::Range;

/// The addresses of the second part of the function at an address, if it has one.
pub(super) fn cold_part(image: &Image<'_>, function: u64) -> Option<Range<u64>> {
    let mut index = FrameIndex::of(image)?;
    let next = frame_of(&mut index, function)?.next;
    let second = index.frame_at(next)?;
    use CallFrameInstruction::{DefCfa, DefCfaOffset, DefCfaRegister};
    let is_second = matches!(
        second.first,
        Some(DefCfa { .. } | DefCfaRegister { .. } | DefCfaOffset { .. })
    );
    is_second.then_some(second.addresses)
}

/// The addresses of the function that begins at an address, without a second part.
pub(super) fn extent(image: &Image<'_>, function: u64) -> Option<Range<u64>> {
    Some(frame_of(&mut FrameIndex::of(image)?, function)?.addresses)
}

/// Where all functions and second parts begin, from the lowest address. None if that is not told.
pub(super) fn starts(image: &Image<'_>) -> Option<Vec<u64>> {
    let mut index = FrameIndex::of(image)?;
    let starts: Option<Vec<u64>> = (0..index.count())
        .map(|number| index.begin(number))
        .collect();
    starts.filter(|starts| starts.is_sorted())
}

/// All functions and second parts that begin within some addresses, from the lowest.
pub(super) fn functions(image: &Image<'_>, within: Range<u64>) -> Vec<Range<u64>> {
    /// More are not looked at.
    const MAX_FUNCTIONS: usize = 1 << 16;
    let all = frames(image, Some(within), MAX_FUNCTIONS);
    all.into_iter().map(|frame| frame.addresses).collect()
}

/// All functions and second parts of at least so many bytes.
pub(super) fn larger(image: &Image<'_>, bytes: u64) -> Vec<Range<u64>> {
    let all = frames(image, None, usize::MAX).into_iter();
    all.map(|frame| frame.addresses)
        .filter(|addresses| addresses.end - addresses.start >= bytes)
        .collect()
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
    bytes: u64,
) -> Option<Range<u64>> {
    largest_of(image, within, |frame| {
        frame.first == Some(CallFrameInstruction::DefCfaOffset { offset: bytes })
    })
}

fn largest_of(
    image: &Image<'_>,
    within: Range<u64>,
    is_it: impl Fn(&Frame) -> bool,
) -> Option<Range<u64>> {
    /// More functions are not looked at.
    const MAX_FUNCTIONS: usize = 1 << 14;
    let all = frames(image, Some(within), MAX_FUNCTIONS).into_iter();
    all.filter(is_it)
        .map(|frame| frame.addresses)
        .max_by_key(|addresses| addresses.end - addresses.start)
}

/// At most so many descriptions, from the lowest address: of all code, or of what begins within some addresses.
fn frames(image: &Image<'_>, within: Option<Range<u64>>, max: usize) -> Vec<Frame> {
    let Some(mut index) = FrameIndex::of(image) else {
        return Vec::new();
    };
    let numbers = match within {
        Some(within) => index.first_from(within.start)..index.first_from(within.end),
        None => 0..index.count(),
    };
    let frames = numbers.take(max).filter_map(|number| index.frame(number));
    frames.collect()
}

/// The description of the function that begins at an address.
fn frame_of(index: &mut FrameIndex<'_>, function: u64) -> Option<Frame> {
    let number = index.first_from(function);
    let frame = index.frame(number)?;
    (frame.addresses.start == function).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek as _, SeekFrom, Write as _};

    const INDEX: usize = 0x200;
    const SHARED: usize = 0x2e0;
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
        put(INDEX, &[1, 0x1b, 0x03, 0x3b]);
        put(INDEX + 4, &relative(SHARED as u32, INDEX + 4));
        put(INDEX + 8, &1u32.to_le_bytes());
        put(INDEX + 12, &relative(FUNCTION, INDEX));
        put(INDEX + 16, &relative(FRAMES as u32, INDEX));
        // 28 bytes up to the descriptions, which are relative to it.
        put(SHARED, &28u32.to_le_bytes());
        put(SHARED + 8, &[1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b]);
        // Length, distance to the shared entry, addresses, no additional data, instructions.
        for (at, begin, first) in [(FRAMES, FUNCTION, 0x42), (FRAMES + 24, COLD, instruction)] {
            let length = if at == FRAMES || is_followed {
                20u32
            } else {
                0
            };
            put(at, &length.to_le_bytes());
            put(at + 4, &relative(at as u32 + 4, SHARED));
            put(at + 8, &relative(begin, at + 8));
            put(at + 12, &0x40u32.to_le_bytes());
            put(at + 17, &[first]);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    /// An object as [`object`], with a table of sections instead of an index.
    fn object_without_index() -> File {
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
        file
    }

    #[test]
    fn without_an_index_the_table_is_read() {
        let file = object_without_index();
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
