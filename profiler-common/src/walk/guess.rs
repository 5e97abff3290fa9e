//! Which words of a stack may be return addresses, where nothing says in which word there is one.
//!
//! In: words above a stack pointer, and the bytes in front of what they may point to. Out: whether they are worth a try. Never
//! walks: a return address is believed only if a walk from there reaches the root, and that is the caller's business.

use super::is_user_address;

/// How many words above the stack pointer are looked at: what code that is made at run time saves before it calls, and
/// a few hundred bytes of its own.
pub const MAX_WORDS: u64 = 64;

/// How many are looked at above a leaf in a file's code that nothing describes, until it is read: assembly that calls nothing has
/// its return address there as a rule. Behind that are words of its own, among them return addresses of calls that are over.
pub const MAX_WORDS_OF_LEAF: u64 = 1;

/// Addresses this near to a word of a stack, in bytes, are in that stack.
const NEAR_BYTES: u64 = 1 << 16;

/// Whether `word`, found at the address `place` of a stack, may be a return address, as far as it tells itself.
#[inline(always)]
pub const fn may_be_code(word: u64, place: u64) -> bool {
    is_user_address(word) && word.wrapping_sub(place).wrapping_add(NEAR_BYTES) > 2 * NEAR_BYTES
}

/// After so many searches in a row that found nothing, most are left out.
const FRUITLESS: u64 = 4;

/// One of how many is made then. A power of two.
const ONE_OF: u64 = 16;

/// Whether to search in a process where the last `fruitless` searches found nothing, those that were left out among them.
#[inline(always)]
pub const fn is_worthwhile(fruitless: u64) -> bool {
    fruitless < FRUITLESS || fruitless & (ONE_OF - 1) == 0
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn words_that_point_into_the_stack_or_nowhere_are_passed_over() {
        let place = 0x7ffd_1234_5670;
        for word in [0, 4095, place, place - 4096, place + 65536, u64::MAX, !0xff] {
            assert!(!may_be_code(word, place), "{word:#x}");
        }
        for word in [0x40_1000, 0x5555_5555_1234, 0x7fff_f7dd_0000] {
            assert!(may_be_code(word, place), "{word:#x}");
        }
        // The lowest stack that there can be.
        assert!(may_be_code(0x40_1000, 8));
    }

    #[test]
    fn searches_that_find_nothing_become_rare_and_never_end() {
        let made: Vec<u64> = (0..64).filter(|&turn| is_worthwhile(turn)).collect();
        assert_eq!(made, [0, 1, 2, 3, 16, 32, 48]);
    }
}
