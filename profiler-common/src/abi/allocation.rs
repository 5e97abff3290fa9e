//! Requests for memory: where their sizes are passed, and which of them are part of another.
//!
//! In: the arguments of a C library function, and the thread's previous request. Out: bytes, and whether the
//! request is a separate one. Pure.

use super::layout::boundary;

/// Where a function is passed the size (`malloc(3)`, `posix_memalign(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SizeAt {
    /// In the first argument: `malloc`, `valloc`, `pvalloc`.
    First = 1,
    /// In the second: `realloc`, `aligned_alloc`, `memalign`.
    Second = 2,
    /// In the third: `posix_memalign`.
    Third = 3,
    /// The first argument times the second: `calloc`.
    FirstBySecond = 4,
    /// The second times the third: `reallocarray`.
    SecondByThird = 5,
}

/// The most bytes that can be granted: programs have no more addresses.
const MAX_BYTES: u64 = super::arch::ADDRESS_END;

/// An allocation function, in one word: bits 0–7 the [`SizeAt`], bits 8–15 its number in its file, bits 16–47
/// its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Allocator(pub u64);

impl Allocator {
    /// A function of this number and length.
    pub const fn new(size_at: SizeAt, number: u8, length: u32) -> Self {
        Self(size_at as u64 | (number as u64) << 8 | (length as u64) << 16)
    }

    /// Its number in its file.
    #[inline(always)]
    pub const fn number(self) -> u64 {
        self.0 >> 8 & 0xff
    }

    /// Its length in bytes.
    #[inline(always)]
    pub const fn length(self) -> u64 {
        self.0 >> 16 & 0xffff_ffff
    }

    /// The size requested by a call with these arguments; zero if it cannot be granted.
    #[inline(always)]
    pub const fn asked(self, arguments: [u64; 3]) -> u64 {
        let [first, second, third] = arguments;
        let (size, times) = match self.0 & 0xff {
            1 => (first, 1),
            2 => (second, 1),
            3 => (third, 1),
            4 => (first, second),
            _ => (second, third),
        };
        if size >= MAX_BYTES || times >= MAX_BYTES {
            return 0;
        }
        // No checked multiplication: BPF lacks the function that it calls.
        if size >> 32 != 0 && times >> 16 != 0 || times >> 32 != 0 && size >> 16 != 0 {
            return 0;
        }
        let bytes = size.wrapping_mul(times);
        if bytes >= MAX_BYTES { 0 } else { bytes }
    }
}

/// One call of an allocation function, at its first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The address of the function.
    pub entry: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The return address.
    pub back: u64,
    /// The function.
    pub function: Allocator,
}

boundary! {
    /// A thread's previous request for memory.
    #[derive(Default)]
    #[repr(C)]
    pub struct LastRequest<W = u64> {
        /// Its stack pointer.
        pub stack: W,
        /// Where it returns.
        pub back: W,
        /// Its function's number.
        pub number: W,
        /// Where the code begins that was last seen to allocate.
        pub start: W,
        /// Where it ends.
        pub end: W,
    }
}

impl Asking {
    /// Whether the request is part of the previous one: one such function calls another, as `calloc` may call
    /// `malloc`, or tail-calls it, as `realloc` does for a null pointer.
    #[inline(always)]
    pub const fn is_part_of(&self, last: &LastRequest) -> bool {
        let called = self.back > last.start && self.back <= last.end;
        // A loop that calls from one place comes back with the same stack.
        let is_same_call = self.stack == last.stack && self.back == last.back;
        called || is_same_call && self.function.number() != last.number
    }

    /// The record to keep: everything of a separate request; of a part, only the code.
    #[inline(always)]
    pub const fn keep(&self, last: &LastRequest, is_part: bool) -> LastRequest {
        let (start, end) = (self.entry, self.entry.wrapping_add(self.function.length()));
        if is_part {
            LastRequest {
                start,
                end,
                ..*last
            }
        } else {
            LastRequest {
                stack: self.stack,
                back: self.back,
                number: self.function.number(),
                start,
                end,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn the_size_is_read_from_the_right_argument_of_each_function() {
        for (size_at, bytes) in [
            (SizeAt::First, 3),
            (SizeAt::Second, 5),
            (SizeAt::Third, 7),
            (SizeAt::FirstBySecond, 15),
            (SizeAt::SecondByThird, 35),
        ] {
            assert_eq!(Allocator::new(size_at, 9, 8).asked([3, 5, 7]), bytes);
        }
        let calloc = Allocator::new(SizeAt::FirstBySecond, 2, 77);
        assert_eq!((calloc.number(), calloc.length()), (2, 77));
        assert_eq!(calloc.asked([u64::MAX, 1, 0]), 0);
        assert_eq!(calloc.asked([1 << 46, 2, 0]), 0);
        assert_eq!(calloc.asked([0, u64::MAX, 0]), 0);
    }

    proptest! {
        #[test]
        fn a_request_beyond_the_address_space_counts_nothing(a: u64, b in any::<u64>()) {
            let asked = Allocator::new(SizeAt::FirstBySecond, 0, 0).asked([a, b, 0]);
            let exactly = u128::from(a) * u128::from(b);
            prop_assert!(asked == 0 || u128::from(asked) == exactly);
        }
    }

    /// Functions of 100 bytes at 1000, 2000 and 3000.
    fn asking(number: u8, stack: u64, back: u64) -> Asking {
        Asking {
            entry: 1000 * u64::from(number),
            stack,
            back,
            function: Allocator::new(SizeAt::First, number, 100),
        }
    }

    /// How many of these are separate requests.
    fn own(all: &[Asking]) -> usize {
        let mut last = LastRequest::default();
        let mut own = 0;
        for asking in all {
            let part = asking.is_part_of(&last);
            own += usize::from(!part);
            last = asking.keep(&last, part);
        }
        own
    }

    #[test]
    fn a_nested_request_is_counted_once() {
        // A loop that allocates from one place, and from two places.
        assert_eq!(own(&[asking(1, 80, 500), asking(1, 80, 500)]), 2);
        assert_eq!(own(&[asking(1, 80, 500), asking(2, 80, 510)]), 2);
        // realloc tail-calls malloc; calloc calls malloc.
        assert_eq!(own(&[asking(2, 80, 500), asking(1, 80, 500)]), 1);
        assert_eq!(own(&[asking(3, 80, 500), asking(1, 60, 3050)]), 1);
        // memalign tail-calls aligned_alloc, which calls malloc; and all again.
        let chain = [asking(3, 80, 500), asking(2, 80, 500), asking(1, 60, 2050)];
        assert_eq!(own(&[chain, chain].concat()), 2);
    }
}
