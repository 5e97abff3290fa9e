//! Reads the small tables of a file piece by piece, up to a limit.
//!
//! In: an open file. Out: its bytes, as the `object` crate asks for them. Never reads more than a
//! fixed amount of one file, whatever sizes the file claims.

use object::read::{ReadCache, ReadRef};
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

/// How many bytes of one file may be read this way. The headers and notes of the largest known objects
/// take a few hundred kilobytes.
const BUDGET_BYTES: u64 = 16 << 20;

/// Strings are read in blocks of at most this size; see `ReadCache`.
const STRING_BYTES: u64 = 4096;

/// A file with a budget of bytes that may still be read.
#[derive(Debug)]
pub struct Bounded<'f> {
    cache: ReadCache<&'f File>,
    left: Cell<u64>,
}

impl<'f> Bounded<'f> {
    /// A file of which as much may be read as headers and small tables take.
    pub fn new(file: &'f File) -> Self {
        Self::with_budget(file, 0)
    }

    /// Raises the budget by `bytes`, for a table larger than the usual ones.
    pub fn with_budget(file: &'f File, bytes: u64) -> Self {
        Self {
            cache: ReadCache::new(file),
            left: Cell::new(BUDGET_BYTES + bytes),
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
