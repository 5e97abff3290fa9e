//! The interfaces of x86-64: registers in rules, numbers of system calls (`arch/x86/entry/syscalls/syscall_64.tbl`), and bounds.
//!
//! In: numbers. Out: what such a call does. Registers have DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36).

use super::Descriptors;

/// The number of registers that a walk may begin with. A power of two.
pub const REGISTERS: usize = 16;

/// The frame pointer, rbp.
pub const FP: u8 = 6;
/// The stack pointer, rsp.
pub const SP: u8 = 7;
/// The one further register that is followed from frame to frame, rbx: unwind instructions of calling code start from it in
/// the dynamic linker's trampoline (glibc, `sysdeps/x86_64/dl-trampoline.h`).
pub const SAVED: u8 = 3;

/// How far the CFA is above the stack pointer at a function's first instruction, in bytes: calls push the return address.
pub const CFA_AT_ENTRY: i32 = 8;
/// Whether calls put the return address into the register [`SAVED`], so that it is found as the caller's is. Here they push it.
pub const RETURNS_BY_SAVED: bool = false;

/// The weight of a page-in in bytes: a page (`arch/x86/include/asm/page_types.h`).
pub const PAGE_BYTES: u64 = 4096;

/// The end of the addresses that the kernel gives to programs that do not ask for more.
pub(super) const ADDRESS_END: u64 = 1 << 47;

/// Where the file descriptors of a reading, writing or syncing system call are; none for other calls. Calls
/// that transfer whole messages report no number of bytes and are left out if `bytes` are wanted.
#[inline(always)]
pub const fn descriptors(number: u64, bytes: bool) -> Option<Descriptors> {
    match number {
        // read, write, pread64, pwrite64, readv, writev
        0 | 1 | 17 | 18 | 19 | 20 => Some(Descriptors::First),
        // sendto, recvfrom, sendmsg, recvmsg
        44..=47 => Some(Descriptors::First),
        // fsync, fdatasync, sync_file_range, syncfs, recvmmsg, sendmmsg
        74 | 75 | 277 | 306 | 299 | 307 if !bytes => Some(Descriptors::First),
        // preadv, pwritev, preadv2, pwritev2, vmsplice
        295 | 296 | 327 | 328 | 278 => Some(Descriptors::First),
        // sendfile, tee
        40 | 276 => Some(Descriptors::FirstAndSecond),
        // splice, copy_file_range
        275 | 326 => Some(Descriptors::FirstAndThird),
        _ => None,
    }
}

/// Whether a system call waits for a user lock, by its number and second argument
/// (`include/uapi/linux/futex.h`).
#[inline(always)]
pub const fn waits_for_lock(number: u64, operation: u64) -> bool {
    match number {
        // futex: FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2; its flags are from 128 on.
        202 => matches!(operation & 0x7f, 0 | 6 | 9 | 11 | 13),
        // futex_waitv, futex_wait
        449 | 455 => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_call_moves_no_bytes() {
        assert_eq!(descriptors(74, false), Some(Descriptors::First));
        assert_eq!(descriptors(74, true), None);
        assert_eq!(descriptors(0, true), Some(Descriptors::First));
        assert_eq!(descriptors(202, false), None);
    }

    #[test]
    fn a_futex_wake_is_not_a_wait() {
        for (number, operation, waits) in [
            (202, 0, true),
            (202, 1, false),
            (202, 0x80, true),
            (202, 0x189, true),
            (202, 0x81, false),
            (455, 0, true),
            (0, 0, false),
        ] {
            assert_eq!(
                waits_for_lock(number, operation),
                waits,
                "{number} {operation:#x}"
            );
        }
    }
}
