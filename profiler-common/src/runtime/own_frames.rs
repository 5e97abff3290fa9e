//! Where a runtime's own frames lie that were put into a stack: how that is packed, for [`FunctionInfo::owner`](super::FunctionInfo::owner).
//!
//! In: the address of a frame, that of the first that was shown, and the place of its words in the stack. Out: 16 bits, four
//! frames to a word. All lie within the steps that a walk takes from the first, so a frame's bits are its distance from that one,
//! in words, plus one. Zero stands for a frame that is further away, or before the first. Never: the words themselves, which
//! the kernel half keeps.

/// Frames in a word.
pub const IN_WORD: usize = 4;
const BITS: usize = 64 / IN_WORD;
const MASK: u64 = (1 << BITS) - 1;

/// Where the bits of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// In which word.
    pub word: usize,
    /// How far they are shifted there.
    shift: usize,
}

impl Position {
    /// Those of a frame by the place of its words in the stack, which are two.
    #[inline(always)]
    pub const fn of(place: usize) -> Self {
        let frame = place / 2;
        Self {
            word: frame / IN_WORD,
            shift: frame % IN_WORD * BITS,
        }
    }

    /// The word with the bits of a frame in place of what is there.
    #[inline(always)]
    pub const fn put(self, word: u64, bits: u64) -> u64 {
        let others = word & !(MASK << self.shift);
        others | bits << self.shift
    }

    /// How many bytes behind the first the frame lies whose bits are in a word; none if that is not known.
    #[inline(always)]
    pub const fn distance(self, word: u64) -> Option<u64> {
        match word >> self.shift & MASK {
            0 => None,
            bits => Some((bits - 1) * 8),
        }
    }
}

/// The bits of a frame, given the first one's address.
#[inline(always)]
pub const fn bits(address: u64, base: u64) -> u64 {
    let distance = address.wrapping_sub(base) / 8;
    if distance < MASK { distance + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{MAX_USER_FRAMES, MAX_USER_WORDS};

    /// Stand-in for the kernel half: keeps words by their numbers.
    struct Frames {
        base: u64,
        words: [u64; MAX_USER_FRAMES / IN_WORD],
    }

    impl Frames {
        fn new(base: u64) -> Self {
            Self {
                base,
                // Nothing is cleared between two walks.
                words: [u64::MAX; MAX_USER_FRAMES / IN_WORD],
            }
        }

        fn note(&mut self, place: usize, address: u64) {
            let position = Position::of(place);
            let word = &mut self.words[position.word];
            *word = position.put(*word, bits(address, self.base));
        }

        fn address(&self, place: usize) -> Option<u64> {
            let position = Position::of(place);
            let distance = position.distance(self.words[position.word])?;
            Some(self.base.wrapping_add(distance))
        }
    }

    const BASE: u64 = 0x7f00_1234_5678;

    #[test]
    fn each_place_of_a_stack_has_an_address_of_its_own() {
        let mut frames = Frames::new(BASE);
        let places = (0..MAX_USER_WORDS).step_by(2);
        let address = |place: usize| BASE + 8 * (place as u64 * 7 % 0xffff);
        for place in places.clone().rev() {
            frames.note(place, address(place));
        }
        for place in places {
            assert_eq!(frames.address(place), Some(address(place)), "{place}");
        }
    }

    #[test]
    fn a_frame_replaces_the_one_that_was_in_its_place() {
        let mut frames = Frames::new(BASE);
        for place in [8, 10, 12, 14] {
            frames.note(place, BASE + 8 * place as u64);
        }
        frames.note(12, BASE + 4096);
        let now = [8, 10, 12, 14].map(|place| frames.address(place));
        let expected = [BASE + 64, BASE + 80, BASE + 4096, BASE + 112];
        assert_eq!(now, expected.map(Some));
    }

    #[test]
    fn the_first_one_is_known_and_the_last_within_reach_is() {
        let furthest = BASE + 8 * (MASK - 1);
        for address in [BASE, BASE + 8, furthest] {
            let mut frames = Frames::new(BASE);
            frames.note(6, address);
            assert_eq!(frames.address(6), Some(address));
        }
    }

    #[test]
    fn what_is_further_away_or_before_the_first_is_not_known() {
        for address in [BASE + 8 * MASK, BASE - 8, BASE - 1, 0, u64::MAX] {
            let mut frames = Frames::new(BASE);
            frames.note(6, BASE + 8);
            frames.note(4, address);
            assert_eq!(frames.address(4), None, "{address:#x}");
            assert_eq!(frames.address(6), Some(BASE + 8), "{address:#x}");
        }
    }

    #[test]
    fn a_base_at_the_end_of_the_addresses_does_not_overflow() {
        let base = u64::MAX - 7;
        let mut frames = Frames::new(base);
        frames.note(0, base);
        frames.note(2, 0);
        assert_eq!(
            [0, 2].map(|place| frames.address(place)),
            [Some(base), Some(0)]
        );
    }
}
