//! Filling between functions.
//!
//! In: bytes, or an address in an image. Out: whether they are filling, and where it ends.

use crate::object::Image;
use crate::object::image::read_at;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// Compilers, assemblers and linkers begin functions at multiples of this, unless they pack them.
pub(super) const ALIGNMENT: u64 = 16;

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

/// Whether these bytes behind a function are no code that runs.
pub(super) fn is_padding(bytes: &[u8], address: u64) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let all_zero = bytes.iter().all(|&byte| byte == 0);
    all_zero
        || decoder
            .iter()
            .all(|instruction| matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
}
