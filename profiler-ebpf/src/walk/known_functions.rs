//! Keeps functions of runtimes by return address, in the sets of rules of return addresses.
//!
//! In: a function that was found at a return address, or the address. Out: the function, in the same state of the process's memory.
//! Never: says whether it is still there; its runtime does.

use crate::{
    platform::maps::Scratch,
    walk::scratch::{RETURN_SETS, ReturnRule, ReturnRules},
};
use profiler_common::{
    abi::FrameWord,
    runtime::{ChainFrame, RuntimeKind},
};

/// The set of a return address.
#[inline(always)]
pub(crate) fn set(scratch: &'static Scratch, address: u64) -> &'static ReturnRules {
    &scratch.returns[(address ^ address >> 8) as usize & (RETURN_SETS - 1)]
}

/// Keeps the function at a return address, in code of a runtime's own, and how many bytes above the frame's its caller's stack
/// pointer is. It takes the whole set.
#[inline(always)]
pub(crate) fn keep(
    scratch: &'static Scratch,
    address: u64,
    kind: RuntimeKind,
    frame: &ChainFrame,
    bytes: u64,
) {
    let state = scratch.walk.memory_state.load();
    if state == 0 {
        return;
    }
    let ReturnRules([first, second]) = set(scratch, address);
    first.address.store(address);
    first.memory_state.store(state);
    first.rule.store(ReturnRule::KNOWN_FUNCTION);
    first.runtime.store(kind as u64);
    let function = FrameWord::function(kind, frame.function, frame.check);
    second.address.store(function.0);
    second.memory_state.store(0);
    second
        .rule
        .store(FrameWord::position(frame.check, frame.position).0);
    second.runtime.store(bytes);
}

/// A function that was [kept](keep), of the runtime with this number.
pub(crate) struct KnownFunction {
    pub(crate) kind: u64,
    pub(crate) function: ChainFrame,
    pub(crate) bytes: u64,
}

/// Whether one is kept for this return address.
#[inline(always)]
pub(crate) fn is_known(scratch: &'static Scratch, address: u64) -> bool {
    let ReturnRules([first, _]) = set(scratch, address);
    first.address.load() == address
        && first.memory_state.load() == scratch.walk.memory_state.load()
        && first.rule.load() == ReturnRule::KNOWN_FUNCTION
}

/// That for a return address.
#[inline(always)]
pub(crate) fn find(scratch: &'static Scratch, address: u64) -> Option<KnownFunction> {
    if !is_known(scratch, address) {
        return None;
    }
    let ReturnRules([first, second]) = set(scratch, address);
    let function = FrameWord(second.address.load());
    let position = FrameWord(second.rule.load());
    Some(KnownFunction {
        kind: first.runtime.load(),
        function: ChainFrame {
            function: function.function_address(),
            check: position.check_of(function),
            position: position.0 as u32,
            flags: ChainFrame::FRAME,
        },
        bytes: second.runtime.load(),
    })
}
