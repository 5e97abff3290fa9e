//! Check of the mappings of a user stack: tells stacks of equal addresses apart whose code was not the same.
//!
//! In: the key of the mapping of each native frame, from leaf to root. Out: 32 bits in the stack's
//! [`Header`](super::Header). User space, which has each mapping with its key, finds the mappings again that give the
//! same check.

use super::layout::Zero;
use crate::intern::Hash;

/// Key of what a mapping has at its addresses: the same for all parts of a file that lie as far from their
/// places in it, and for all memory that a process made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MappingKey(pub u64);

impl Zero for MappingKey {
    const ZERO: Self = Self(0);
}

impl MappingKey {
    /// No code.
    pub const NONE: Self = Self(0);

    /// Memory that belongs to no file.
    pub const MEMORY: Self = Self(1);

    /// A part of the file with this hash, whose offsets are `bias` below the addresses.
    #[inline(always)]
    pub const fn of_file(file: Hash, bias: u64) -> Self {
        Self(file.with(bias).0 | 2)
    }
}

/// Check under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingCheck {
    hash: Hash,
    /// All bits of all keys.
    bits: u64,
}

impl MappingCheck {
    /// No frames yet.
    pub const EMPTY: Self = Self {
        hash: Hash::new(0),
        bits: 0,
    };

    /// The same with one more frame.
    #[inline(always)]
    #[must_use]
    pub const fn with(self, mapping: MappingKey) -> Self {
        Self {
            hash: self.hash.with(mapping.0),
            bits: self.bits | mapping.0,
        }
    }

    /// The check; zero if no frame lies in code.
    #[inline(always)]
    pub const fn finish(self) -> u32 {
        let check = (self.hash.0 >> 32) as u32;
        match (self.bits, check) {
            (0, _) => 0,
            (_, 0) => 1,
            _ => check,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(mappings: &[MappingKey]) -> u32 {
        let all = mappings.iter();
        all.fold(MappingCheck::EMPTY, |check, mapping| check.with(*mapping))
            .finish()
    }

    #[test]
    fn parts_of_a_file_have_one_key_at_one_distance() {
        let file = Hash::new(7);
        let here = MappingKey::of_file(file, 0x7000_0000);
        assert_eq!(here, MappingKey::of_file(file, 0x7000_0000));
        assert_ne!(here, MappingKey::of_file(file, 0x7000_1000));
        assert_ne!(here, MappingKey::of_file(Hash::new(8), 0x7000_0000));
        assert_ne!(here, MappingKey::MEMORY);
    }

    proptest! {
        #[test]
        fn another_mapping_of_a_frame_gives_another_check(
            mut frames in prop::collection::vec(any::<u64>().prop_map(|word| MappingKey(word | 2)), 1..64),
            at in any::<prop::sample::Index>(),
            other in any::<u64>(),
        ) {
            let before = check(&frames);
            prop_assert_ne!(before, 0);
            let frame = at.get_mut(&mut frames);
            prop_assume!(frame.0 != other | 2);
            frame.0 = other | 2;
            prop_assert_ne!(check(&frames), before);
        }
    }

    #[test]
    fn no_code_has_no_check() {
        assert_eq!(check(&[]), 0);
        assert_eq!(check(&[MappingKey::NONE; 3]), 0);
        assert_ne!(check(&[MappingKey::NONE, MappingKey::MEMORY]), 0);
    }
}
