//! The memory of a process that runs, as the code of a runtime sees it.
//!
//! In: a process ID. Out: words, as far as they can be read now. The process runs on meanwhile, so whatever is read here may be
//! torn: whoever reads asks for a function's check before and after. Objects that belong together lie together, so memory is read in
//! blocks, which are kept until they are forgotten.

use super::{Descriptor, scattered};
use foldhash::HashMap;
use profiler_common::runtime::{
    Described, FETCH_WORDS, FunctionInfo as _, Process, REMEMBERED_WORDS, RuntimeKind,
};
use profiler_common::walk::Memory;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// A process's memory, and the descriptor of a runtime in it.
#[derive(Debug)]
pub struct TargetMemory {
    tgid: u32,
    /// None if it has ended, or we may not.
    file: Option<File>,
    words: Descriptor,
    bias: u64,
    fetched: [Cell<u64>; FETCH_WORDS],
    remembered: [Cell<u64>; REMEMBERED_WORDS],
    blocks: RefCell<Blocks>,
}

/// Bytes of a block, which divide a page: as many as hardly take longer to read than a word. And how many are kept: 1 MiB.
pub(super) const BLOCK_BYTES: usize = 1024;
const MAX_BLOCKS: usize = 1024;

/// Blocks that were read, by their addresses; the oldest make room.
#[derive(Debug, Default)]
struct Blocks {
    places: HashMap<u64, usize>,
    /// The address of each, or [`NOWHERE`].
    addresses: Vec<u64>,
    bytes: Vec<[u8; BLOCK_BYTES]>,
    oldest: usize,
}

/// No block has this address.
const NOWHERE: u64 = u64::MAX;

impl Blocks {
    fn get(&self, address: u64) -> Option<&[u8; BLOCK_BYTES]> {
        self.bytes.get(*self.places.get(&address)?)
    }

    /// Has a block read, and keeps it.
    fn read(
        &mut self,
        address: u64,
        read: impl FnOnce(&mut [u8; BLOCK_BYTES]) -> Option<()>,
    ) -> Option<&[u8; BLOCK_BYTES]> {
        let place = if self.addresses.len() < MAX_BLOCKS {
            self.make_room(1);
            self.addresses.len() - 1
        } else {
            let place = self.oldest;
            self.oldest = (place + 1) % MAX_BLOCKS;
            self.places.remove(&self.addresses[place]);
            place
        };
        self.addresses[place] = NOWHERE;
        read(&mut self.bytes[place])?;
        self.keep(address, place);
        Some(&self.bytes[place])
    }

    /// Has blocks read that are not kept, as far as there is room for them beside the others. `read` fills one after the other, and says
    /// of each whether it did.
    fn read_all(
        &mut self,
        addresses: &mut Vec<u64>,
        read: impl FnOnce(&[u64], &mut [[u8; BLOCK_BYTES]]) -> Vec<bool>,
    ) {
        addresses.sort_unstable();
        addresses.dedup();
        addresses.retain(|address| !self.places.contains_key(address));
        addresses.truncate(MAX_BLOCKS - self.addresses.len());
        let first = self.addresses.len();
        self.make_room(addresses.len());
        let filled = read(addresses, &mut self.bytes[first..first + addresses.len()]);
        for (place, (address, is_filled)) in (first..).zip(addresses.iter().zip(filled)) {
            if is_filled {
                self.keep(*address, place);
            }
        }
    }

    /// Takes so many more places.
    fn make_room(&mut self, count: usize) {
        let places = self.addresses.len() + count;
        self.addresses.resize(places, NOWHERE);
        if self.bytes.len() < places {
            self.bytes.resize(places, [0; BLOCK_BYTES]);
        }
    }

    fn keep(&mut self, address: u64, place: usize) {
        self.addresses[place] = address;
        self.places.insert(address, place);
    }

    /// Forgets all, and keeps the room that they took.
    fn clear(&mut self) {
        self.places.clear();
        self.addresses.clear();
        self.oldest = 0;
    }
}

impl TargetMemory {
    /// That of a process by its ID.
    pub fn new(tgid: u32, words: Descriptor, bias: u64) -> Self {
        let file = File::open(format!("/proc/{tgid}/mem")).ok();
        Self::of(tgid, file, words, bias)
    }

    fn of(tgid: u32, file: Option<File>, words: Descriptor, bias: u64) -> Self {
        Self {
            tgid,
            file,
            words,
            bias,
            fetched: [const { Cell::new(0) }; _],
            remembered: [const { Cell::new(0) }; _],
            blocks: RefCell::default(),
        }
    }

