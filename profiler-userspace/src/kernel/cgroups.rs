//! The table of cgroups, on both sides of the boundary.
//!
//! In: IDs of cgroups, and verdicts on them. Out: their numbers, by the hash that the kernel half uses.

use super::Result;
use super::shared::{Shared, map};
use aya::maps::MapData;
use profiler_common::abi::{CGROUP_SLOTS, CgroupSlot, CgroupState};
use profiler_common::intern::{Hash, PROBES};
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

const WORDS: usize = size_of::<CgroupSlot>() / 8;

/// The table.
pub(super) struct CgroupTable {
    slots: Shared,
    seed: u64,
}

impl CgroupTable {
    pub(super) fn new(slots: &MapData, seed: u64) -> Result<Self> {
        let slots = map("CGROUPS", slots, 0, CGROUP_SLOTS as usize * WORDS)?;
        Ok(Self { slots, seed })
    }

    fn slot(&self, number: u16) -> Option<&[AtomicU64]> {
        let place = usize::from(number).checked_sub(1)?;
        self.slots.words().chunks_exact(WORDS).nth(place)
    }

    /// The ID of the cgroup of this number; none if no cgroup has it.
    pub(super) fn id(&self, number: u16) -> Option<u64> {
        let id = self.slot(number)?[offset_of!(CgroupSlot, id) / 8].load(SeqCst);
        (id != 0).then_some(id)
    }

    /// The number of the cgroup of this ID, which it is given if it has none. None if there is no room.
    pub(super) fn number(&self, id: u64) -> Option<u16> {
        let hash = Hash::new(self.seed).with(id);
        (0..PROBES).find_map(|probe| {
            let number = u16::try_from(hash.slot(probe, CGROUP_SLOTS - 1) + 1).ok()?;
            let word = &self.slot(number)?[offset_of!(CgroupSlot, id) / 8];
            match word.compare_exchange(0, id, SeqCst, SeqCst) {
                Ok(_) => Some(number),
                Err(there) => (there == id).then_some(number),
            }
        })
    }

    /// Notes that the cgroup of this number is known, and whether it is wanted.
    pub(super) fn decide(&self, number: u16, is_wanted: bool) {
        let Some(slot) = self.slot(number) else {
            return;
        };
        let unwanted = if is_wanted {
            0
        } else {
            CgroupState::UNWANTED.0
        };
        slot[offset_of!(CgroupSlot, state) / 8]
            .fetch_or(CgroupState::REPORTED.0 | unwanted, Relaxed);
    }
}
