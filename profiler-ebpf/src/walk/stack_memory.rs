//! The stack as a walk reads it: several frames at a time.
//!
//! In: addresses. Out: the words there.

use crate::{
    platform::memory::{self, UserMemory},
    walk::scratch::StackCopy,
};
use core::hint::black_box;
use profiler_common::walk::{
    Memory,
    ahead::{self, AHEAD},
};

/// The memory of the process that is running, with a copy of a piece of its stack.
pub(crate) struct StackMemory(pub(crate) &'static StackCopy);

impl StackMemory {
    /// Forgets what was read: a walk begins, and the program has run since.
    #[inline(always)]
    pub(crate) fn forget(&self) {
        self.0.count.store(0);
    }

    /// `N` words of the copy from this one on.
    #[inline(always)]
    fn words<const N: usize>(&self, first: u64) -> Option<[u64; N]> {
        // Hidden from the compiler, which would compute the places before it has checked the number.
        let first = black_box(first as usize);
        if first > AHEAD - N {
            return None;
        }
        let mut words = [0; N];
        for (place, word) in words.iter_mut().enumerate() {
            *word = self.0.words.get(first + place)?.load();
        }
        Some(words)
    }

    /// Words that are probably in the stack, from the copy if they are there; otherwise the copy stays as it is.
    #[inline(always)]
    pub(crate) fn read_copied<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let StackCopy { start, count, .. } = self.0;
        match ahead::place(start.load(), count.load(), address, N as u64) {
            Some(first) => self.words(first),
            None => UserMemory.read(address),
        }
    }

    /// Copies `bytes` bytes from this address on.
    #[inline(always)]
    fn copy(&self, address: u64, bytes: u64) -> bool {
        // If it fails, there is none.
        self.0.count.store(0);
        if !memory::copy_user_stack(&self.0.words, address, bytes) {
            return false;
        }
        self.0.start.store(address);
        self.0.count.store(bytes / 8);
        true
    }
}

impl Memory for StackMemory {
    #[inline(always)]
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        UserMemory.read(address)
    }

    #[inline(always)]
    fn read_upward<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let StackCopy { start, count, .. } = self.0;
        if let Some(first) = ahead::place(start.load(), count.load(), address, N as u64) {
            return self.words(first);
        }
        let Some(bytes) = ahead::bytes(address, N as u64) else {
            return UserMemory.read(address);
        };
        if self.copy(address, bytes) {
            self.words(0)
        } else {
            None
        }
    }
}
