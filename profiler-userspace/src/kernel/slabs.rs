//! Table memory: slabs that are made when they are needed, or a little before.
//!
//! In: words to store. Out: their place, by which the kernel half finds them. Never takes more than its
//! limit.

use super::shared::{PAGE_BYTES, Shared, map};
use super::{Error, Result, errors};
use aya::maps::{Array, ArrayOfMaps, IterableMap as _, Map, MapData, MapError};
use profiler_common::abi::{SLAB_BITS, SLAB_WORDS, slab_of};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};

/// The inner map, as the kernel half declares it: one value, which is the whole slab.
type SlabMap = Array<MapData, [u32; SLAB_WORDS]>;

/// The outer map.
type Outer = ArrayOfMaps<MapData, SlabMap>;

/// `BPF_F_MMAPABLE` (`include/uapi/linux/bpf.h`).
const MAPPABLE: u32 = 1 << 10;

/// Bytes of one slab.
pub(super) const SLAB_BYTES: u64 = (SLAB_WORDS * 4) as u64;

/// Words are stored in pairs, being written eight bytes at a time.
const PAIR: u32 = 2;

/// Words of a page of memory.
const PAGE_WORDS: u32 = (PAGE_BYTES / size_of::<u32>()) as u32;

/// So many words are mapped at a time at least, where so many are left in a slab.
const WINDOW_WORDS: u32 = 16 * PAGE_WORDS;

/// The most threads that make slabs for one table. The kernel lets each wait until no program can still see what was
/// there before (`maybe_wait_bpf_programs` in `kernel/bpf/syscall.c`), some 10 ms; those that wait at the same time wait
/// together.
const MAX_MAKERS: usize = 8;

/// All slabs.
pub(super) struct Slabs {
    /// The outer map. Programs that are still to be loaded name it by this very descriptor.
    _outer: Outer,
    /// The same, by a descriptor that threads can have copies of.
    handle: OwnedFd,
    slabs: Vec<SlabState>,
    /// How many may be there.
    most: usize,
    coming: Vec<JoinHandle<Made>>,
    /// The part of a slab that was stored in last: the next words are mostly stored behind these.
    window: Option<Window>,
    /// Stands in the places of slabs that were given back: elements of such a map cannot be deleted through aya.
    stand_in: Option<SlabMap>,
}

/// A part of a slab, mapped. To map a slab as a whole takes 0.1 ms: the kernel enters each of its pages.
struct Window {
    /// Number of the slab.
    slab: usize,
    /// The first word.
    first: u32,
    shared: Shared,
}

impl Window {
    /// The words of a window in which a part of a slab is to be stored.
    fn around(part: &Range<u32>) -> Range<u32> {
        let start = part.start / PAGE_WORDS * PAGE_WORDS;
        let end = part.end.max(start + WINDOW_WORDS);
        start..end.next_multiple_of(PAGE_WORDS).min(SLAB_WORDS as u32)
    }

    /// The pairs of a part of a slab, which begins with the first word of a pair; none if it is not mapped here.
    fn pairs(&self, slab: usize, part: &Range<u32>) -> Option<&[AtomicU64]> {
        let from = part.start.checked_sub(self.first)? / PAIR;
        let pairs = (part.end - part.start).div_ceil(PAIR);
        let all = self.shared.words();
        let found = all.get(from as usize..(from + pairs) as usize);
        found.filter(|_| slab == self.slab)
    }
}

/// Where a slab is, or may be.
enum SlabState {
    /// Nothing is there.
    Empty,
    /// A thread is making it.
    Coming,
    There(Slab),
}

struct Slab {
    map: SlabMap,
    /// Free words, in order, no two parts touching.
    free: Vec<Range<u32>>,
}

/// The numbers of slabs that were to be made, and what came of each.
type Made = Vec<(usize, Result<SlabMap>)>;

/// Words that were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredWords {
    place: u32,
    words: u32,
}

impl StoredWords {
    /// Where the first word is.
    pub(super) fn place(&self) -> u32 {
        self.place
    }
}

