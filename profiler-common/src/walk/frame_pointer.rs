//! One step by frame pointer.
//!
//! Code built with frame pointers keeps, at the address in the frame-pointer register, the caller's
//! frame pointer and behind it the return address, on every machine whose code is known.

use super::{Memory, Registers, Step, is_user_address};
use crate::abi::StackEnd;

/// Bytes of a frame record: two words.
const RECORD_BYTES: u64 = 16;

/// The caller of the frame with these registers.
#[inline(always)]
pub fn step(registers: Registers, memory: &impl Memory) -> Step {
    let Registers { sp, fp, .. } = registers;
    if fp == 0 {
        // `_start` and new threads begin with a frame pointer of zero, as the ABI asks.
        return Step::End(StackEnd::Root);
    }
    if fp < sp || !fp.is_multiple_of(8) || !is_user_address(fp) {
        // Frames are above the stack pointer, each above the last: a chain that turns back is broken.
        return Step::End(StackEnd::NoFramePointer);
    }
    let Some([caller_fp, return_address]) = memory.read_upward::<2>(fp) else {
        return Step::End(StackEnd::Unreadable);
    };
    if return_address == 0 {
        return Step::End(StackEnd::Root);
    }
    if !is_user_address(return_address) {
        return Step::End(StackEnd::NoFramePointer);
    }
    Step::Caller(Registers {
        ip: return_address,
        sp: fp + RECORD_BYTES,
        fp: caller_fp,
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::testing::{Words, words};
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::{vec, vec::Vec};

    fn walk(mut registers: Registers, memory: &Words, limit: usize) -> (Vec<u64>, StackEnd) {
        let mut ips = vec![registers.ip];
        while ips.len() < limit {
            match step(registers, memory) {
                Step::Caller(caller) => {
                    ips.push(caller.ip);
                    registers = caller;
                }
                Step::End(end) => return (ips, end),
            }
        }
        (ips, StackEnd::Truncated)
    }

    const START: Registers = Registers {
        ip: 0x40_1000,
        sp: 0x7000_0000,
        fp: 0x7000_0010,
    };

    #[test]
    fn frame_pointers_are_followed_to_the_root() {
        let memory = words([
            (0x7000_0010, 0x7000_0040),
            (0x7000_0018, 0x40_2000),
            (0x7000_0040, 0),
            (0x7000_0048, 0x40_3000),
        ]);
        let (ips, end) = walk(START, &memory, 10);
        assert_eq!(ips, [0x40_1000, 0x40_2000, 0x40_3000]);
        assert_eq!(end, StackEnd::Root);
    }

    #[test]
    fn a_return_address_of_zero_is_the_root() {
        let memory = words([(0x7000_0010, 0x7000_0040), (0x7000_0018, 0)]);
        assert_eq!(step(START, &memory), Step::End(StackEnd::Root));
    }

    #[test]
    fn a_frame_pointer_that_goes_backwards_ends_the_walk() {
        let below = Registers {
            fp: START.sp - 8,
            ..START
        };
        assert_eq!(step(below, &words([])), Step::End(StackEnd::NoFramePointer));
        // A frame that is its own caller would loop forever.
        let memory = words([(0x7000_0010, 0x7000_0010), (0x7000_0018, 0x40_2000)]);
        let (ips, end) = walk(START, &memory, 10);
        assert_eq!((ips.len(), end), (2, StackEnd::NoFramePointer));
    }

    #[test]
    fn a_misaligned_or_impossible_frame_pointer_ends_the_walk() {
        for fp in [0x7000_0013, 1 << 60, u64::MAX, u64::MAX - 7] {
            let registers = Registers { fp, ..START };
            assert_eq!(
                step(registers, &words([])),
                Step::End(StackEnd::NoFramePointer)
            );
        }
    }

    #[test]
    fn kernel_addresses_and_small_numbers_are_no_return_addresses() {
        for bad in [1, 4095, 0xffff_ffff_8100_0000] {
            let memory = words([(0x7000_0010, 0x7000_0040), (0x7000_0018, bad)]);
            assert_eq!(step(START, &memory), Step::End(StackEnd::NoFramePointer));
        }
    }

    #[test]
    fn unreadable_memory_ends_the_walk() {
        let half = words([(0x7000_0010, 0x7000_0040)]);
        assert_eq!(step(START, &half), Step::End(StackEnd::Unreadable));
    }

    proptest! {
        /// Whatever the stack contains, the walk ends, and it yields only addresses a user process can have.
        #[test]
        fn a_walk_of_any_memory_ends(words in proptest::collection::vec(any::<u64>(), 64), near in proptest::collection::vec(0u64..64, 64), sp: u64, fp: u64) {
            let base = 0x7000_0000u64;
            let memory = Words(words.iter().zip(&near).enumerate().map(|(i, (&word, &near))| {
                // Half of the words are plausible frame pointers, so that walks get somewhere.
                let value = if i % 2 == 0 { base + near * 8 } else { word };
                (base + 8 * i as u64, value)
            }).collect());
            for registers in [
                Registers { ip: 0x40_0000, sp, fp },
                Registers { ip: 0x40_0000, sp: base, fp: base + (fp % 64) * 8 },
            ] {
                let (ips, end) = walk(registers, &memory, 200);
                prop_assert!(end != StackEnd::Truncated);
                prop_assert!(ips[1..].iter().all(|&ip| is_user_address(ip)));
                prop_assert_eq!(StackEnd::from_code(end as u8), Some(end));
            }
        }
    }
}
