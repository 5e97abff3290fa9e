//! What recognizing kernel stacks has the verifier check apart. See [`super`].
#![expect(
    unsafe_code,
    reason = "names that are kept are what makes functions global"
)]

use super::{keep_kernel_stack, position};
use crate::walk::kstack_cache;
use profiler_common::abi::{Live, StackPosition};

/// Where the kernel stack is stored that was recognized; none if the store is full.
#[inline(always)]
pub(crate) fn keep_recognized(cpu_slot: u32, live: Live) -> Option<StackPosition> {
    position(keep_recognized_stack(cpu_slot, live.0))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn keep_recognized_stack(cpu_slot: u32, live: u64) -> u32 {
    let live = Live(live);
    let kept = kstack_cache::keep(cpu_slot, live, |header| {
        StackPosition(keep_kernel_stack(cpu_slot, live.stacks(), header.0))
    });
    kept.unwrap_or(StackPosition::NONE).0
}

/// See [`kstack_cache::is_known`].
#[inline(always)]
pub(crate) fn is_known() -> bool {
    is_known_kernel_stack() != 0
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn is_known_kernel_stack() -> u32 {
    u32::from(kstack_cache::is_known())
}

/// See [`kstack_cache::learn`].
#[inline(always)]
pub(crate) fn learn(cpu_slot: u32) {
    learn_kernel_stack(cpu_slot);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn learn_kernel_stack(cpu_slot: u32) -> u32 {
    u32::from(kstack_cache::learn(cpu_slot).is_some())
}
