//! x86-64 specifics of a walk: registers, the layout of signal frames, and a few instructions.

mod call;
pub mod innermost;

pub use crate::abi::arch::{CFA_AT_ENTRY, FP, REGISTERS, RETURNS_BY_SAVED, SAVED, SP};
pub use call::ends_in_call;

/// The distance in bytes from rsp to rbp among the registers the kernel saves for a signal handler; rip is
/// the word after rsp (`struct sigcontext_64` in Linux's `arch/x86/include/uapi/asm/sigcontext.h`).
pub const FP_FROM_STORED_SP: i64 = -40;
/// As [`FP_FROM_STORED_SP`], for rbx.
pub const SAVED_FROM_STORED_SP: i64 = -32;
