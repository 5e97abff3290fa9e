//! Drains: swaps the live sides, waits until nothing writes to the old ones, reads and clears them.

use super::counters::CounterMap;
use super::shared::{PAGE_BYTES, Shared, map};
use super::size::Sizes;
use super::{Request, Result};
use crate::profile::raw::{RawFrame, RawProfile, RawSample, RawStack, StackIndex, Waker, Who};
use aya::maps::MapData;
use foldhash::HashMap;
use profiler_common::abi::{
    BLOCK_WORDS, CROWDED_CGROUP, Control, Header, Live, RECORD_BLOCKS, SampleKey, Side, StackEnd,
    StackPosition, Switches, Tally, ThreadState, WaitPair,
};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// The stacks read so far, by epoch and position. A stack is read once for as long as its side is not
/// cleared.
#[derive(Default)]
pub(super) struct Drained {
    epochs: BTreeMap<u32, EpochRecords>,
    /// Stacks that threads off the CPU referred to when a side was last cleared. They may have come back since, and
    /// tallies that are yet to be read may refer to them.
    named: Blocks,
}

/// Blocks at which stacks begin, by epochs.
pub(super) type Blocks = BTreeMap<u32, BTreeSet<u32>>;

/// The records of an epoch, by their positions.
#[derive(Default)]
struct EpochRecords {
    stacks: HashMap<u32, Arc<RawStack>>,
    pairs: HashMap<u32, Pair>,
}

impl EpochRecords {
    fn has(&self, block: u32) -> bool {
        self.stacks.contains_key(&block) || self.pairs.contains_key(&block)
    }
}

/// A wait, and who ended it.
#[derive(Clone, Copy)]
struct Pair {
    waited: SampleKey,
    /// None if nobody was seen to.
    woke: Option<SampleKey>,
}

impl Drained {
    /// Forgets what nothing can refer to any more: all that is of none of the `whole` epochs, and that threads off the CPU name
    /// neither now nor did when a side was last cleared. One of them may sleep for days, beside thousands of stacks.
    fn forget(&mut self, whole: [u32; 2], named: Blocks) {
        let before = std::mem::replace(&mut self.named, named);
        let is_named = |epoch: &u32, block: &u32| {
            let has = |blocks: &Blocks| blocks.get(epoch).is_some_and(|of| of.contains(block));
            has(&self.named) || has(&before)
        };
        self.epochs.retain(|epoch, stored| {
            if whole.contains(epoch) {
                return true;
            }
            stored.stacks.retain(|block, _| is_named(epoch, block));
            stored.stacks.shrink_to_fit();
            // Tallies alone name them, which have been read.
            stored.pairs = HashMap::default();
            !stored.stacks.is_empty()
        });
    }

    fn find(&self, epoch: u32, position: StackPosition) -> Option<Arc<RawStack>> {
        let stored = &self.epochs[&epoch];
        Some(Arc::clone(&stored.stacks[&position.block()?]))
    }

    /// The wait that a key stands for, if it names a pair.
    fn pair(&self, key: &SampleKey) -> Option<Pair> {
        if key.stamp.thread_state() != ThreadState::Woken {
            return None;
        }
        Some(self.epochs[&key.stamp.epoch()].pairs[&key.kernel.block()?])
    }
}

const TALLY_WORDS: usize = size_of::<Tally>() / 8;

/// Blocks in one page of memory.
const PAGE_BLOCKS: usize = PAGE_BYTES / (BLOCK_WORDS * 8);

/// Blocks read through one mapping: 512 KiB.
const WINDOW_BLOCKS: usize = 8192;

/// The array maps that are mapped in pieces when they are drained.
pub(super) struct StoreMaps {
    pub(super) tallies: MapData,
    pub(super) tally_index: MapData,
    pub(super) stacks: MapData,
    pub(super) stack_index: MapData,
}

/// Tallies and stacks, which the kernel half fills.
pub(super) struct Store {
    /// The control map, in our memory for as long as we live.
    control: Shared,
    maps: StoreMaps,
    pub(super) sizes: Sizes,
    drained: Drained,
    /// Parts of each sample that are wanted.
    switches: Switches,
    /// Whether threads that are off the CPU, or in a call, name stacks.
    threads_name_stacks: bool,
    /// Firings that were read in cgroups for which there was no room.
    crowded: Cell<u64>,
}

impl Store {
    /// The store of these maps, nothing of which has been read.
    pub(super) fn new(control: Shared, maps: StoreMaps, sizes: Sizes, request: &Request) -> Self {
        Self {
            control,
            maps,
            sizes,
            drained: Drained::default(),
            switches: request.switches,
            threads_name_stacks: request.timed_weight().is_some(),
            crowded: Cell::new(0),
        }
    }

