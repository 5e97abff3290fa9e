//! One call, as the interpreter keeps it.

use super::{
    function,
    layout::{NEXT, at},
};
use crate::runtime::Process;

/// A `CallInfo`.
pub(super) struct Call {
    pub(super) function: u64,
    pub(super) previous: u64,
    /// One that was used before, or is used next.
    pub(super) next: u64,
    /// The instruction behind the one that was saved last; of functions written in C, anything.
    pub(super) instruction: u64,
    pub(super) status: u64,
}

impl Call {
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        // `callstatus` is last.
        let place = process.descriptor(at::CALL_STATUS);
        if !process.fetch(address, place.wrapping_add(8)) {
            return None;
        }
        Some(Self {
            function: process.fetched(0),
            previous: process.fetched(2),
            next: process.fetched(NEXT),
            instruction: process.fetched(process.descriptor(at::CALL_INSTRUCTION) as usize),
            status: process.fetched_at(place) >> (process.descriptor(at::STATUS_SHIFT) & 63)
                & 0xffff,
        })
    }

    /// Whether the loop was called for it.
    #[inline(always)]
    pub(super) fn is_fresh(&self, process: &impl Process) -> bool {
        self.status & process.descriptor(at::FRESH) != 0
    }

    /// Whether it is that of a function written in Lua.
    #[inline(always)]
    pub(super) fn is_of_lua(&self, process: &impl Process) -> bool {
        function::proto_of(process, self.function).is_some()
    }
}
