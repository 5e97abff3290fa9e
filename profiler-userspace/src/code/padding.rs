//! Filling between functions.
//!
//! In: an address in an image. Out: where filling that begins there ends.

use super::arch::padding::{ALIGNMENT, is_padding};
use crate::object::Image;
use crate::object::image::read_at;

/// The first byte that is no padding: an address behind a function, up to which linkers align the next.
pub(super) fn skip(image: &Image<'_>, address: u64) -> u64 {
    let aligned = address.next_multiple_of(ALIGNMENT);
    let offset = image.code.iter().find_map(|part| {
        let into = address.checked_sub(part.address)?;
        (into < part.bytes).then(|| part.offset.saturating_add(into))
    });
    let Some(offset) = offset else { return address };
    let bytes = (aligned - address) as usize;
    let padding = read_at(image.file, offset, bytes);
    match padding.len() == bytes && is_padding(&padding, address) {
        true => aligned,
        false => address,
    }
}
