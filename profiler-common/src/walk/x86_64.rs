//! x86-64 specifics of a walk: register numbers, the layout of signal frames, and a few instructions.
//!
//! Numbers are DWARF's (System V ABI, AMD64 supplement, figure 3.36).

mod call;
pub mod innermost;

pub use call::ends_in_call;

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

/// The distance in bytes from rsp to rbp among the registers the kernel saves for a signal handler; rip is
/// the word after rsp (`struct sigcontext_64` in Linux's `arch/x86/include/uapi/asm/sigcontext.h`).
pub const FP_FROM_STORED_SP: i64 = -40;
/// As [`FP_FROM_STORED_SP`], for rbx.
pub const SAVED_FROM_STORED_SP: i64 = -32;
