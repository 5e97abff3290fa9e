//! The registers of x86-64 that are followed from a function to its caller.
//!
//! In: DWARF numbers. Out: places in [`State::saved`](crate::unwind::program::State::saved). Never: rules.

use profiler_common::walk::x86_64::{FP as RBP, SAVED as RBX, SP as RSP};

/// The column of the return address.
pub(in crate::unwind) const RETURN_ADDRESS: u16 = 16;

/// How many registers are followed.
pub(in crate::unwind) const FOLLOWED: usize = 4;

/// The frame pointer's index.
pub(super) const FP: usize = 0;
/// The index of rbx.
pub(super) const BX: usize = 1;
/// The stack pointer's index.
pub(super) const SP: usize = 2;
/// The return address's index.
pub(super) const RA: usize = 3;

/// The index of a register among the followed ones, if it is one.
pub(in crate::unwind) const fn followed(register: u16) -> Option<usize> {
    const FP_REGISTER: u16 = RBP as u16;
    const BX_REGISTER: u16 = RBX as u16;
    const SP_REGISTER: u16 = RSP as u16;
    match register {
        FP_REGISTER => Some(FP),
        BX_REGISTER => Some(BX),
        SP_REGISTER => Some(SP),
        RETURN_ADDRESS => Some(RA),
        _ => None,
    }
}