    /// How many firings were read that were in cgroups for which there was no room.
    pub(super) fn crowded(&self) -> u64 {
        self.crowded.get()
    }

    /// Has the kernel half know when the recording began.
    pub(super) fn begin(&self, now_ns: u64) {
        self.control.words()[offset_of!(Control, began) / 8].store(now_ns, SeqCst);
    }

    /// Has the kernel half look at about one wait of each thread in so many nanoseconds from now on, zero: at all; and presume
    /// such a gap between waits of a thread that was not seen to wait.
    pub(super) fn sample_waits(&self, period_ns: u64, first_gap_ns: u64) {
        let words = self.control.words();
        words[offset_of!(Control, first_gap) / 8].store(first_gap_ns, SeqCst);
        words[offset_of!(Control, wait_sample_period) / 8].store(period_ns, SeqCst);
    }

    /// Moves everything counted so far into `into`, while sampling goes on.
    /// `named`: the stacks that threads name which are off the CPU.
    pub(super) fn drain(
        &mut self,
        counters: &CounterMap,
        named: impl FnOnce() -> Blocks,
        into: &mut RawProfile,
    ) -> Result<()> {
        let old = self.live();
        let crowded = self.filled(old).1 * 2 > self.block_capacity();
        let epoch = old.epoch() + u32::from(crowded);
        self.control.words()[LIVE].store(Live::new(1 - old.tallies(), epoch).0, SeqCst);
        counters.wait()?;
        self.read_side(old, into)?;
        self.clear_tallies(old.tallies())?;
        if crowded {
            self.keep_stacks(old, named)?;
            self.clear_stacks(old.stacks())?;
        }
        Ok(())
    }

    /// Moves the rest into `into`, after everything was detached.
    pub(super) fn drain_rest(
        &mut self,
        counters: &CounterMap,
        into: &mut RawProfile,
    ) -> Result<()> {
        // A tracepoint's program may still run when it is detached.
        counters.wait()?;
        self.read_side(self.live(), into)
    }

    /// Whether either live side is full enough to be drained.
    pub(super) fn is_half_full(&self) -> bool {
        let (tallies, blocks) = self.filled(self.live());
        tallies * 2 > u64::from(self.sizes.tallies) || blocks * 2 > self.block_capacity()
    }

    pub(super) fn live(&self) -> Live {
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
        let keys: Vec<SampleKey> = tallies
            .iter()
            .map(|tally| SampleKey::from_words(&std::array::from_fn(|word| tally[word + 2])))
            .collect();
        self.read_stacks(&keys)?;
        let pairs = keys.iter().filter_map(|key| self.drained.pair(key));
        let paired = pairs.flat_map(|Pair { waited, woke }| [Some(waited), woke]);
        let paired: Vec<SampleKey> = paired.flatten().collect();
        self.read_stacks(&paired)?;
        for (tally, key) in tallies.iter().zip(&keys) {
            let (weight, count) = (tally[0], tally[1]);
            let sample = self.sample(key, weight, count, into);
            into.add_now(sample);
        }
        Ok(())
    }

    /// Before the side of `old` is cleared: reads what threads off the CPU may still refer to, and forgets
    /// what nothing can refer to any more.
    fn keep_stacks(&mut self, old: Live, named: impl FnOnce() -> Blocks) -> Result<()> {
        if !self.threads_name_stacks {
            self.drained.epochs.remove(&old.epoch());
            return Ok(());
        }
        let all = self.positions_of(old)?;
        self.read_positions(old.epoch(), all)?;
        let live = self.live().epoch();
        self.drained.forget([old.epoch(), live], named());
        Ok(())
    }

    /// Where one side's records begin.
    fn positions_of(&self, side: Live) -> Result<BTreeSet<u32>> {
        let capacity = self.sizes.blocks as usize;
        let filled = (self.filled(side).1 as usize).min(capacity);
        let skip = side.stacks() as usize * capacity * BLOCK_WORDS;
        let shared = map(
            "STACKS",
            &self.maps.stacks,
            skip,
            filled.max(1) * BLOCK_WORDS,
        )?;
        let mut positions = BTreeSet::new();
        let mut block = 0;
        while block < filled {
            positions.insert(block as u32);
            let header = Header(shared.words()[block * BLOCK_WORDS].load(Relaxed));
            block += Header::blocks(header.words() as u32) as usize;
        }
        Ok(positions)
    }

    /// Reads the stacks that `keys` name and that are not known yet.
    pub(super) fn read_stacks(&mut self, keys: &[SampleKey]) -> Result<()> {
        let mut wanted: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for key in keys {
            let blocks = [key.user, key.kernel].into_iter();
            let blocks = blocks.filter_map(StackPosition::block);
            wanted.entry(key.stamp.epoch()).or_default().extend(blocks);
        }
        for (epoch, blocks) in wanted {
            self.read_positions(epoch, blocks)?;
        }
        Ok(())
    }

