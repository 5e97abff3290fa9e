//! Text and numbers as graphs and pages hold them; the scripts beside this file read them.
//!
//! In: text that may be anything, numbers, bytes. Out: markup in which text is only text, and base64.

use crate::profile::fold::visible;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::{Compression, write::ZlibEncoder};
use std::io::{self, Write as _};

/// The text as XML content or the value of an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Adds a number, little endian in groups of seven bits, the top bit set on all but the last byte.
pub(super) fn number(mut value: u64, bytes: &mut Vec<u8>) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Base64 of a zlib stream of these parts.
///
/// # Errors
/// When the stream cannot be written.
pub(super) fn pack(parts: &[&[u8]], level: Compression) -> io::Result<String> {
    let mut zlib = ZlibEncoder::new(Vec::new(), level);
    for part in parts {
        zlib.write_all(part)?;
    }
    Ok(BASE64_STANDARD.encode(zlib.finish()?))
}

/// The bytes that were packed.
///
/// # Panics
/// When the text is none that was.
#[cfg(test)]
pub(super) fn unpacked(text: &str) -> Vec<u8> {
    let zlib = BASE64_STANDARD.decode(text).expect("base64");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&zlib[..]), &mut bytes)
        .expect("a zlib stream");
    bytes
}
