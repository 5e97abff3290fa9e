//! Leaves code of a runtime's own that no unwind rows lead out of: what it made, and what its file's rows are wrong about.
//!
//! In: the frame that is looked at. Out: in its place, its caller. Never: knows whose code it is; the [`table`](super::table) asks
//! each owner.

use super::{
    describe, known, meet,
    table::{CODE_OWNERS, anchor_of, known_to_caller_of, leave_code_of, stack_pointer_of},
};
use crate::{
    platform::{
        loops::{Turn, repeat},
        maps::{RUNTIMES, Scratch},
        subprog::subprog,
    },
    walk::{code_cache, known_functions, return_rules},
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::CodeState,
    runtime::RuntimeKind,
    walk::{arch::REGISTERS, is_user_address},
};

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
    if !is_known && (!is_first || !find_owner(cpu_slot, scratch, kinds)) {
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

/// Notes the functions that are known at the return addresses of the frame that is looked at and of its callers, up to the first
/// where none is.
#[inline(always)]
pub(crate) fn follow_known(cpu_slot: u32, scratch: &'static Scratch) {
    let frame = scratch.walk.frame();
    if known_functions::is_known(scratch, frame.ip) && frame.has_called() {
        follow_known_functions(cpu_slot);
    }
}

subprog! {
    /// See [`follow_known`], in code of the runtime that was met in the process.
    fn follow_known_functions(cpu_slot: u32) {
        if let Some(scratch) = Scratch::of(cpu_slot)
            && let Some(known) = known(scratch)
            && let Some(kind) =
                describe(&scratch.chains, known.runtime.load() as u32, known.bias.load())
        {
            repeat(return_rules::room(scratch), &mut Functions { scratch, kind });
        }
    }
}

/// Frames with known functions, one in each turn.
struct Functions {
    scratch: &'static Scratch,
    kind: u64,
}

impl Turn for Functions {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        match known_to_caller_of(self.kind, self.scratch) {
            Some(()) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        }
    }
}

subprog! {
    /// An address in the file of the runtime with this number, if it is its code that the innermost frame is in, by the registers;
    /// zero if there is none.
    fn find_anchor(cpu_slot: u32, kind: u64) -> u64 {
        let address = Scratch::of(cpu_slot).and_then(|scratch| {
            let registers = &scratch.walk.registers;
            anchor_of(kind, |number| registers[usize::from(number) & (REGISTERS - 1)].load())
        });
        address.unwrap_or(0)
    }
}

/// Makes of the table of runtimes what asks those that own code.
macro_rules! owners {
    ($($kind:ident $strings:ident $(, $door:ident $type:ident $($subprog:ident)+)+;)+) => {
        /// Finds out which object the runtime lies in, which is one of these kinds.
        #[inline(always)]
        fn find_owner(cpu_slot: u32, scratch: &'static Scratch, kinds: u64) -> bool {
            $(if CODE_OWNERS >> RuntimeKind::$kind as u64 & 1 != 0
                && kinds >> RuntimeKind::$kind as u64 & 1 != 0
                && find_runtime(cpu_slot, scratch, RuntimeKind::$kind as u64).is_some()
            {
                return true;
            })+
            false
        }
    };
}

profiler_common::runtimes!(owners);

/// Finds out which object the runtime lies in, if it is of this kind.
#[inline(always)]
fn find_runtime(cpu_slot: u32, scratch: &'static Scratch, kind: u64) -> Option<()> {
    let address = find_anchor(cpu_slot, kind);
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