    /// The memory of the same process for a runtime in it, with nothing that was read before but what is remembered of that runtime.
    #[must_use]
    pub fn again(self, words: &Descriptor, bias: u64) -> Self {
        if self.words == *words && self.bias == bias {
            self.forget();
            self
        } else {
            Self::of(self.tgid, self.file, *words, bias)
        }
    }

    /// Forgets what was read: the process may have changed it.
    pub fn forget(&self) {
        self.blocks.borrow_mut().clear();
    }

    /// Reads the blocks that these addresses are in together, so that reading there takes no system call of its own. What cannot be
    /// read so is read when it is asked for.
    pub fn read_ahead(&self, addresses: impl Iterator<Item = u64>) {
        if self.file.is_none() {
            return;
        }
        let of_block = |address: u64| address - address % BLOCK_BYTES as u64;
        let mut blocks: Vec<u64> = addresses.map(of_block).collect();
        self.blocks
            .borrow_mut()
            .read_all(&mut blocks, |blocks, into| {
                scattered::read(self.tgid, blocks, into)
            });
    }

    /// Forgets what was read if the process has ended, or become another program: then what was read ahead may be of another that has
    /// its ID. The file stays that of the first, and cannot be read any more.
    pub fn forget_if_gone(&self) {
        let any = self.blocks.borrow().places.keys().next().copied();
        let is_there = |address| {
            let file = self.file.as_ref();
            file.is_some_and(|file| file.read_exact_at(&mut [0], address).is_ok())
        };
        if any.is_some_and(|address| !is_there(address)) {
            self.forget();
        }
    }

    /// The check of the function at an address, if there is one.
    pub fn check(&self, kind: RuntimeKind, function: u64) -> Option<u32> {
        macro_rules! check {
            ($($kind:ident $strings:ident $(, $door:ident $type:ident $($subprog:ident)+)+;)+) => {
                match kind {
                    $(RuntimeKind::$kind => profiler_common::runtime::$kind::check(self, function),)+
                }
            };
        }
        profiler_common::runtimes!(check)
    }

    /// The word in a variable of the runtime's file, whose address a word of the descriptor says.
    pub fn variable(&self, index: usize) -> Option<u64> {
        let [word] = self.read(self.bias.wrapping_add(self.descriptor(index)))?;
        Some(word)
    }

    /// Copies bytes.
    pub fn copy(&self, address: u64, into: &mut [u8]) -> Option<()> {
        if into.len() > BLOCK_BYTES {
            return self.file.as_ref()?.read_exact_at(into, address).ok();
        }
        let (mut address, mut left) = (address, into);
        while !left.is_empty() {
            let skipped = (address % BLOCK_BYTES as u64) as usize;
            let (now, later) = left.split_at_mut(left.len().min(BLOCK_BYTES - skipped));
            self.copy_in_block(address, now)?;
            address = address.checked_add(now.len() as u64)?;
            left = later;
        }
        Some(())
    }

    /// Copies bytes of one block.
    fn copy_in_block(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let skipped = (address % BLOCK_BYTES as u64) as usize;
        let start = address - skipped as u64;
        let mut blocks = self.blocks.borrow_mut();
        let block = match blocks.get(start) {
            Some(block) => block,
            None => {
                let file = self.file.as_ref()?;
                blocks.read(start, |block| file.read_exact_at(block, start).ok())?
            }
        };
        into.copy_from_slice(&block[skipped..skipped + into.len()]);
        Some(())
    }
}

impl Memory for TargetMemory {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        self.copy(address, bytes.as_flattened_mut())?;
        Some(bytes.map(u64::from_le_bytes))
    }
}

impl Described for TargetMemory {
    fn descriptor(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }
}

impl Process for TargetMemory {
    fn bias(&self) -> u64 {
        self.bias
    }

    /// Not known from outside.
    fn thread_pointer(&self) -> u64 {
        0
    }

    /// Not known from outside.
    fn register(&self, _: u8) -> u64 {
        0
    }

