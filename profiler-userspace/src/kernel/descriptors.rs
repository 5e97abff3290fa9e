//! The descriptors of runtimes, as the kernel half reads them.
//!
//! In: the map that [`Tables`](super::Tables) fills. Out: the words of one, by the number that events have.

use super::Result;
use super::shared::{Shared, map};
use aya::maps::MapData;
use profiler_common::runtime::{DESCRIPTOR_WORDS, DESCRIPTORS, RuntimeKinds};
use std::sync::atomic::Ordering::Relaxed;

/// All of them.
pub(super) struct Descriptors {
    words: Shared,
}

impl Descriptors {
    pub(super) fn new(runtimes: &MapData) -> Result<Self> {
        let words = map("RUNTIMES", runtimes, 0, DESCRIPTORS * DESCRIPTOR_WORDS)?;
        Ok(Self { words })
    }

    /// The runtimes in the files that were looked at until now.
    pub(super) fn runtimes(&self) -> RuntimeKinds {
        RuntimeKinds(self.words.words()[0].load(Relaxed) as u32)
    }

    /// That of a number, if there may be one.
    pub(super) fn get(&self, number: u32) -> Option<[u64; DESCRIPTOR_WORDS]> {
        let mut all = self.words.words().chunks_exact(DESCRIPTOR_WORDS);
        let words = all.nth(number as usize)?;
        Some(std::array::from_fn(|place| words[place].load(Relaxed)))
    }
}
