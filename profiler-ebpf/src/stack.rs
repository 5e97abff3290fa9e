//! Interning stacks: the one place in the store where a stack lies.

use crate::{
    config::config,
    counter,
    maps::{Books, CONTROL, Chunk, STACK_INDEX, STACKS},
    notice,
    repeat::{Turn, repeat},
    word::Word,
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{
        BLOCK_WORDS, CHUNK_BLOCKS, CHUNK_WORDS, Counter, Header, MAX_KERNEL_FRAMES, RECORD_WORDS,
        StackEnd, StackPosition,
    },
    intern::{self, Hash, PROBES, Probe, Slot},
};

/// Words of the longest kernel stack's record.
pub(crate) const KERNEL_WORDS: usize = (1 + MAX_KERNEL_FRAMES).next_multiple_of(BLOCK_WORDS);

/// Where a firing puts its records together: too large for the BPF stack.
#[repr(C, align(64))]
pub(crate) struct Scratch {
    pub(crate) user: [Word; RECORD_WORDS],
    pub(crate) kernel: [Word; KERNEL_WORDS],
}

/// A record that is complete: header, addresses, zeros up to a whole block.
pub(crate) struct Sealed<const WORDS: usize> {
    words: &'static [Word; WORDS],
    blocks: u32,
    hash: Hash,
}

impl<const WORDS: usize> Sealed<WORDS> {
    /// Completes a record whose `frames` addresses stand behind the place of the header.
    #[inline(always)]
    pub(crate) fn new(
        words: &'static [Word; WORDS],
        frames: u32,
        end: StackEnd,
        hash: Hash,
    ) -> Self {
        let header = Header::new(frames as u16, end);
        words[0].store(header.0);
        for beyond in 0..BLOCK_WORDS as u32 {
            let index = 1 + frames + beyond;
            if index.is_multiple_of(BLOCK_WORDS as u32) {
                break;
            }
            if let Some(word) = words.get(index as usize) {
                word.store(0);
            }
        }
        Self {
            words,
            blocks: Header::blocks(frames),
            hash: hash.with(header.0),
        }
    }

    /// Where this stack is stored on the given side: where it was, or where it now is. None if the
    /// store is full.
    #[inline(always)]
    pub(crate) fn intern(&self, books: &Books, side: u32) -> Option<StackPosition> {
        let mask = config!(stack_index_mask);
        let mut free = None;
        for probe in 0..PROBES {
            let slot = STACK_INDEX.get(side * (mask + 1) + self.hash.slot(probe, mask))?;
            match Slot(slot.load()).probe(self.hash) {
                Probe::Other => {}
                Probe::Entry(block) => {
                    if self.is_at(side, block)? {
                        return Some(StackPosition::at(block));
                    }
                    // Another stack under the same tag: stored without a slot of its own.
                    break;
                }
                Probe::Free => {
                    free = Some(slot);
                    break;
                }
            }
        }
        let block = self.store(books, side)?;
        match free {
            // Whoever else took the slot meanwhile keeps it; the record is found by its position.
            Some(slot) => {
                slot.claim(Slot::new(self.hash, block).0);
            }
            None => counter::bump(books, Counter::IndexCrowded),
        }
        Some(StackPosition::at(block))
    }

    /// Appends the record to the given side; none if it is full.
    #[inline(always)]
    fn store(&self, books: &Books, side: u32) -> Option<u32> {
        /// A record that would cross the end of a chunk tries again behind it. Others do so too, so
        /// even the second place may be a bad one; four in a row never are.
        const ATTEMPTS: u32 = 4;
        let chunks = config!(stack_chunks);
        let capacity = u64::from(chunks) * CHUNK_BLOCKS as u64;
        let cursor = &CONTROL.get(0)?.stacks.get(side as usize)?.cursor;
        for _ in 0..ATTEMPTS {
            let more = u64::from(self.blocks);
            let block = cursor.fetch_add(more);
            if intern::passes_half(block, more, capacity) {
                notice::half_full(books);
            }
            if block + more > capacity {
                return None;
            }
            if intern::fits_chunk(block, self.blocks) {
                self.copy_to(side, block as u32)?;
                return Some(block as u32);
            }
        }
        None
    }

    #[inline(always)]
    fn chunk(side: u32, block: u32) -> Option<&'static Chunk> {
        STACKS.get(side * config!(stack_chunks) + block / CHUNK_BLOCKS as u32)
    }

    #[inline(always)]
    fn is_at(&self, side: u32, block: u32) -> Option<bool> {
        let mut compare = Compare {
            chunk: Self::chunk(side, block)?,
            words: self.words,
            first: block,
            same: true,
        };
        repeat::<{ MOST_BLOCKS }, _>(self.blocks, &mut compare);
        Some(compare.same)
    }

    #[inline(always)]
    fn copy_to(&self, side: u32, block: u32) -> Option<()> {
        let mut copy = Copy {
            chunk: Self::chunk(side, block)?,
            words: self.words,
            first: block,
        };
        repeat::<{ MOST_BLOCKS }, _>(self.blocks, &mut copy);
        Some(())
    }
}

/// Blocks of the longest record.
const MOST_BLOCKS: u32 = (RECORD_WORDS / BLOCK_WORDS) as u32;

/// Compares a record with a stored one, a block a turn.
struct Compare<const WORDS: usize> {
    chunk: &'static Chunk,
    words: &'static [Word; WORDS],
    first: u32,
    same: bool,
}

impl<const WORDS: usize> Turn for Compare<WORDS> {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let Some((stored, words)) = blocks(self.chunk, self.words, self.first, index) else {
            return ControlFlow::Break(());
        };
        let mut difference = 0;
        for (stored, word) in stored.iter().zip(words) {
            difference |= stored.load() ^ word.load();
        }
        if difference != 0 {
            self.same = false;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Copies a record to its place, a block a turn.
struct Copy<const WORDS: usize> {
    chunk: &'static Chunk,
    words: &'static [Word; WORDS],
    first: u32,
}

impl<const WORDS: usize> Turn for Copy<WORDS> {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let Some((stored, words)) = blocks(self.chunk, self.words, self.first, index) else {
            return ControlFlow::Break(());
        };
        for (stored, word) in stored.iter().zip(words) {
            stored.store(word.load());
        }
        ControlFlow::Continue(())
    }
}

/// The `index`-th block of a stored record that begins at block `first`, and of a record put together.
#[inline(always)]
fn blocks<const WORDS: usize>(
    chunk: &'static Chunk,
    words: &'static [Word; WORDS],
    first: u32,
    index: u32,
) -> Option<(&'static [Word; BLOCK_WORDS], &'static [Word; BLOCK_WORDS])> {
    if index as usize >= WORDS / BLOCK_WORDS {
        return None;
    }
    let stored = ((first + index) as usize & (CHUNK_BLOCKS - 1)) * BLOCK_WORDS;
    let ours = index as usize * BLOCK_WORDS;
    const { assert!(CHUNK_WORDS == CHUNK_BLOCKS * BLOCK_WORDS) };
    Some((
        chunk[stored..stored + BLOCK_WORDS].try_into().ok()?,
        words[ours..ours + BLOCK_WORDS].try_into().ok()?,
    ))
}