impl Slabs {
    /// None yet; but the first is on its way.
    pub(super) fn new(outer: MapData) -> Result<Self> {
        let handle = outer.fd().as_fd().try_clone_to_owned();
        let handle = handle.map_err(|error| not_made(MapError::IoError(error)))?;
        let outer = Outer::try_from(Map::ArrayOfMaps(outer)).map_err(not_made)?;
        let mut slabs = Self {
            slabs: (0..outer.len()).map(|_| SlabState::Empty).collect(),
            most: outer.len() as usize,
            _outer: outer,
            handle,
            coming: Vec::new(),
            window: None,
            stand_in: None,
        };
        slabs.expect(1);
        Ok(slabs)
    }

    /// Memory limit of the slabs, in bytes.
    pub(super) fn limit(&self) -> u64 {
        self.most as u64 * SLAB_BYTES
    }

    /// Has no more slabs made than there are.
    pub(super) fn stop_growing(&mut self) {
        self.most = self.taken().max(1);
    }

    /// How many are there, or on their way.
    fn taken(&self) -> usize {
        let is_taken = |place: &&SlabState| !matches!(place, SlabState::Empty);
        self.slabs.iter().filter(is_taken).count()
    }

    /// Memory of the slabs, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.taken() as u64 * SLAB_BYTES
    }

    /// Makes slabs for so many words that will be stored, as far as there is room. Does not wait for them.
    pub(super) fn expect(&mut self, words: usize) {
        let free = |place: &SlabState| match place {
            SlabState::There(slab) => slab.free.iter().map(|part| part.end - part.start).max(),
            SlabState::Empty | SlabState::Coming => None,
        };
        let largest = self.slabs.iter().filter_map(free).max().unwrap_or(0) as usize;
        // Small tables share a slab with others.
        if words <= largest || words < SLAB_WORDS / 2 && !self.coming.is_empty() {
            return;
        }
        // Slabs that were given back, or expected in vain, come first.
        let is_free = |place: &&SlabState| free(place) == Some(SLAB_WORDS as u32);
        let there = self.slabs.iter().filter(is_free).count();
        let numbers: Vec<usize> = (0..self.slabs.len())
            .filter(|&number| matches!(self.slabs[number], SlabState::Empty))
            .take(words.div_ceil(SLAB_WORDS).saturating_sub(there))
            .take(self.most.saturating_sub(self.taken()))
            .collect();
        for some in numbers.chunks(numbers.len().div_ceil(MAX_MAKERS).max(1)) {
            let Ok(outer) = self.handle.try_clone() else {
                return;
            };
            let wanted = some.to_vec();
            let make = move || {
                let one = |number| (number, make(&outer, number));
                wanted.into_iter().map(one).collect()
            };
            // Without a thread, they are made when they are needed.
            if let Ok(maker) = Builder::new().name("unwind-slabs".into()).spawn(make) {
                self.coming.push(maker);
                for &number in some {
                    self.slabs[number] = SlabState::Coming;
                }
            }
        }
    }

    /// Stores words, at most [`SLAB_WORDS`], together; none if there is no room.
    pub(super) fn store(&mut self, words: &[u32]) -> Result<Option<StoredWords>> {
        let stored = self.store_parts(&[words])?;
        Ok(stored.and_then(|mut stored| stored.pop()))
    }

    /// Stores several parts, at most [`SLAB_WORDS`] in all, each of which can be given back alone; none if there is no room for all.
    pub(super) fn store_parts<W: AsRef<[u32]>>(
        &mut self,
        parts: &[W],
    ) -> Result<Option<Vec<StoredWords>>> {
        let words = |part: &W| (part.as_ref().len() as u32).next_multiple_of(PAIR);
        let wanted = parts.iter().map(words).sum();
        let Some((number, first)) = self.room(wanted)? else {
            return Ok(None);
        };
        let Some(pairs) = self.mapped(number, first..first + wanted)? else {
            return Ok(None);
        };
        let all = parts.iter().flat_map(|part| part.as_ref().chunks(2));
        for (place, pair) in pairs.iter().zip(all) {
            let high = pair.get(1).copied().unwrap_or(0);
            place.store(u64::from(pair[0]) | u64::from(high) << 32, Relaxed);
        }
        let mut place = (number as u32) << SLAB_BITS | first;
        let stored = parts.iter().map(|part| {
            let stored = StoredWords {
                place,
                words: words(part),
            };
            place += stored.words;
            stored
        });
        Ok(Some(stored.collect()))
    }

    /// So many words, which were stored, from a place on.
    pub(super) fn read(&mut self, place: u32, words: u32) -> Result<Vec<u32>> {
        let (number, first) = slab_of(place);
        let before = first % PAIR;
        let Some(pairs) = self.mapped(number as usize, first - before..first + words)? else {
            return Ok(Vec::new());
        };
        let all = pairs.iter().flat_map(|pair| {
            let pair = pair.load(Relaxed);
            [pair as u32, (pair >> 32) as u32]
        });
        Ok(all.skip(before as usize).take(words as usize).collect())
    }

    /// The pairs of a part of a slab, mapped; none where there is no such slab.
    fn mapped(&mut self, number: usize, part: Range<u32>) -> Result<Option<&[AtomicU64]>> {
        let is_mapped =
            { self.window.as_ref() }.is_some_and(|of| of.pairs(number, &part).is_some());
        if !is_mapped {
            let Some(SlabState::There(slab)) = self.slabs.get(number) else {
                return Ok(None);
            };
            let words = Window::around(&part);
            let (skip, count) = (words.start / PAIR, (words.end - words.start) / PAIR);
            let shared = map("SLABS", slab.map.map(), skip as usize, count as usize)?;
            self.window = Some(Window {
                slab: number,
                first: words.start,
                shared,
            });
        }
        Ok({ self.window.as_ref() }.and_then(|of| of.pairs(number, &part)))
    }

    /// Gives room back. Nobody may be reading it.
    pub(super) fn release(&mut self, stored: &StoredWords) {
        let (number, first) = slab_of(stored.place);
        if let Some(SlabState::There(slab)) = self.slabs.get_mut(number as usize) {
            give_back(&mut slab.free, first..first + stored.words);
        }
    }

    /// Gives slabs back to the kernel in which nothing is stored, all but one.
    pub(super) fn give_back(&mut self) -> Result<()> {
        let is_unused = |place: &SlabState| matches!(place, SlabState::There(slab) if slab.free == whole(SLAB_WORDS as u32));
        let unused = { 0..self.slabs.len() }.filter(|&number| is_unused(&self.slabs[number]));
        let unused: Vec<usize> = unused.skip(1).collect();
        if unused.is_empty() {
            return Ok(());
        }
        let stand_in = match self.stand_in.take() {
            Some(stand_in) => stand_in,
            None => SlabMap::create(1, MAPPABLE).map_err(not_made)?,
        };
        let stand_in = self.stand_in.insert(stand_in);
        let mut outer = outer(&self.handle)?;
        for number in unused {
            outer.set(number as u32, &*stand_in, 0).map_err(not_made)?;
            self.slabs[number] = SlabState::Empty;
            // A mapping keeps the memory.
            self.window.take_if(|window| window.slab == number);
        }
        Ok(())
    }

    /// Takes room for so many words, at most [`SLAB_WORDS`]: the slab and the word in it.
    fn room(&mut self, words: u32) -> Result<Option<(usize, u32)>> {
        loop {
            for (number, place) in self.slabs.iter_mut().enumerate() {
                if let SlabState::There(slab) = place
                    && let Some(first) = take(&mut slab.free, words)
                {
                    return Ok(Some((number, first)));
                }
            }
            let made = if let Some(maker) = self.coming.pop() {
                maker.join().unwrap_or_default()
            } else {
                let is_empty = |place: &SlabState| matches!(place, SlabState::Empty);
                let empty = self.slabs.iter().position(is_empty);
                let Some(number) = empty.filter(|_| self.taken() < self.most) else {
                    return Ok(None);
                };
                vec![(number, make(&self.handle, number))]
            };
            self.add(made)?;
        }
    }

    /// Takes in what was made; or the first reason why something was not.
    fn add(&mut self, made: Made) -> Result<()> {
        let mut result = Ok(());
        for (number, slab) in made {
            self.slabs[number] = match slab {
                Ok(map) => SlabState::There(Slab {
                    map,
                    free: whole(SLAB_WORDS as u32),
                }),
                Err(error) => {
                    result = result.and(Err(error));
                    SlabState::Empty
                }
            };
        }
        result
    }
}

