//! The memory of a process that runs, as the code of a runtime sees it.
//!
//! In: a process ID. Out: words, as far as they can be read now. The process runs on meanwhile, so whatever is read here may be
//! torn: whoever reads asks for a function's check before and after. Objects that belong together lie together, so memory is read in
//! blocks, which are kept until the next check.

use super::Words;
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
    /// None if it has ended, or we may not.
    file: Option<File>,
    words: Words,
    bias: u64,
    fetched: [Cell<u64>; FETCH_WORDS],
    remembered: [Cell<u64>; REMEMBERED_WORDS],
    blocks: RefCell<Blocks>,
}

/// Bytes of a block: a page, which takes hardly longer to read than a word. And how many are kept.
const BLOCK_BYTES: usize = 4096;
const MOST_BLOCKS: usize = 32;

/// Blocks that were read, and their addresses; the oldest make room.
#[derive(Debug, Default)]
struct Blocks {
    addresses: Vec<u64>,
    bytes: Vec<[u8; BLOCK_BYTES]>,
    oldest: usize,
}

/// No block has this address.
const NOWHERE: u64 = u64::MAX;

impl Blocks {
    fn get(&self, address: u64) -> Option<&[u8; BLOCK_BYTES]> {
        let mut addresses = self.addresses.iter();
        self.bytes
            .get(addresses.position(|known| *known == address)?)
    }

    /// Has a block read, and keeps it.
    fn read(
        &mut self,
        address: u64,
        read: impl FnOnce(&mut [u8; BLOCK_BYTES]) -> Option<()>,
    ) -> Option<&[u8; BLOCK_BYTES]> {
        let place = if self.addresses.len() < MOST_BLOCKS {
            let place = self.addresses.len();
            self.addresses.push(NOWHERE);
            if self.bytes.len() == place {
                self.bytes.push([0; BLOCK_BYTES]);
            }
            place
        } else {
            let place = self.oldest;
            self.oldest = (place + 1) % MOST_BLOCKS;
            place
        };
        self.addresses[place] = NOWHERE;
        read(&mut self.bytes[place])?;
        self.addresses[place] = address;
        Some(&self.bytes[place])
    }

    /// Forgets all, and keeps the room that they took.
    fn clear(&mut self) {
        self.addresses.clear();
    }
}

impl TargetMemory {
    /// That of a process by its ID.
    pub fn new(tgid: u32, words: Words, bias: u64) -> Self {
        let file = File::open(format!("/proc/{tgid}/mem")).ok();
        Self::of(file, words, bias)
    }

    fn of(file: Option<File>, words: Words, bias: u64) -> Self {
        Self {
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
    pub fn again(self, words: &Words, bias: u64) -> Self {
        if self.words == *words && self.bias == bias {
            self.forget();
            self
        } else {
            Self::of(self.file, *words, bias)
        }
    }

    /// Forgets what was read: the process may have changed it.
    pub fn forget(&self) {
        self.blocks.borrow_mut().clear();
    }

    /// The check of the function at an address, if there is one now.
    pub fn check(&self, kind: RuntimeKind, function: u64) -> Option<u32> {
        self.forget();
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
        let value = std::sync::atomic::AtomicU64::new(1);
        let memory = own();
        let read = || memory.read::<1>(value.as_ptr() as u64);
        assert_eq!(read(), Some([1]));
        value.store(2, std::sync::atomic::Ordering::SeqCst);
        memory.forget();
        assert_eq!(read(), Some([2]));
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
        for number in 0..=MOST_BLOCKS {
            let read = blocks.read(number as u64, fill(number)).copied();
            assert_eq!(read, Some([number as u8; BLOCK_BYTES]));
        }
        let kept = |blocks: &Blocks| {
            let numbers = (0..=MOST_BLOCKS as u64).filter(|number| blocks.get(*number).is_some());
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(kept(&blocks).len(), MOST_BLOCKS);
        assert_eq!(blocks.get(0), None);
        assert_eq!(blocks.get(1), Some(&[1; BLOCK_BYTES]));
        assert_eq!(blocks.read(7000, |_| None), None);
        assert_eq!(blocks.get(7000), None);
        assert_eq!(kept(&blocks).len(), MOST_BLOCKS - 1);
        blocks.clear();
        assert!(kept(&blocks).is_empty());
    }
}
