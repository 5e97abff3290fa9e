//! Reads the small tables of a file piece by piece, up to a limit.
//!
//! In: an open file. Out: its bytes, as the `object` crate asks for them. Never reads more than a
//! fixed amount of one file, whatever sizes the file claims.

use object::read::{ReadCache, ReadCacheOps, ReadRef};
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// How many bytes of one file may be read this way. The headers and notes of the largest known objects
/// take a few hundred kilobytes.
const BUDGET_BYTES: u64 = 16 << 20;

/// Strings are read in blocks of at most this size; see `ReadCache`.
const STRING_BYTES: u64 = 4096;

/// A file with a budget of bytes that may still be read.
#[derive(Debug)]
pub struct Bounded<'f> {
    cache: ReadCache<Positioned<'f>>,
    left: Cell<u64>,
}

impl<'f> Bounded<'f> {
    /// A file of which as much may be read as headers and small tables take.
    pub fn new(file: &'f File) -> Self {
        Self {
            cache: ReadCache::new(Positioned { file, at: 0 }),
            left: Cell::new(BUDGET_BYTES),
        }
    }

    fn spend(&self, bytes: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(bytes).ok_or(())?);
        Ok(())
    }
}

impl<'a> ReadRef<'a> for &'a Bounded<'_> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.spend(size)?;
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.spend(STRING_BYTES)?;
        self.cache.read_bytes_at_until(range, delimiter)
    }
}

/// Reads a file that others read, too, without its one position.
#[derive(Debug)]
struct Positioned<'f> {
    file: &'f File,
    at: u64,
}

impl ReadCacheOps for Positioned<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        self.file.metadata().map(|it| it.len()).map_err(drop)
    }

    fn seek(&mut self, at: u64) -> Result<u64, ()> {
        self.at = at;
        Ok(at)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, ()> {
        let count = self.file.read_at(into, self.at).map_err(drop)?;
        self.at += count as u64;
        Ok(count)
    }

    fn read_exact(&mut self, into: &mut [u8]) -> Result<(), ()> {
        self.file.read_exact_at(into, self.at).map_err(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_until_the_budget_is_spent() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 40).unwrap();
        let bounded = Bounded::new(&file);
        let bounded = &bounded;
        assert!(bounded.read_bytes_at(0, 1 << 39).is_err());
        assert_eq!(bounded.read_bytes_at(1 << 30, 8), Ok([0; 8].as_slice()));
        let reads = (0..100).take_while(|n| bounded.read_bytes_at(n << 20, 1 << 20).is_ok());
        assert_eq!(reads.count(), 15);
    }
}
