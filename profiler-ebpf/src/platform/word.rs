//! A word that several CPUs and user space read and write at the same time.
//!
//! Rust's `AtomicU64` would do if LLVM's BPF backend supported plain atomic loads and stores; below CPU version 4 it has
//! only read-modify-write operations. Aligned words are never torn, so volatile accesses are as good as relaxed atomic
//! ones.
#![expect(unsafe_code, reason = "volatile accesses of shared memory")]

use core::{
    cell::UnsafeCell,
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
};

/// One shared word of a map.
#[repr(transparent)]
pub(crate) struct Word(UnsafeCell<u64>);

// SAFETY: every access is one volatile or atomic access of one aligned word.
unsafe impl Sync for Word {}

impl Word {
    /// The word's value now.
    #[inline(always)]
    pub(crate) fn load(&self) -> u64 {
        // SAFETY: the word is valid and aligned for as long as the reference to it.
        unsafe { self.0.get().read_volatile() }
    }

    /// Sets the word.
    #[inline(always)]
    pub(crate) fn store(&self, value: u64) {
        // SAFETY: as for `load`.
        unsafe { self.0.get().write_volatile(value) }
    }

    /// Adds to the word.
    #[inline(always)]
    pub(crate) fn add(&self, amount: u64) {
        self.atomic().fetch_add(amount, Relaxed);
    }

    /// Adds to the word and returns what it was; a full barrier.
    #[inline(always)]
    pub(crate) fn fetch_add(&self, amount: u64) -> u64 {
        // Using the result makes this BPF_FETCH, which is a barrier on every architecture.
        core::hint::black_box(self.atomic().fetch_add(amount, SeqCst))
    }

    /// Sets bits of the word.
    #[inline(always)]
    pub(crate) fn set(&self, bits: u64) {
        self.atomic().fetch_or(bits, Relaxed);
    }

    /// Clears bits of the word.
    #[inline(always)]
    pub(crate) fn clear(&self, bits: u64) {
        self.atomic().fetch_and(!bits, Relaxed);
    }

    /// Sets the word if it is zero, ordered after everything written before.
    #[inline(always)]
    pub(crate) fn claim(&self, value: u64) {
        let _ours = self.atomic().compare_exchange(0, value, SeqCst, Relaxed);
    }

    /// Sets the word if it is zero, and says whether it was.
    #[inline(always)]
    pub(crate) fn take(&self, value: u64) -> bool {
        self.atomic()
            .compare_exchange(0, value, SeqCst, Relaxed)
            .is_ok()
    }

    /// The word's address, for helpers that write to it.
    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> *mut u64 {
        self.0.get()
    }

    #[inline(always)]
    fn atomic(&self) -> &AtomicU64 {
        // SAFETY: as for `load`; nobody accesses the word but through this type or in another process.
        unsafe { AtomicU64::from_ptr(self.0.get()) }
    }
}

/// Four bytes of a map that user space writes and the kernel half only reads.
#[repr(transparent)]
pub(crate) struct Half(UnsafeCell<u32>);

// SAFETY: every access is one volatile access of one aligned half word.
unsafe impl Sync for Half {}

impl Half {
    /// The value now.
    #[inline(always)]
    pub(crate) fn load(&self) -> u32 {
        // SAFETY: valid and aligned for as long as the reference.
        unsafe { self.0.get().read_volatile() }
    }
}
