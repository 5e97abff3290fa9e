//! The perf map: a line for each function, `START SIZE name`, numbers in hexadecimal.
//!
//! In: an open file and addresses. Out: the last name for each. Skips invalid lines.

use super::{Latest, MAX_FILE_BYTES, MAX_NAME_BYTES, Names};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom};

/// The longest line kept, in bytes; longer ones are cut.
const MAX_LINE_BYTES: u64 = MAX_NAME_BYTES as u64 + 64;

/// Reads the map as far as it is written.
pub(super) fn read(mut file: &File, names: &mut Names<'_>) {
    let Ok(status) = file.metadata() else {
        return;
    };
    names.note_length(file);
    let skipped = status.len().saturating_sub(MAX_FILE_BYTES);
    if file.seek(SeekFrom::Start(skipped)).is_err() {
        return;
    }
    let mut lines = BufReader::with_capacity(128 << 10, file.take(MAX_FILE_BYTES));
    let mut line = Vec::with_capacity(256);
    if skipped > 0 && !skip_line(&mut lines) {
        return;
    }
    loop {
        line.clear();
        let taken = (&mut lines)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        match taken {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let whole = line.last() == Some(&b'\n');
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some((start, size, name)) = parse(text)
            && !names.define(start, size, || Latest::Named(name.into()))
        {
            return;
        }
        // The rest of a cut line; or a last line without its end, which is still being written.
        if !whole && !skip_line(&mut lines) {
            return;
        }
    }
}

/// Skips past the next line feed; `false` if there is none.
fn skip_line(lines: &mut impl BufRead) -> bool {
    lines.skip_until(b'\n').is_ok_and(|skipped| skipped > 0)
}

/// Start, size and name.
pub(super) fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = word(line)?;
    let (size, name) = word(rest)?;
    let name = name.trim_ascii();
    let name = &name[..name.len().min(MAX_NAME_BYTES)];
    let (start, size) = (hexadecimal(start)?, hexadecimal(size)?);
    (size > 0 && !name.is_empty()).then_some((start, size, name))
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
    Some((&text[..end], &text[end + 1..]))
}

/// A number; some runtimes write a leading `0x`.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    // The standard library would also accept a sign.
    let plain = digits.iter().all(u8::is_ascii_hexdigit);
    u64::from_str_radix(str::from_utf8(digits).ok().filter(|_| plain)?, 16).ok()
}
