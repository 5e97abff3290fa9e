//! Leaves code of a runtime's own that no unwind rows lead out of: what it made, and what its file's rows are wrong about.
//!
//! In: the frame that is looked at. Out: in its place, its caller. Never: knows whose code it is; the [`table`](super::table) asks
//! each owner.

use super::{
    describe, known, meet,
    table::{CODE_OWNERS, anchor, leave_code_of, stack_pointer_of},
};
use crate::{
    platform::{
        maps::{RUNTIMES, Scratch},
        subprog::subprog,
    },
    walk::code_cache,
};
use profiler_common::{abi::CodeState, walk::is_user_address};

/// Replaces the frame, in code without rows, by its caller, if a runtime made that code.
#[inline(always)]
pub(crate) fn leave(cpu_slot: u32, scratch: &'static Scratch, is_first: bool) -> bool {
    // The first descriptor is no file's, and says which runtimes files have.
    let kinds = RUNTIMES.get(0).map_or(0, |words| words[0].load());
    if kinds & CODE_OWNERS == 0 {
        return false;
    }
    // Which object the runtime lies in is found here, because that needs more stack than is left further down.
    let is_known = known(scratch).is_some_and(|known| known.runtime.load() != 0);
    if !is_known && (!is_first || find_runtime(cpu_slot, scratch).is_none()) {
        return false;
    }
    leave_owned_code(cpu_slot)
}

subprog! {
    /// See [`leave`].
    fn leave_owned_code(cpu_slot: u32) -> bool {
        let Some(scratch) = Scratch::of(cpu_slot) else {
            return false;
        };
        let kind = known(scratch).and_then(|known| {
            describe(&scratch.chains, known.runtime.load() as u32, known.bias.load())
        });
        kind.is_some_and(|kind| leave_code_of(kind, cpu_slot))
    }
}

subprog! {
    /// An address in the file of the runtime whose code the innermost frame is in, by the registers; zero if there is none.
    fn find_anchor(cpu_slot: u32) -> u64 {
        let address = Scratch::of(cpu_slot).and_then(|scratch| {
            let registers = &scratch.walk.registers;
            anchor(|number| registers[usize::from(number & 15)].load())
        });
        address.unwrap_or(0)
    }
}

/// Finds out which object the runtime lies in.
#[inline(always)]
fn find_runtime(cpu_slot: u32, scratch: &'static Scratch) -> Option<()> {
    let address = find_anchor(cpu_slot);
    if !is_user_address(address) {
        return None;
    }
    let found = code_cache::look_up(cpu_slot, scratch, address)?;
    let is_runtime_s = CodeState(found.kind.load()).runtime() != 0;
    meet(scratch).filter(|_| is_runtime_s)?;
    Some(())
}

subprog! {
    /// Sets the stack pointer of the innermost frame, at an address of its object's own, where that object's runtime says that rows
    /// are wrong.
    pub(crate) fn settle_first(cpu_slot: u32, address: u64) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            settle(scratch, address);
        }
    }
}

#[inline(always)]
fn settle(scratch: &'static Scratch, address: u64) -> Option<()> {
    let (descriptor, bias) = meet(scratch)?;
    let kind = describe(&scratch.chains, descriptor, bias)?;
    let sp = stack_pointer_of(kind, scratch, address)?;
    scratch.walk.set_sp(sp);
    Some(())
}