/// Makes the slab of this number, and lets the kernel half see it.
fn make(handle: &OwnedFd, number: usize) -> Result<SlabMap> {
    let map = SlabMap::create(1, MAPPABLE).map_err(not_made)?;
    let mut outer = outer(handle)?;
    outer.set(number as u32, &map, 0).map_err(not_made)?;
    Ok(map)
}

/// The outer map, by a descriptor of its own.
fn outer(handle: &OwnedFd) -> Result<Outer> {
    let outer = handle.try_clone().map_err(MapError::IoError);
    let outer = outer.and_then(MapData::from_fd).map_err(not_made)?;
    Outer::try_from(Map::ArrayOfMaps(outer)).map_err(not_made)
}

fn not_made(error: MapError) -> Error {
    let source = match error {
        MapError::CreateError { io_error, .. } => io_error,
        MapError::SyscallError(error) => error.io_error,
        MapError::IoError(error) => error,
        other => io::Error::other(other),
    };
    errors::map("SLABS".to_owned(), source)
}

/// One free part: all words below `end`.
fn whole(end: u32) -> Vec<Range<u32>> {
    std::iter::once(0..end).collect()
}

/// Takes the first part that is large enough.
fn take(free: &mut Vec<Range<u32>>, words: u32) -> Option<u32> {
    let place = free
        .iter()
        .position(|part| part.end - part.start >= words)?;
    let first = free[place].start;
    free[place].start += words;
    if free[place].is_empty() {
        free.remove(place);
    }
    Some(first)
}

