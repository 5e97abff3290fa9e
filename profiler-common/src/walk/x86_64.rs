//! What of the walk is x86-64's own: the numbers of registers, and how signal frames lie.
//!
//! Numbers are DWARF's (System V ABI, AMD64 supplement, figure 3.36).

/// The register in which functions with frame pointers keep them.
pub const RBP: u8 = 6;
/// The stack pointer.
pub const RSP: u8 = 7;
/// The one further register that callees preserve and from which unwind instructions of code that
/// makes calls begin: that of the dynamic linker's trampoline (glibc, `sysdeps/x86_64/dl-trampoline.h`).
pub const RBX: u8 = 3;

/// From the place of rsp among the registers that the kernel stores for a signal handler, how far it
/// is to those of rbp and rbx, in bytes; rip's is the word behind rsp's (`struct sigcontext_64` in
/// Linux's `arch/x86/include/uapi/asm/sigcontext.h`).
pub const SAVED_RBP: i64 = -40;
/// As [`SAVED_RBP`], for rbx.
pub const SAVED_RBX: i64 = -32;
