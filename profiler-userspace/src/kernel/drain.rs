//! Draining: flip the live sides, wait until nobody writes to the old ones, read them, clear them.

use super::shared::{Shared, map};
use super::{Kernel, Result, grace};
use crate::profile::raw::{RawProfile, RawSample, RawStack, StackIndex, Who};
use profiler_common::abi::{
    BLOCK_WORDS, Control, Header, KEY_WORDS, Live, RECORD_BLOCKS, Side, StackEnd, StackPosition,
    Switches, Tally,
};
use std::collections::{BTreeSet, HashMap};
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// What was read of the stack store so far: on each side, by position. A stack is read once for as
/// long as its side is not cleared.
#[derive(Default)]
pub(super) struct Drained {
    stacks: [HashMap<u32, StackIndex>; 2],
}

const TALLY_WORDS: usize = size_of::<Tally>() / 8;

/// Blocks in one page of memory: mappings begin at a page.
const PAGE_BLOCKS: usize = 4096 / (BLOCK_WORDS * 8);

/// Blocks looked at through one mapping: 512 KiB.
const WINDOW_BLOCKS: usize = 8192;

impl Kernel {
    /// Moves everything counted so far into `into`, while sampling goes on. Always drain into the same
    /// profile: what was read of the stacks before is known by its index there.
    pub fn drain(&mut self, into: &mut RawProfile) -> Result<()> {
        let old = self.live();
        let crowded = self.filled(old).1 * 2 > self.block_capacity();
        let stacks = if crowded {
            1 - old.stacks()
        } else {
            old.stacks()
        };
        self.control.words()[LIVE].store(Live::new(1 - old.tallies(), stacks).0, SeqCst);
        grace::wait(self.books.words())?;
        self.read_side(old, into)?;
        self.clear_tallies(old.tallies())?;
        if crowded {
            self.clear_stacks(old.stacks())?;
        }
        Ok(())
    }

    /// Moves the rest into `into`, after [`Kernel::detach`].
    pub fn drain_rest(&mut self, into: &mut RawProfile) -> Result<()> {
        self.read_side(self.live(), into)
    }

    /// Whether either live side is so full that it should be drained.
    pub fn is_half_full(&self) -> bool {
        let (tallies, blocks) = self.filled(self.live());
        tallies * 2 > u64::from(self.sizes.tallies) || blocks * 2 > self.block_capacity()
    }

    fn live(&self) -> Live {
        Live(self.control.words()[LIVE].load(SeqCst))
    }

    /// Tallies and blocks of stacks in use.
    fn filled(&self, live: Live) -> (u64, u64) {
        let words = self.control.words();
        (
            words[tally_cursor(live.tallies())].load(Relaxed),
            words[stack_cursor(live.stacks())].load(Relaxed),
        )
    }

    fn block_capacity(&self) -> u64 {
        u64::from(self.sizes.blocks)
    }

    fn read_side(&mut self, side: Live, into: &mut RawProfile) -> Result<()> {
        let count = self.filled(side).0.min(u64::from(self.sizes.tallies)) as usize;
        if count == 0 {
            return Ok(());
        }
        let skip = side.tallies() as usize * self.sizes.tallies as usize * TALLY_WORDS;
        let mapped = map("TALLIES", &self.maps.tallies, skip, count * TALLY_WORDS)?;
        let tallies: Vec<[u64; TALLY_WORDS]> = mapped
            .words()
            .chunks_exact(TALLY_WORDS)
            .map(|words| std::array::from_fn(|index| words[index].load(Relaxed)))
            .collect();
        drop(mapped);
        self.read_stacks(side.stacks(), &tallies, into)?;
        let known = &self.drained.stacks[side.stacks() as usize];
        let at = |position: StackPosition| Some(known[&position.block()?]);
        for tally in &tallies {
            let (weight, count) = (tally[0], tally[1]);
            let (who, user, kernel) = self.key(tally);
            into.add(RawSample {
                who,
                user: at(user),
                kernel: at(kernel),
                weight,
                count,
            });
        }
        Ok(())
    }

