//! Memory that tests of steps make.
//!
//! In: words and their addresses. Out: memory of which only these can be read.

extern crate std;

use super::Memory;
use std::collections::HashMap;

/// Words at addresses.
pub(super) struct Words(pub(super) HashMap<u64, u64>);

impl Memory for Words {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (i, word) in words.iter_mut().enumerate() {
            *word = *self.0.get(&address.wrapping_add(8 * i as u64))?;
        }
        Some(words)
    }
}

/// Memory with these words.
pub(super) fn words<const N: usize>(words: [(u64, u64); N]) -> Words {
    Words(HashMap::from(words))
}
