//! Interning: finds where a stack or tally is stored, or where to store it.
//!
//! Entries are appended to a log. An open-addressed index, with twice as many slots as the log has entries,
//! leads from a hash to an entry. An entry found through the index is always compared in full, so two stacks
//! never share a position, whatever their hashes. If two CPUs store the same entry at once, or all slots near
//! a hash are taken, the log holds it twice: user space adds up equal entries, so nothing is lost or mixed.

/// How many slots are tried before the index counts as crowded.
pub const PROBES: u32 = 16;

/// An odd 64-bit multiplier without visible structure: the fractional part of the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash under construction. Seeded at random for each run, so that no program can prepare stacks that crowd
/// the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Hash {
    /// The hash of nothing.
    #[inline(always)]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// This hash with one more word mixed in.
    #[inline(always)]
    #[must_use]
    pub const fn with(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(MULTIPLIER);
        Self(mixed ^ (mixed >> 29))
    }

    /// The part that is kept in the slot.
    #[inline(always)]
    pub const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The slot to try in the `probe`-th attempt.
    #[inline(always)]
    pub const fn slot(self, probe: u32, mask: u32) -> u32 {
        (self.0 as u32).wrapping_add(probe) & mask
    }
}

/// One slot of an index: the entry's number plus one in the low half, the hash's tag in the high half; zero
/// is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

/// Meaning of a slot for a given hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Free: the entry is not stored.
    Free,
    /// Leads to this entry, which may be the one.
    Entry(u32),
    /// Leads to another entry.
    Other,
}

impl Slot {
    /// The slot that leads from `hash` to `entry`.
    #[inline(always)]
    pub const fn new(hash: Hash, entry: u32) -> Self {
        Self((hash.tag() as u64) << 32 | (entry as u64 + 1))
    }

    /// Meaning of this slot for `hash`.
    #[inline(always)]
    pub const fn probe(self, hash: Hash) -> Probe {
        if self.0 == 0 {
            Probe::Free
        } else if (self.0 >> 32) as u32 == hash.tag() {
            Probe::Entry((self.0 as u32).wrapping_sub(1))
        } else {
            Probe::Other
        }
    }
}

/// Whether a side that holds `capacity` entries becomes half full when `cursor` grows by `more`.
#[inline(always)]
pub const fn passes_half(cursor: u64, more: u64, capacity: u64) -> bool {
    cursor < capacity / 2 && cursor + more >= capacity / 2
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_assert_ne, proptest};
    use std::vec::Vec;

    fn hash_of(seed: u64, words: &[u64]) -> Hash {
        words
            .iter()
            .fold(Hash::new(seed), |hash, &word| hash.with(word))
    }

    proptest! {
        #[test]
        fn a_slot_returns_its_entry(seed: u64, word: u64, entry in 0..u32::MAX) {
            let hash = Hash::new(seed).with(word);
            prop_assert_eq!(Slot::new(hash, entry).probe(hash), Probe::Entry(entry));
        }

        #[test]
        fn entries_with_different_tags_differ(seed: u64, a: u64, b: u64) {
            let (a, b) = (Hash::new(seed).with(a), Hash::new(seed).with(b));
            if a.tag() != b.tag() {
                prop_assert_eq!(Slot::new(a, 7).probe(b), Probe::Other);
            }
        }

        #[test]
        fn probes_visit_neighbouring_slots_inside_the_mask(word: u64, bits in 4u32..20) {
            let mask = (1u32 << bits) - 1;
            let hash = Hash::new(word);
            for probe in 0..PROBES {
                let slot = hash.slot(probe, mask);
                prop_assert!(slot <= mask);
                prop_assert_eq!(hash.slot(probe + 1, mask), (slot + 1) & mask);
            }
        }

        #[test]
        fn a_hash_depends_on_order_and_every_bit(seed: u64, words in proptest::collection::vec(any::<u64>(), 2..40), at: proptest::sample::Index, bit in 0u32..64) {
            let hash = hash_of(seed, &words);
            let mut changed: Vec<u64> = words.clone();
            let place = at.index(words.len());
            changed[place] ^= 1 << bit;
            prop_assert_ne!(hash_of(seed, &changed), hash);
            let mut swapped = words.clone();
            swapped.swap(0, 1);
            if swapped != words {
                prop_assert_ne!(hash_of(seed, &swapped), hash);
            }
        }
    }

    #[test]
    fn half_full_is_reported_once() {
        let passes = (0..100)
            .filter(|&cursor| passes_half(cursor, 1, 100))
            .count();
        assert_eq!(passes, 1);
        assert!(passes_half(40, 20, 100));
        assert!(!passes_half(50, 20, 100));
    }

    #[test]
    fn hashes_of_recursive_stacks_are_spread() {
        // The same return address many times, as recursion makes: every depth must get a slot of its own,
        // more or less.
        let slots: std::collections::HashSet<u32> = (1..=1000)
            .map(|depth| hash_of(0x1234_5678, &std::vec![0x55d0_1234_5678; depth]).slot(0, 0xffff))
            .collect();
        assert!(slots.len() > 950, "{} distinct slots of 1000", slots.len());
    }
}
