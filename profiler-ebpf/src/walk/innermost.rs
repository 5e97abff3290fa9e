//! Innermost frames in code that keeps frame pointers: by the bytes at the address, where these tell more than the frame pointer.
//!
//! In: the frame that is looked at, in the scratch memory. Out: the rule to leave it by. What the bytes say is believed only if
//! the word it leads to follows a call ([`profiler_common::walk::arch::innermost`]).

use crate::{
    platform::{maps::Scratch, memory::UserMemory, subprog::subprog},
    walk::stack_memory::StackMemory,
};
use profiler_common::{
    abi::Rule,
    walk::{
        Memory,
        arch::{ends_in_call, innermost},
    },
};

subprog! {
    /// Whether a call ends at this address, plus one; `otherwise` where its bytes cannot be read.
    pub(crate) fn follows_call(address: u64, otherwise: bool) -> bool {
        let bytes = UserMemory.read::<1>(address.wrapping_sub(7));
        bytes.map_or(otherwise, |[bytes]| ends_in_call(bytes))
    }
}

subprog! {
    /// The rule for the innermost frame, which is in code that keeps frame pointers.
    pub(crate) fn innermost_rule(cpu_slot: u32) -> Option<Rule> {
        let walk = &Scratch::of(cpu_slot)?.walk;
        let frame = walk.frame();
        let [before, at] = UserMemory.read::<2>(frame.ip.wrapping_sub(8))?;
        let rule = innermost::rule(before, at)?;
        let place = frame.sp.wrapping_add(innermost::return_address_at(rule));
        let [word] = StackMemory(&walk.stack).read_upward::<1>(place)?;
        follows_call(word.wrapping_sub(1), false).then_some(rule)
    }
}