fn give_back(free: &mut Vec<Range<u32>>, part: Range<u32>) {
    let place = free.partition_point(|other| other.start < part.start);
    free.insert(place, part);
    free.dedup_by(|next, before| {
        let touches = before.end == next.start;
        if touches {
            before.end = next.end;
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        /// Whatever is taken and given back, no two hold the same words, and in the end all are free.
        #[test]
        fn a_slab_range_has_one_owner(sizes in proptest::collection::vec(1u32..200, 1..60), order in proptest::collection::vec(0usize..60, 60)) {
            let mut free = whole(4096);
            let mut held: Vec<Range<u32>> = Vec::new();
            for (&size, &choice) in sizes.iter().zip(&order) {
                if let Some(first) = take(&mut free, size) {
                    let part = first..first + size;
                    prop_assert!(held.iter().all(|other| other.end <= part.start || part.end <= other.start));
                    held.push(part);
                }
                if choice % 3 == 0 && !held.is_empty() {
                    give_back(&mut free, held.swap_remove(choice % held.len()));
                }
            }
            for part in held {
                give_back(&mut free, part);
            }
            prop_assert_eq!(free, whole(4096));
        }
    }

    #[test]
    fn a_window_is_of_whole_pages_within_the_slab() {
        let slab = SLAB_WORDS as u32;
        assert_eq!(Window::around(&(0..2)), 0..WINDOW_WORDS);
        let part = PAGE_WORDS + 2..PAGE_WORDS + 4;
        assert_eq!(Window::around(&part), PAGE_WORDS..PAGE_WORDS + WINDOW_WORDS);
        let large = PAGE_WORDS + 2..PAGE_WORDS * 40 + 2;
        assert_eq!(Window::around(&large), PAGE_WORDS..PAGE_WORDS * 41);
        assert_eq!(Window::around(&(slab - 2..slab)), slab - PAGE_WORDS..slab);
        assert_eq!(Window::around(&(0..slab)), 0..slab);
    }

    #[test]
    fn a_table_that_does_not_fit_takes_no_slab() {
        let mut free = vec![0..8, 16..20];
        assert_eq!(take(&mut free, 9), None);
        assert_eq!(free, [0..8, 16..20]);
        assert_eq!(take(&mut free, 8), Some(0));
        assert_eq!(free, std::slice::from_ref(&(16..20)));
    }
}
