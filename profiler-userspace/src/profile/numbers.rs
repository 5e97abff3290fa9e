//! Numbers of things that are kept elsewhere, found again by what these are.
//!
//! In: a thing's key. Out: its number. A table of millions grows without a look at the
//! things themselves, which are far apart in memory: part of each hash is in it.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::{BuildHasher as _, Hash};

/// A table of numbers, each with part of its hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    table: HashTable<(u32, u32)>,
    hashes: RandomState,
}

impl Numbers {
    /// The number of the thing with this key, for which `is_it` holds; `new`, which is put in, where there is none.
    pub(super) fn get_or_insert(
        &mut self,
        key: impl Hash,
        new: u32,
        is_it: impl Fn(u32) -> bool,
    ) -> u32 {
        let part = (self.hashes.hash_one(key) >> 32) as u32;
        let known = self.table.entry(
            whole(part),
            |(other, number)| *other == part && is_it(*number),
            |(part, _)| whole(*part),
        );
        match known {
            Entry::Occupied(known) => known.get().1,
            Entry::Vacant(place) => {
                place.insert((part, new));
                new
            }
        }
    }
}

/// A hash by its part that is kept: tables take their places from its low bits, and compare its high ones.
fn whole(part: u32) -> u64 {
    u64::from(part) | u64::from(part) << 32
}
