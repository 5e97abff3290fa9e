//! Names of the kernel's on x86-64: of the functions where it is entered, and of system calls.
//!
//! In: numbers. Out: names, or none where the machine has none for it.

use syscalls::{x86, x86_64};

/// Beginnings of the names of functions where interrupts come in (`arch/x86/include/asm/idtentry.h`; the last two by FRED, in
/// `arch/x86/entry/entry_fred.c`).
pub(super) const INTERRUPT_ENTRIES: [&str; 5] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_exc_nmi",
    "fred_sysvec_",
    "common_interrupt",
];

/// The name of a system call.
pub(crate) fn system_call(number: u32) -> Option<&'static str> {
    Some(x86_64::Sysno::new(number as usize)?.name())
}

/// The name of a system call of a 32-bit program.
pub(crate) fn compat_system_call(number: u32) -> Option<&'static str> {
    Some(x86::Sysno::new(number as usize)?.name())
}
