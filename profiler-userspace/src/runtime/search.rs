//! Text and addresses in an object's initialized data, and numbers in tables.
//!
//! In: an object's file. Out: the first text that matches, or the places of an address. Reads a bounded part of each
//! segment, the text piece by piece.

use crate::object::{Image, Part};
use memchr::memmem::Finder;
use object::elf::PT_LOAD;

/// Bytes of a segment that are searched, and how many at a time.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;
const CHUNK: usize = 64 << 10;

/// The first text in the object that begins with `before`, is `length` bytes long and `is_it`.
pub(super) fn find(
    image: &Image<'_>,
    before: &[u8],
    length: usize,
    is_it: impl Fn(&[u8]) -> bool,
) -> Option<Vec<u8>> {
    let mut all = image.of_type(PT_LOAD).map(Part::from);
    all.find_map(|segment| find_within(image, segment, before, length, &is_it))
}

/// As [`find`], in constants only, as far as the object tells where they are.
pub(super) fn find_constant(
    image: &Image<'_>,
    before: &[u8],
    length: usize,
    is_it: impl Fn(&[u8]) -> bool,
) -> Option<Vec<u8>> {
    match image.section(b".rodata").map(Part::from) {
        Some(section) => find_within(image, section, before, length, &is_it),
        None => find(image, before, length, is_it),
    }
}

fn find_within(
    image: &Image<'_>,
    within: Part,
    before: &[u8],
    length: usize,
    is_it: &impl Fn(&[u8]) -> bool,
) -> Option<Vec<u8>> {
    let finder = Finder::new(before);
    let addresses = within.addresses();
    let end = addresses
        .end
        .min(addresses.start.checked_add(MAX_SEARCHED_BYTES)?);
    let mut chunk = vec![0; CHUNK];
    let mut address = addresses.start;
    while address < end {
        let bytes = usize::try_from(end - address).unwrap_or(CHUNK).min(CHUNK);
        let chunk = &mut chunk[..bytes];
        image.copy(address, chunk)?;
        let mut all = finder.find_iter(chunk).map(|at| &chunk[at..]);
        let found = all.find_map(|rest| rest.get(..length).filter(|found| is_it(found)));
        if let Some(found) = found {
            return Some(found.to_vec());
        }
        if bytes < CHUNK {
            break;
        }
        // Texts that lie across two chunks are seen whole in the next.
        address = address.checked_add((CHUNK - length) as u64)?;
    }
    None
}

/// The addresses at which the object has the address of something: where its relocations write it, or if it lies at fixed
/// addresses, where it stands.
pub(super) fn pointers_to(image: &Image<'_>, address: u64) -> Vec<u64> {
    let written = image.relocated_pointers_to(address);
    if !written.is_empty() {
        return written;
    }
    let mut standing = Vec::new();
    for segment in image.of_type(PT_LOAD).map(Part::from) {
        let bytes = usize::try_from(segment.bytes.min(MAX_SEARCHED_BYTES)).unwrap_or(0);
        let contents = image.bytes(segment.address, bytes);
        let first = segment.address.wrapping_neg() as usize % 8;
        let words = contents.get(first..).unwrap_or_default().as_chunks::<8>().0;
        let matches = words.iter().enumerate().filter_map(|(number, word)| {
            let at = segment.address.checked_add((first + 8 * number) as u64)?;
            (u64::from_le_bytes(*word) == address).then_some(at)
        });
        standing.extend(matches);
    }
    standing
}

/// The next number of a table: seven bits a byte, the lowest first; the highest bit of a byte says that another follows.
pub(super) fn unsigned(table: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (byte, rest) = table.split_first()?;
        *table = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}
