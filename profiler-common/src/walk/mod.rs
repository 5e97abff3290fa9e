//! The types of the stack walk, and its single steps.
//!
//! A step goes from a frame's registers to its caller's, or says why there is none. Steps read memory only
//! through [`Memory`], so the same step runs in the kernel, in tests over a slice, and over captured stacks.
//! Loops are the kernel half's business, because the verifier limits them.

pub mod ahead;
pub mod bisect;
pub mod frame_pointer;
pub mod guess;
pub mod maple;
pub mod native;
#[cfg(test)]
mod testing;
pub mod x86_64;

pub use x86_64 as arch;

use crate::abi::StackEnd;

/// The memory of the process whose stack is walked.
pub trait Memory {
    /// `N` consecutive words at `address`; none if any of them cannot be read.
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]>;

    /// As [`read`](Self::read), where words above these are likely to be read next, and this way: return addresses.
    #[inline(always)]
    fn read_upward<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        self.read(address)
    }
}

/// Registers of a frame, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The instruction pointer: where execution is (first frame) or will resume (all others).
    pub ip: u64,
    /// The stack pointer, or a lower bound of it.
    pub sp: u64,
    /// The frame pointer, or whatever the program keeps in that register.
    pub fp: u64,
}

/// The outcome of a step; `F` is what this kind of step knows of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<F = Registers> {
    /// The caller.
    Caller(F),
    /// No caller, for this reason.
    End(StackEnd),
}

/// The end of the address range of processes, with the largest page tables.
const USER_ADDRESS_END: u64 = 1 << 56;

/// The lowest address at which Linux lets a process map code, by default (`vm.mmap_min_addr`).
const USER_ADDRESS_START: u64 = 1 << 12;

/// Whether `address` may be code of a user process. Stack memory may hold anything; kernel addresses and
/// small numbers must not pass.
#[inline(always)]
pub const fn is_user_address(address: u64) -> bool {
    address >= USER_ADDRESS_START && address < USER_ADDRESS_END
}
