//! Values that a thread has of its own: `pthread_getspecific`, and thread-local variables.
//!
//! In: a process whose thread pointer is known. Out: the value, if the thread has one. Layouts are those of glibc,
//! which exports them for its debuggers (`_thread_db_pthread_specific` and the like: the same numbers in 2.36 and 2.43), and
//! of musl (`struct pthread` in `src/internal/pthread_impl.h`, 1.2).

pub use super::arch::thread::executable_variable;

use super::{
    Process,
    arch::thread::{GLIBC_SPECIFIC, MUSL_VALUES},
};

/// Which C library a file asks for (`DT_NEEDED`): a word of descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Libc {
    /// `libc.so.6`.
    #[default]
    Glibc = 0,
    /// `libc.so`, or `libc.musl-….so.1` with the machine in it.
    Musl = 1,
}

impl Libc {
    /// The library with this discriminant.
    #[inline(always)]
    pub const fn from_word(word: u64) -> Self {
        if word == Self::Musl as u64 {
            Self::Musl
        } else {
            Self::Glibc
        }
    }
}

/// glibc: values in one block, of 16 bytes each.
const GLIBC_BLOCK: u64 = 32;
/// glibc: a value lies so far behind its sequence number.
const GLIBC_VALUE: u64 = 8;
/// Keys that there may be (`PTHREAD_KEYS_MAX`).
const KEYS: u64 = 1024;
/// Address of a thread-local block that was never touched (glibc's `TLS_DTV_UNALLOCATED`).
const UNALLOCATED: u64 = u64::MAX;

/// The thread's value of a key; none if it has none.
#[inline(always)]
pub fn specific(process: &impl Process, libc: Libc, key: u64) -> Option<u64> {
    if key >= KEYS {
        return None;
    }
    let pointer = process.thread_pointer();
    let place = match libc {
        Libc::Glibc => {
            let blocks = pointer.wrapping_add(GLIBC_SPECIFIC);
            let [block] = process.read(blocks.wrapping_add(key / GLIBC_BLOCK * 8))?;
            if block == 0 {
                return None;
            }
            block.wrapping_add(key % GLIBC_BLOCK * 16 + GLIBC_VALUE)
        }
        Libc::Musl => {
            let [values] = process.read(pointer.wrapping_add(MUSL_VALUES))?;
            values.wrapping_add(key * 8)
        }
    };
    let [value] = process.read(place)?;
    (value != 0).then_some(value)
}

/// The address of a thread-local variable of a module that is loaded at run time, or at start: its block is found by the
/// module's number, and the variable lies at `offset` in it.
#[inline(always)]
pub fn dynamic_variable(
    process: &impl Process,
    libc: Libc,
    module: u64,
    offset: u64,
) -> Option<u64> {
    let [blocks] = process.read(process.thread_pointer().wrapping_add(8))?;
    let stride = match libc {
        Libc::Glibc => 16,
        Libc::Musl => 8,
    };
    let [block] = process.read(blocks.wrapping_add(module.wrapping_mul(stride)))?;
    (block != 0 && block != UNALLOCATED).then(|| block.wrapping_add(offset))
}

#[cfg(test)]
mod tests {
    use super::super::memory::Recorded;
    use super::*;

    fn at_thread(thread_pointer: u64) -> Recorded {
        Recorded {
            thread_pointer,
            ..Recorded::default()
        }
    }

    #[test]
    fn glibc_values_are_found_in_the_first_and_in_later_blocks() {
        let mut process = at_thread(0x7000_0000);
        process.words(0x7000_0000 + 1296, &[0x7000_0310, 0x5000]);
        process.words(0x7000_0310 + 16 * 3 + 8, &[0xabc]);
        process.words(0x5000 + 16 + 8, &[0xdef]);
        assert_eq!(specific(&process, Libc::Glibc, 3), Some(0xabc));
        assert_eq!(specific(&process, Libc::Glibc, 33), Some(0xdef));
        // A value that nobody set, a block that nobody made, a key that cannot be.
        process.words(0x7000_0310 + 16 * 4 + 8, &[0]);
        process.words(0x7000_0000 + 1296 + 16, &[0]);
        assert_eq!(specific(&process, Libc::Glibc, 4), None);
        assert_eq!(specific(&process, Libc::Glibc, 64), None);
        assert_eq!(specific(&process, Libc::Glibc, 1024), None);
    }

    #[test]
    fn musl_values_are_found() {
        let mut process = at_thread(0x7000_0000);
        process.words(0x7000_0080, &[0x9000]);
        process.words(0x9000 + 5 * 8, &[0x123]);
        assert_eq!(specific(&process, Libc::Musl, 5), Some(0x123));
    }

    #[test]
    fn thread_local_variables_are_found_by_module() {
        let mut process = at_thread(0x7000_0000);
        process.words(0x7000_0008, &[0x6000]);
        process.words(0x6000 + 16 * 2, &[0x8000]);
        process.words(0x6000 + 16 * 3, &[u64::MAX]);
        let at = |module| dynamic_variable(&process, Libc::Glibc, module, 0x18);
        assert_eq!(at(2), Some(0x8018));
        assert_eq!(at(3), None);
        assert_eq!(executable_variable(&process, 0x40), 0x6fff_ffc0);
    }
}