    fn fetch(&self, address: u64, bytes: u64) -> bool {
        let mut buffer = [0; 8 * FETCH_WORDS];
        let copied = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| buffer.get_mut(..bytes))
            .and_then(|buffer| self.copy(address, buffer));
        for (word, bytes) in self.fetched.iter().zip(buffer.as_chunks().0) {
            word.set(u64::from_le_bytes(*bytes));
        }
        copied.is_some()
    }

    fn fetched(&self, index: usize) -> u64 {
        self.fetched.get(index).map_or(0, Cell::get)
    }

    fn remembered(&self, index: usize) -> u64 {
        self.remembered.get(index).map_or(0, Cell::get)
    }

    fn remember(&self, index: usize, value: u64) {
        if let Some(word) = self.remembered.get(index) {
            word.set(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::SeqCst;

    fn own() -> TargetMemory {
        TargetMemory::new(std::process::id(), [0; 64], 0)
    }

    #[test]
    fn bytes_across_blocks_are_those_of_the_process() {
        let bytes: Vec<u8> = (0..20000u32).map(|number| (number * 7) as u8).collect();
        let memory = own();
        for (start, count) in [
            (0, 8),
            (100, 4096),
            (250, 4000),
            (4090, 4090),
            (513, 1),
            (90, 19000),
        ] {
            let mut copied = vec![0; count];
            let address = bytes.as_ptr() as u64 + start as u64;
            memory.copy(address, &mut copied).unwrap();
            assert_eq!(copied, bytes[start..start + count]);
        }
        assert_eq!(memory.copy(0, &mut [0; 8]), None);
    }

    #[test]
    fn a_change_is_seen_once_what_was_read_is_forgotten() {
        let value = AtomicU64::new(1);
        let memory = own();
        let read = || memory.read::<1>(value.as_ptr() as u64);
        assert_eq!(read(), Some([1]));
        value.store(2, SeqCst);
        memory.forget();
        assert_eq!(read(), Some([2]));
    }

    #[test]
    fn what_is_read_ahead_is_as_it_was_then() {
        let values: Vec<AtomicU64> = (0..4096).map(AtomicU64::new).collect();
        let at = |number: usize| values[number].as_ptr() as u64;
        let memory = own();
        let numbers = [0, 2000, 2001, 4000];
        memory.read_ahead(numbers.map(at).into_iter().chain([8]));
        for value in &values {
            value.store(u64::MAX, SeqCst);
        }
        let read = |number| memory.read::<1>(at(number)).unwrap()[0];
        assert_eq!(numbers.map(read), [0, 2000, 2001, 4000]);
        assert_eq!(read(1000), u64::MAX);
        assert_eq!(memory.read::<1>(8), None);
        memory.forget();
        assert_eq!(numbers.map(read), [u64::MAX; 4]);
        // More than are kept.
        memory.read_ahead((0..MAX_BLOCKS + 9).map(|number| at(0) + (number * BLOCK_BYTES) as u64));
        assert_eq!(read(2000), u64::MAX);
    }

    #[test]
    fn nothing_counts_of_a_process_that_is_not_the_file_s() {
        let mut ended = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let file = File::open(format!("/proc/{}/mem", ended.id())).unwrap();
        drop(ended.stdin.take());
        ended.wait().unwrap();
        let value = AtomicU64::new(7);
        let read = |memory: &TargetMemory| {
            memory.read_ahead([value.as_ptr() as u64].into_iter());
            let before = memory.read(value.as_ptr() as u64);
            memory.forget_if_gone();
            [before, memory.read(value.as_ptr() as u64)]
        };
        // As if we had its ID now.
        let other = TargetMemory::of(std::process::id(), Some(file), [0; _], 0);
        assert_eq!(read(&other), [Some([7]), None]);
        assert_eq!(read(&own()), [Some([7]), Some([7])]);
    }

    #[test]
    fn what_is_remembered_is_of_one_runtime() {
        let memory = own();
        memory.remember(3, 7);
        memory.remember(REMEMBERED_WORDS, 9);
        assert_eq!(
            [2, 3, REMEMBERED_WORDS].map(|at| memory.remembered(at)),
            [0, 7, 0]
        );
        let memory = memory.again(&[0; _], 0);
        assert_eq!(memory.remembered(3), 7);
        assert_eq!(memory.again(&[0; _], 1).remembered(3), 0);
    }

    #[test]
    fn the_oldest_blocks_make_room() {
        let mut blocks = Blocks::default();
        let fill = |number: usize| {
            move |block: &mut [u8; BLOCK_BYTES]| {
                *block = [number as u8; BLOCK_BYTES];
                Some(())
            }
        };
        for number in 0..=MAX_BLOCKS {
            let read = blocks.read(number as u64, fill(number)).copied();
            assert_eq!(read, Some([number as u8; BLOCK_BYTES]));
        }
        let kept = |blocks: &Blocks| {
            let numbers = (0..=MAX_BLOCKS as u64).filter(|number| blocks.get(*number).is_some());
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(kept(&blocks).len(), MAX_BLOCKS);
        assert_eq!(blocks.get(0), None);
        assert_eq!(blocks.get(1), Some(&[1; BLOCK_BYTES]));
        assert_eq!(blocks.read(7000, |_| None), None);
        assert_eq!(blocks.get(7000), None);
        assert_eq!(kept(&blocks).len(), MAX_BLOCKS - 1);
        blocks.clear();
        assert!(kept(&blocks).is_empty());
    }
}
