//! How much of a stack to read at once.
//!
//! In: which words were read last, and the address that is wanted. Out: where among them it is, or how many bytes to read
//! instead. Never reads: the caller does.
//!
//! Asking the kernel for a word of user memory costs as much as asking for several frames, whose return addresses are
//! wanted next.

/// How many words are read at once.
pub const AHEAD: usize = 64;

/// The smallest page, in bytes: of one, either all can be read or nothing.
const PAGE_BYTES: u64 = 4096;

/// Which of the `count` words from address `start` on is the first of the `wanted` at `address`; none if they are not all
/// there.
#[inline(always)]
pub const fn place(start: u64, count: u64, address: u64, wanted: u64) -> Option<u64> {
    let into = address.wrapping_sub(start);
    // No sum can be too large: a distance in words has 61 bits.
    if into & 7 == 0 && into / 8 + wanted <= count {
        Some(into / 8)
    } else {
        None
    }
}

/// How many bytes to read at `address`, where as many words are wanted: to the end of its page, as far as there is room.
/// None if the words lie in two pages.
#[inline(always)]
pub const fn bytes(address: u64, wanted: u64) -> Option<u64> {
    let in_page = PAGE_BYTES - (address & (PAGE_BYTES - 1));
    let bytes = if in_page < 8 * AHEAD as u64 {
        in_page
    } else {
        8 * AHEAD as u64
    };
    if bytes < 8 * wanted {
        None
    } else {
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::vec::Vec;

    /// Two pages, of which the second may be missing. Each byte says where it is.
    struct Pages {
        has_second: bool,
    }

    impl Pages {
        fn read(&self, address: u64, bytes: u64) -> Option<Vec<u8>> {
            let end = if self.has_second { 2 } else { 1 } * PAGE_BYTES;
            let byte = |at: u64| (at ^ at >> 8) as u8;
            (address + bytes <= end).then(|| (address..address + bytes).map(byte).collect())
        }
    }

    proptest! {
        /// Words are the same, and there in the same cases, as if each were read alone.
        #[test]
        fn what_is_read_ahead_is_what_is_there(
            reads in proptest::collection::vec((0..2 * PAGE_BYTES, any::<bool>(), 1u64..=2), 1..60),
            has_second: bool,
        ) {
            let pages = Pages { has_second };
            let (mut start, mut copy) = (0, Vec::new());
            for (address, is_aligned, wanted) in reads {
                let address = if is_aligned { address & !7 } else { address };
                let alone = pages.read(address, 8 * wanted);
                let found = match (place(start, copy.len() as u64 / 8, address, wanted), bytes(address, wanted)) {
                    (Some(first), _) => {
                        let first = usize::try_from(8 * first).unwrap();
                        Some(copy[first..first + 8 * usize::try_from(wanted).unwrap()].to_vec())
                    }
                    (None, None) => pages.read(address, 8 * wanted),
                    (None, Some(bytes)) => {
                        prop_assert!(bytes <= 8 * AHEAD as u64);
                        start = address;
                        copy = pages.read(address, bytes).unwrap_or_default();
                        copy.get(..8 * usize::try_from(wanted).unwrap()).map(<[u8]>::to_vec)
                    }
                };
                prop_assert_eq!(found, alone);
            }
        }

        #[test]
        fn addresses_at_the_end_of_memory_are_no_exception(start: u64, count in 0..=AHEAD as u64, below in 1u64..64, wanted in 1u64..=2) {
            let address = 0u64.wrapping_sub(below);
            if let Some(first) = place(start, count, address, wanted) {
                prop_assert_eq!(start.wrapping_add(8 * first), address);
                prop_assert!(first + wanted <= count);
            }
            prop_assert!(bytes(address, wanted).is_none_or(|bytes| bytes <= below));
        }
    }

    #[test]
    fn several_frames_are_read_at_once() {
        assert_eq!(bytes(0x7000, 1), Some(512));
        assert_eq!(place(0x7000, 64, 0x71f8, 1), Some(63));
        assert_eq!(place(0x7000, 64, 0x71f8, 2), None);
        assert_eq!(place(0x7000, 64, 0x6ff8, 1), None);
        assert_eq!(bytes(0x7ff0, 1), Some(16));
        assert_eq!(bytes(0x7ff8, 2), None);
    }
}
