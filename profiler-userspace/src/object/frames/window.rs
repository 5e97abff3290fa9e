//! A part of a file, read from one place to the next.
//!
//! In: an open file, and places in the part. Out: its bytes there. Memory is used again and again: pages that are new to a
//! process take longer than reading them.

use super::super::Part;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Bytes that are read at once, at least and at most: the more, the longer places have followed each other.
const MIN: usize = 4096;
const MAX: usize = 64 << 10;

/// Bytes of a part of a file around the place that was asked for last.
pub(super) struct Window<'f> {
    file: &'f File,
    pub(super) part: Part,
    /// Where the bytes begin in the part.
    start: usize,
    bytes: Vec<u8>,
}

impl<'f> Window<'f> {
    /// Nothing is read yet.
    pub(super) fn new(file: &'f File, part: Part) -> Self {
        Self {
            file,
            part,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// So many bytes at a place in the part; none if they are not all there.
    pub(super) fn get(&mut self, at: usize, count: usize) -> Option<&[u8]> {
        let end = at.checked_add(count)?;
        if at < self.start || end > self.start + self.bytes.len() {
            self.fill(at, end)?;
        }
        self.bytes.get(at - self.start..end - self.start)
    }

    /// Reads the bytes from one place to another, and some more.
    fn fill(&mut self, at: usize, end: usize) -> Option<()> {
        let all = usize::try_from(self.part.bytes).ok()?;
        if end > all {
            return None;
        }
        let behind = self.start + self.bytes.len();
        let follows = (self.start..behind + MIN).contains(&at) && !self.bytes.is_empty();
        let more = match follows {
            true => (self.bytes.len() * 2).min(MAX),
            false => MIN,
        };
        let start = at - at % MIN;
        let bytes = more.max(end - start).min(all - start);
        let offset = self.part.offset.checked_add(start as u64)?;
        self.bytes.resize(bytes, 0);
        let is_read = self.file.read_exact_at(&mut self.bytes, offset);
        if is_read.is_err() {
            self.bytes.clear();
        }
        self.start = start;
        is_read.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};
    use std::io::Write as _;

    proptest! {
        #[test]
        fn a_window_shows_what_the_file_has(
            places in proptest::collection::vec((0usize..300_000, 0usize..9000), 1..40),
        ) {
            let bytes: Vec<u8> = (0..280_000u32).map(|at| (at / 7) as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            let part = Part { address: 0, offset: 1000, bytes: 260_000 };
            let mut window = Window::new(&file, part);
            for (at, count) in places {
                let wanted = bytes[1000..261_000].get(at..at + count);
                prop_assert_eq!(window.get(at, count), wanted);
            }
        }
    }
}
