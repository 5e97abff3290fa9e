//! x86-64 specifics of a walk: register numbers, and the layout of signal frames.
//!
//! Numbers are DWARF's (System V ABI, AMD64 supplement, figure 3.36).

/// The frame pointer.
pub const RBP: u8 = 6;
/// The stack pointer.
pub const RSP: u8 = 7;
/// The one further callee-saved register that unwind instructions of calling code start from: in the dynamic
/// linker's trampoline (glibc, `sysdeps/x86_64/dl-trampoline.h`).
pub const RBX: u8 = 3;

/// The distance in bytes from rsp to rbp among the registers the kernel saves for a signal handler; rip is
/// the word after rsp (`struct sigcontext_64` in Linux's `arch/x86/include/uapi/asm/sigcontext.h`).
pub const SAVED_RBP: i64 = -40;
/// As [`SAVED_RBP`], for rbx.
pub const SAVED_RBX: i64 = -32;