    /// Reads the stacks of an epoch at `blocks` that are not known yet, through one small mapping after the
    /// other.
    fn read_positions(&mut self, epoch: u32, blocks: BTreeSet<u32>) -> Result<()> {
        let known = self.drained.epochs.entry(epoch).or_default();
        let side = epoch & 1;
        let new = blocks.into_iter().filter(|block| !known.has(*block));
        let new: Vec<u32> = new.collect();
        let capacity = self.sizes.blocks as usize;
        let mut window = 0..0;
        let mut mapped: Option<Shared> = None;
        for block in new {
            let first = block as usize;
            if !window.contains(&first) {
                // A record may extend beyond the blocks that begin in the window.
                window = first - first % PAGE_BLOCKS..(first + WINDOW_BLOCKS).min(capacity);
                let end = (window.end + RECORD_BLOCKS).min(capacity);
                let skip = (side as usize * capacity + window.start) * BLOCK_WORDS;
                let words = (end - window.start) * BLOCK_WORDS;
                mapped = Some(map("STACKS", &self.maps.stacks, skip, words)?);
            }
            if let Some(shared) = &mapped {
                let start = (first - window.start) * BLOCK_WORDS;
                let record = &shared.words()[start..];
                if Header(record[0].load(Relaxed)).is_pair() {
                    known.pairs.insert(block, pair(record));
                } else {
                    known.stacks.insert(block, Arc::new(stack(record)));
                }
            }
        }
        Ok(())
    }

    /// The sample of a key whose stacks have been read, with its weight and count; `into` takes the
    /// stacks.
    pub(super) fn sample(
        &self,
        key: &SampleKey,
        weight: u64,
        count: u64,
        into: &mut RawProfile,
    ) -> RawSample {
        if let Some(Pair { waited, woke }) = self.drained.pair(key) {
            let sample = self.sample(&waited, weight, count, into);
            return self.woken(sample, woke.as_ref(), into);
        }
        if key.cgroup == CROWDED_CGROUP {
            self.crowded.update(|firings| firings + count);
        }
        let (user, kernel) = self.stacks(key, into);
        RawSample {
            who: self.who(key),
            user,
            kernel,
            thread_state: key.stamp.thread_state(),
            event: key.stamp.event() as u8,
            waker: None,
            window: into.window,
            weight,
            count,
        }
    }

    /// A wait that has ended, with its waker if it was seen.
    pub(super) fn woken(
        &self,
        wait: RawSample,
        woke: Option<&SampleKey>,
        into: &mut RawProfile,
    ) -> RawSample {
        let waker = woke.map(|key| {
            let (user, kernel) = self.stacks(key, into);
            let who = self.who(key);
            into.waker(Waker { who, user, kernel })
        });
        RawSample {
            thread_state: ThreadState::Woken,
            waker,
            ..wait
        }
    }

    /// The user and the kernel stack of a key, which `into` takes.
    fn stacks(
        &self,
        key: &SampleKey,
        into: &mut RawProfile,
    ) -> (Option<StackIndex>, Option<StackIndex>) {
        let mut stack = |position| -> Option<StackIndex> {
            Some(into.intern(self.drained.find(key.stamp.epoch(), position)?))
        };
        (stack(key.user), stack(key.kernel))
    }

    /// Time that a thread had the CPU, which no stack belongs to.
    pub(super) fn ran(&self, key: &SampleKey, weight: u64) -> RawSample {
        RawSample {
            who: self.who(key),
            thread_state: ThreadState::Ran,
            event: key.stamp.event() as u8,
            weight,
            count: 1,
            ..RawSample::default()
        }
    }

    fn who(&self, key: &SampleKey) -> Who {
        let has = |switch| self.switches.has(switch);
        Who {
            incarnation: key.incarnation,
            tgid: key.tgid,
            tid: has(Switches::PER_THREAD).then_some(key.tid),
            cpu: has(Switches::PER_CPU).then_some(u32::from(key.cpu)),
            cgroup: key.cgroup,
            comm: key.comm,
        }
    }

