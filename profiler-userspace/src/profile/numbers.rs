//! Numbers of things that are kept elsewhere, found again by what these are.
//!
//! In: hashes, and which number is meant. Out: the number, or that there is none. A table of millions grows without a look at the
//! things themselves, which are far apart in memory: part of each hash is in it.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A table of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(HashTable<(u32, u32)>);

impl Numbers {
    /// The number with this hash that `is_it`; `new`, which is put in, where there is none.
    pub(super) fn get_or_insert(
        &mut self,
        hash: u64,
        new: u32,
        is_it: impl Fn(u32) -> bool,
    ) -> u32 {
        let part = (hash >> 32) as u32;
        let known = self.0.entry(
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
