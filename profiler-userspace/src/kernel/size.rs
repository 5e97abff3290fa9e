//! Sizes of the maps: what fits into the memory limit, whatever the number of CPUs.
//!
//! Pure: numbers in, numbers out.

use super::Error;
use super::events::queue_bytes;
use profiler_common::abi::{Block, Counters, SCRATCH_BYTES, SIDES, Tally};

/// Numbers of entries of the maps that are sized at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// CPUs that may ever run.
    pub(super) cpus: u32,
    /// CPU slots: one for each event on each CPU.
    pub(super) cpu_slots: u32,
    /// Words of the bit map of targets.
    pub(super) target_words: u32,
    /// Tallies on one side.
    pub(super) tallies: u32,
    /// Blocks on one side of the stack store.
    pub(super) blocks: u32,
}

/// Memory of one event on one CPU: its counters and its scratch memory.
const CPU_SLOT_BYTES: u64 = (size_of::<Counters>() + SCRATCH_BYTES) as u64;

/// The positions of the queue of kernel events, announced processes, reported mappings, reported functions, descriptors of
/// runtimes, control, symbol name, constants; each map's page roundings and bookkeeping.
const FIXED_BYTES: u64 = 2 * 4096 + 32 * 1024 + 256 * 1024 + 128 * 1024 + 32 * 1024 + 16 * 4096;

/// The number of tallies on one side is a multiple of this, so that sides begin at a page boundary.
const TALLY_STEP: u32 = 1024;

/// The number of blocks on one side is a multiple of this: 64 KiB, four of the longest stacks.
const BLOCK_STEP: u32 = 1024;

/// With fewer blocks than this, draining would never rest.
const FEWEST_BLOCKS: u32 = 4 * BLOCK_STEP;

impl Sizes {
    /// The sizes for so many `events` on a machine with `cpus` possible CPUs and task IDs below `task_ids`, in
    /// at most `limit` bytes.
    pub(super) fn new(cpus: u32, events: u32, task_ids: u32, limit: u64) -> Result<Self, Error> {
        let target_words = task_ids.div_ceil(64).next_multiple_of(512);
        let mut sizes = Self {
            cpus,
            cpu_slots: cpus.saturating_mul(events),
            target_words,
            tallies: TALLY_STEP,
            blocks: FEWEST_BLOCKS,
        };
        if sizes.bytes() > limit {
            let least = sizes.bytes().div_ceil(1 << 20);
            return Err(Error::MapMemory { limit, least });
        }
        // Each CPU brings new stacks at the same rate; a machine with two needs no room for hundreds. Doubled
        // in turn until there is enough, or no more fits.
        let enough_tallies = (16 * TALLY_STEP).max(cpus.saturating_mul(TALLY_STEP));
        let enough_blocks = BLOCK_STEP * 96u32.max(cpus.saturating_mul(8));
        loop {
            let mut larger = sizes;
            if larger.blocks < enough_blocks {
                larger.blocks *= 2;
            }
            if larger.tallies < enough_tallies {
                larger.tallies *= 2;
            }
            if larger == sizes || larger.bytes() > limit {
                break;
            }
            sizes = larger;
        }
        // Memory that doubling left over goes to the stacks, which need it most.
        while sizes.blocks < enough_blocks {
            let larger = Self {
                blocks: sizes.blocks + BLOCK_STEP,
                ..sizes
            };
            if larger.bytes() > limit {
                break;
            }
            sizes = larger;
        }
        Ok(sizes)
    }

    /// Slots on one side of the tallies' index: twice the tallies, a power of two.
    pub(super) fn tally_slots(&self) -> u32 {
        (2 * self.tallies).next_power_of_two()
    }

    /// Slots on one side of the stacks' index: one a block, which is several a stack; a power of two.
    pub(super) fn stack_slots(&self) -> u32 {
        self.blocks.next_power_of_two()
    }

    /// The memory of all maps together, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let side = u64::from(self.tallies) * size_of::<Tally>() as u64
            + u64::from(self.tally_slots()) * 8
            + u64::from(self.blocks) * size_of::<Block>() as u64
            + u64::from(self.stack_slots()) * 8;
        FIXED_BYTES
            + u64::from(queue_bytes(self.cpus))
            + u64::from(self.cpu_slots) * CPU_SLOT_BYTES
            + u64::from(self.target_words) * 8
            + SIDES as u64 * side
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn every_machine_fits_the_default_limit() {
        // Each event takes as much again for each CPU; with more CPUs than this, --map-memory must be larger.
        let two = [1, 2, 4, 16, 64, 256].map(|cpus| (cpus, 2));
        let most = [(1, 8), (16, 8), (64, 8), (128, 4)];
        for (cpus, events) in two.into_iter().chain(most).chain([(512, 1)]) {
            let sizes = Sizes::new(cpus, events, 1 << 22, 32 * MIB).unwrap();
            assert!(sizes.bytes() <= 32 * MIB, "{cpus} CPUs: {sizes:?}");
            assert!(
                sizes.tallies >= 4 * TALLY_STEP && sizes.blocks >= 55 * BLOCK_STEP,
                "{cpus} CPUs: {sizes:?}"
            );
        }
    }

    #[test]
    fn more_cpus_get_more_memory() {
        let blocks = |limit| Sizes::new(256, 1, 1 << 22, limit).unwrap().blocks;
        assert!(blocks(128 * MIB) > blocks(32 * MIB));
    }

    #[test]
    fn each_side_begins_at_a_page_boundary() {
        for limit in [3 * MIB, 7 * MIB, 32 * MIB] {
            let sizes = Sizes::new(3, 1, 32768, limit).unwrap();
            for bytes in [
                sizes.tallies * 64,
                sizes.tally_slots() * 8,
                sizes.stack_slots() * 8,
            ] {
                assert_eq!(bytes % 4096, 0, "{sizes:?}");
            }
        }
    }

    #[test]
    fn a_limit_that_is_too_small_is_answered_with_one_that_suffices() {
        let Err(Error::MapMemory { least, .. }) = Sizes::new(64, 1, 1 << 22, MIB) else {
            panic!("one MiB cannot be enough for 64 CPUs");
        };
        assert!(Sizes::new(64, 1, 1 << 22, least * MIB).is_ok());
    }
}