    /// Appends a stack to the live side of the store, as the kernel half does. None if it is full.
    pub(super) fn append(&self, stack: &RawStack) -> Result<Option<StackPosition>> {
        // Stacks that were walked from outside hold nothing but addresses.
        let addresses: Vec<u64> = stack.frames.iter().filter_map(RawFrame::address).collect();
        let frames = u16::try_from(addresses.len()).unwrap_or(u16::MAX);
        let blocks = u64::from(Header::blocks(u32::from(frames)));
        let live: Live = self.live();
        let cursor = &self.control.words()[stack_cursor(live.stacks())];
        let block = cursor.fetch_add(blocks, SeqCst);
        if block + blocks > self.block_capacity() {
            return Ok(None);
        }
        let first = live.stacks() as usize * self.sizes.blocks as usize + block as usize;
        // Mappings begin at a page.
        let start = first - first % PAGE_BLOCKS;
        let words = (first - start + blocks as usize) * BLOCK_WORDS;
        let shared = map("STACKS", &self.maps.stacks, start * BLOCK_WORDS, words)?;
        let record = &shared.words()[(first - start) * BLOCK_WORDS..];
        let header = Header::new(frames, stack.end).with_fallbacks(stack.fallbacks);
        let contents = std::iter::once(header.0).chain(addresses.iter().copied());
        for (place, word) in record.iter().zip(contents.chain(std::iter::repeat(0))) {
            place.store(word, Relaxed);
        }
        Ok(Some(StackPosition::at(
            u32::try_from(block).unwrap_or(u32::MAX),
        )))
    }

    fn clear_tallies(&self, side: u32) -> Result<()> {
        let slots = self.sizes.tally_slots() as usize;
        clear("TALLY_INDEX", &self.maps.tally_index, slots, side)?;
        self.control.words()[tally_cursor(side)].store(0, SeqCst);
        Ok(())
    }

    fn clear_stacks(&self, side: u32) -> Result<()> {
        let slots = self.sizes.stack_slots() as usize;
        clear("STACK_INDEX", &self.maps.stack_index, slots, side)?;
        self.control.words()[stack_cursor(side)].store(0, SeqCst);
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

/// The keys whose record begins at the first word.
fn pair(record: &[AtomicU64]) -> Pair {
    let key = |from: usize| std::array::from_fn(|word| record[from + word].load(Relaxed));
    let waited = key(1 + offset_of!(WaitPair, waited) / 8);
    let woke = key(1 + offset_of!(WaitPair, woke) / 8);
    let was_seen = woke.iter().any(|word| *word != 0);
    Pair {
        waited: SampleKey::from_words(&waited),
        woke: was_seen.then(|| SampleKey::from_words(&woke)),
    }
}

/// The stack whose record begins at the first word.
fn stack(record: &[AtomicU64]) -> RawStack {
    let header = Header(record[0].load(Relaxed));
    let frames = header.words().min(record.len() - 1);
    let words: Vec<u64> = record[1..=frames]
        .iter()
        .map(|word| word.load(Relaxed))
        .collect();
    RawStack {
        frames: RawFrame::of_words(&words),
        end: header.end().unwrap_or(StackEnd::Unreadable),
        fallbacks: header.fallbacks().unwrap_or_default(),
        check: header.check(),
    }
}

fn clear(name: &'static str, index: &MapData, slots: usize, side: u32) -> Result<()> {
    for word in map(name, index, side as usize * slots, slots)?.words() {
        // Reading comes first: most of an index is free, and reading does not dirty its cache lines.
        if word.load(Relaxed) != 0 {
            word.store(0, Relaxed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_stacks(blocks: &[u32]) -> EpochRecords {
        let stack = Arc::new(RawStack {
            frames: Box::default(),
            end: StackEnd::Unreadable,
            fallbacks: Default::default(),
            check: 0,
        });
        let stacks = blocks.iter().map(|block| (*block, Arc::clone(&stack)));
        EpochRecords {
            stacks: stacks.collect(),
            ..EpochRecords::default()
        }
    }

    fn named(of: &[(u32, u32)]) -> Blocks {
        let mut named = Blocks::new();
        for &(epoch, block) in of {
            named.entry(epoch).or_default().insert(block);
        }
        named
    }

    fn left(drained: &Drained) -> Vec<(u32, u32)> {
        let epochs = drained.epochs.iter();
        let all = epochs.flat_map(|(epoch, of)| of.stacks.keys().map(|block| (*epoch, *block)));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn of_old_epochs_the_stacks_are_kept_that_threads_still_name() {
        let mut drained = Drained::default();
        for epoch in 0..4 {
            drained.epochs.insert(epoch, with_stacks(&[1, 4, 9]));
        }
        drained.forget([2, 3], named(&[(0, 4), (1, 9), (3, 1)]));
        let whole = [(2, 1), (2, 4), (2, 9), (3, 1), (3, 4), (3, 9)];
        assert_eq!(left(&drained), [&[(0, 4), (1, 9)], &whole[..]].concat());
        // A thread that named one may have come back since; what it was counted under is read at the next drain.
        drained.forget([2, 3], named(&[(0, 4)]));
        assert_eq!(left(&drained), [&[(0, 4), (1, 9)], &whole[..]].concat());
        drained.forget([3, 4], named(&[(0, 4)]));
        assert_eq!(left(&drained), [(0, 4), (3, 1), (3, 4), (3, 9)]);
        assert!(!drained.epochs.contains_key(&1));
    }
}
