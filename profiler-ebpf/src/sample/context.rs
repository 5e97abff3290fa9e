//! Context of a firing: determined once and kept in the scratch memory of the CPU slot.

use crate::{
    platform::{
        config::config,
        maps::{SCRATCH, Scratch},
        subprog::Scalar as _,
    },
    task::{self, Ids},
};

/// Process, time and CPU slot of a firing.
#[derive(Clone, Copy)]
pub(crate) struct SampleContext {
    pub(crate) ids: Ids,
    pub(crate) incarnation: u64,
    /// Slot whose counters and scratch memory are used.
    pub(crate) cpu_slot: u32,
    /// When the firing began.
    pub(crate) now: u64,
}

impl SampleContext {
    /// The context of the running task.
    #[inline(always)]
    pub(crate) fn new(cpu_slot: u32, ids: Ids, now: u64) -> Self {
        Self {
            ids,
            incarnation: if ids.tid == 0 { 0 } else { task::incarnation() },
            cpu_slot,
            now,
        }
    }

    /// Stores it in the slot's scratch memory, where [`of`](Self::of) finds it. Only for a firing that has claimed that
    /// memory or whose slot has no other firing meanwhile.
    #[inline(always)]
    pub(crate) fn keep(self) {
        if let Some(Scratch { context, .. }) = Scratch::of(self.cpu_slot) {
            context.ids.store(self.ids.into_word());
            context.incarnation.store(self.incarnation);
            context.now.store(self.now);
        }
    }

    /// The context of the firing that uses the slot.
    #[inline(always)]
    pub(crate) fn of(cpu_slot: u32) -> Option<Self> {
        let Scratch { context, .. } = Scratch::of(cpu_slot)?;
        Some(Self {
            ids: Ids::from_word(context.ids.load()),
            incarnation: context.incarnation.load(),
            cpu_slot,
            now: context.now.load(),
        })
    }
}

/// An event's CPU slot on this CPU: its counters, and its scratch memory.
#[inline(always)]
pub(crate) fn cpu_slot(event: u32) -> u32 {
    let cpu = task::cpu();
    if event == 0 {
        cpu
    } else {
        cpu.wrapping_add(event.wrapping_mul(config!(cpus)))
    }
}

/// The CPU slot of switches on this CPU.
#[inline(always)]
pub(crate) fn switch_cpu_slot() -> u32 {
    task::cpu().wrapping_add(config!(switch_cpu_slots))
}

/// Claims the slot's scratch memory, for firings that may be interrupted or moved on their CPU; false if an interrupted
/// firing has it. To be returned by [`release`].
#[inline(always)]
pub(crate) fn claim(cpu_slot: u32) -> bool {
    SCRATCH
        .get(cpu_slot)
        .is_some_and(|scratch| scratch.taken.take(1))
}

/// Returns the slot's scratch memory.
#[inline(always)]
pub(crate) fn release(cpu_slot: u32) {
    if let Some(scratch) = SCRATCH.get(cpu_slot) {
        scratch.taken.store(0);
    }
}

/// Records that firings on this CPU slot interrupt programs at the first instruction of a function. This never changes,
/// because a CPU slot is of one event and its firings are alike.
#[inline(always)]
pub(crate) fn at_entry(cpu_slot: u32) {
    if let Some(scratch) = SCRATCH.get(cpu_slot) {
        scratch.walk.at_entry.store(1);
    }
}
