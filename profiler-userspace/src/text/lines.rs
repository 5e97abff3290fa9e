//! Text as lines, of which one is in memory at a time.
//!
//! In: a stream of bytes. Out: its lines and their numbers, in UTF-8. Never: the whole text.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};

/// The longest line that is read, in bytes: a small packed file may hold one without an end.
const MAX_BYTES: u64 = 1 << 28;

/// Reads lines, one after the other.
pub(crate) struct LineReader<'a> {
    from: &'a mut dyn BufRead,
    line: Vec<u8>,
    number: usize,
}

impl<'a> LineReader<'a> {
    /// One that begins where `from` stands.
    pub(crate) fn new(from: &'a mut dyn BufRead) -> Self {
        Self {
            from,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line's number, from one, and its text without its end; U+FFFD stands for what is no UTF-8.
    ///
    /// # Errors
    /// When it cannot be read, or is longer than any stack.
    pub(crate) fn next(&mut self) -> io::Result<Option<(usize, Cow<'_, str>)>> {
        self.line.clear();
        let mut limited = (&mut *self.from).take(MAX_BYTES + 1);
        if limited.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() as u64 > MAX_BYTES {
            let problem = format!("line {} is longer than 256 MiB", self.number);
            return Err(io::Error::other(problem));
        }
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        // Replacing takes many times as long as finding that there is nothing to replace.
        let text = match str::from_utf8(text) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(text),
        };
        Ok(Some((self.number, text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_their_file() {
        let mut text: &[u8] = b"a\n\nb\xff c";
        let mut reader = LineReader::new(&mut text);
        let mut lines = Vec::new();
        while let Some((number, line)) = reader.next().expect("memory can be read") {
            lines.push((number, line.into_owned()));
        }
        let expected = [(1, "a"), (2, ""), (3, "b\u{fffd} c")];
        assert_eq!(lines, expected.map(|(at, line)| (at, line.to_owned())));
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        let mut reader = LineReader::new(&mut endless);
        let error = reader.next().expect_err("the line is too long").to_string();
        assert_eq!(error, "line 1 is longer than 256 MiB");
    }
}