    /// Reads the stacks that `tallies` name and that are not known yet: window by window, so that
    /// little of the store is ever mapped.
    fn read_stacks(
        &mut self,
        side: u32,
        tallies: &[[u64; TALLY_WORDS]],
        into: &mut RawProfile,
    ) -> Result<()> {
        let known = &mut self.drained.stacks[side as usize];
        let new: BTreeSet<u32> = tallies
            .iter()
            .flat_map(positions)
            .filter_map(StackPosition::block)
            .filter(|block| !known.contains_key(block))
            .collect();
        let capacity = self.sizes.blocks as usize;
        let mut window = 0..0;
        let mut mapped: Option<Shared> = None;
        for block in new {
            let first = block as usize;
            if !window.contains(&first) {
                // A record may reach beyond the blocks that begin in the window.
                window = first - first % PAGE_BLOCKS..(first + WINDOW_BLOCKS).min(capacity);
                let end = (window.end + RECORD_BLOCKS).min(capacity);
                let skip = (side as usize * capacity + window.start) * BLOCK_WORDS;
                let words = (end - window.start) * BLOCK_WORDS;
                mapped = Some(map("STACKS", &self.maps.stacks, skip, words)?);
            }
            if let Some(shared) = &mapped {
                let start = (first - window.start) * BLOCK_WORDS;
                known.insert(block, into.intern(stack(&shared.words()[start..])));
            }
        }
        Ok(())
    }

    fn key(&self, tally: &[u64; TALLY_WORDS]) -> (Who, StackPosition, StackPosition) {
        let key: &[u64; KEY_WORDS] = tally[2..]
            .try_into()
            .expect("a tally is two words and a key");
        let [user, kernel] = positions(tally);
        let has = |switch| self.request.switches.has(switch);
        let mut comm = [0; 16];
        comm[..8].copy_from_slice(&key[4].to_ne_bytes());
        comm[8..].copy_from_slice(&key[5].to_ne_bytes());
        let who = Who {
            incarnation: key[0],
            tgid: key[1] as u32,
            tid: has(Switches::PER_THREAD).then_some((key[1] >> 32) as u32),
            cpu: has(Switches::PER_CPU).then_some(key[2] as u32),
            comm,
        };
        (who, user, kernel)
    }

    fn clear_tallies(&self, side: u32) -> Result<()> {
        let slots = self.sizes.tally_slots() as usize;
        clear(&map(
            "TALLY_INDEX",
            &self.maps.tally_index,
            side as usize * slots,
            slots,
        )?);
        self.control.words()[tally_cursor(side)].store(0, SeqCst);
        Ok(())
    }

    fn clear_stacks(&mut self, side: u32) -> Result<()> {
        let slots = self.sizes.stack_slots() as usize;
        clear(&map(
            "STACK_INDEX",
            &self.maps.stack_index,
            side as usize * slots,
            slots,
        )?);
        self.control.words()[stack_cursor(side)].store(0, SeqCst);
        self.drained.stacks[side as usize].clear();
        Ok(())
    }
}

const LIVE: usize = offset_of!(Control, live) / 8;

fn tally_cursor(side: u32) -> usize {
    (offset_of!(Control, tallies) + side as usize * size_of::<Side>()) / 8
}

fn stack_cursor(side: u32) -> usize {
    (offset_of!(Control, stacks) + side as usize * size_of::<Side>()) / 8
}

/// User and kernel stack of a tally: the third and the fourth word of its key hold them.
fn positions(tally: &[u64; TALLY_WORDS]) -> [StackPosition; 2] {
    [
        StackPosition((tally[4] >> 32) as u32),
        StackPosition(tally[5] as u32),
    ]
}

/// The stack whose record begins at the first word.
fn stack(record: &[AtomicU64]) -> RawStack {
    let header = Header(record[0].load(Relaxed));
    let frames = header.frames().min(record.len() - 1);
    RawStack {
        addresses: record[1..=frames]
            .iter()
            .map(|word| word.load(Relaxed))
            .collect(),
        end: header.end().unwrap_or(StackEnd::Unreadable),
        guessed: header.is_guessed(),
    }
}

fn clear(shared: &Shared) {
    for word in shared.words() {
        // Read first: most of an index is free, and reading leaves its cache lines as they are.
        if word.load(Relaxed) != 0 {
            word.store(0, Relaxed);
        }
    }
}
