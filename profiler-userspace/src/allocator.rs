//! Counts the memory of each thread, has all of them share one heap, and gives back what is free.
//!
//! In: every allocation of this program. Out: how many bytes a thread has allocated and not freed.
//! Symbolization keeps its limit by that: what libraries make of a debug file can be many times its size,
//! and only the allocator knows how much. The memory itself comes from the system's allocator.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one hands every call on as it came. `mallopt` and `malloc_trim` are functions of C"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Neither initialized lazily nor destroyed, so that access never allocates.
    static TAKEN: Cell<i64> = const { Cell::new(0) };
    static MAX: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
///
/// A program registers it as its global allocator, as the command does. Elsewhere nothing is counted, and the
/// limit on memory does not hold.
#[derive(Debug)]
pub struct Counting;

#[cfg(test)]
#[global_allocator]
static COUNTING: Counting = Counting;

/// The bytes this thread has allocated and not freed. Memory that it freed for another thread counts too, so
/// the number may be negative: only differences mean anything.
pub(crate) fn taken() -> i64 {
    TAKEN.get()
}

/// Does work, and says the most memory that it held at once beside what there was before, in bytes.
#[cfg(test)]
pub(crate) fn most<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let before = taken();
    MAX.set(before);
    let done = work();
    (done, MAX.get() - before)
}

/// Has all threads share one heap from now on. glibc gives each its own, and what one thread has freed no other uses: of a service's
/// 100 MiB that was half. Threads seldom allocate at the same time here.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    {
        /// `M_ARENA_MAX` of `malloc.h`.
        const ARENA_MAX: i32 = -8;
        unsafe extern "C" {
            // `mallopt(3)`.
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        // SAFETY: it takes no pointers and sets a number under the allocator's lock.
        unsafe { mallopt(ARENA_MAX, 1) };
    }
}

/// Gives freed memory back to the system, which is worth its milliseconds behind large work. glibc keeps it otherwise, for each
/// thread apart, below whatever is still in use.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            // `malloc_trim(3)`.
            fn malloc_trim(kept: usize) -> i32;
        }
        // SAFETY: it takes no pointers and touches only memory that is free, each heap under its lock.
        unsafe { malloc_trim(0) };
    }
}

fn note(bytes: i64) {
    // A thread that ends frees memory after its counters are gone.
    let _ended = TAKEN.try_with(|taken| {
        taken.set(taken.get() + bytes);
        MAX.with(|most| most.set(most.get().max(taken.get())));
    });
}

/// A size as a signed number. No layout exceeds its range.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: every method passes its arguments on to the system's allocator and returns its result. Counting
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(signed(layout.size()));
        // SAFETY: the caller upholds `alloc`'s contract, which is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(signed(layout.size()));
        // SAFETY: the caller upholds `alloc_zeroed`'s contract, which is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(-signed(layout.size()));
        // SAFETY: the memory came from `System` through one of these methods, with that layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(signed(size) - signed(layout.size()));
        // SAFETY: the memory came from `System` through one of these methods, with that layout.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocated_and_freed_bytes_are_counted() {
        let before = taken();
        let ((), most) = most(|| {
            let mut bytes: Vec<u8> = Vec::with_capacity(1 << 20);
            assert_eq!(taken() - before, 1 << 20);
            bytes.reserve_exact(2 << 20);
            assert_eq!(taken() - before, 2 << 20);
            let zeros = vec![0u8; 1 << 16];
            drop(bytes);
            assert_eq!(taken() - before, 1 << 16);
            drop(zeros);
        });
        assert_eq!(taken(), before);
        assert_eq!(most, (2 << 20) + (1 << 16));
    }

    #[test]
    fn each_thread_counts_its_own_bytes() {
        let before = taken();
        let other = std::thread::spawn(|| {
            let before = taken();
            let bytes = vec![1u8; 1 << 20];
            let grew = taken() - before;
            (bytes, grew)
        });
        let (bytes, grew) = other.join().unwrap();
        assert_eq!(grew, 1 << 20);
        assert!(taken() - before < 1 << 16);
        drop(bytes);
        assert!(taken() - before < -(1 << 19));
    }
}
