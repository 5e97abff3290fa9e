//! Interns stacks: each has one position in the store.

use crate::{
    events,
    platform::{
        config::config,
        loops::{PLAIN_FRAMES, Turn, repeat_anywhere},
        maps::{Block, CONTROL, Counters, STACK_INDEX, STACKS, Scratch},
        subprog::subprog,
        word::Word,
    },
    sample::counters,
    store::index::{self, SlotLookup},
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{
        BLOCK_WORDS, Counter, Header, KERNEL_SCRATCH_WORDS, PADDING_WORDS, SIDES, StackPosition,
    },
    intern::{self, Hash},
};

/// The most blocks of a record if the kernel has no `bpf_loop`: enough for kernel stacks, and user stacks are no longer
/// then.
const PLAIN_BLOCKS: u32 = (KERNEL_SCRATCH_WORDS / BLOCK_WORDS) as u32;
const _: () = assert!(Header::blocks(PLAIN_FRAMES) <= PLAIN_BLOCKS);

subprog! {
    /// Completes the record of the user stack in the scratch memory, which holds its hash then.
    pub(crate) fn seal_user_stack(cpu_slot: u32) {
        if let Some(scratch) = Scratch::of(cpu_slot)
            && let Some(sealed) = Sealed::new(&scratch.user, Header(scratch.user[0].load()))
        {
            scratch.user_hash.store(sealed.hash.0);
        }
    }
}

subprog! {
    /// The position of the user stack whose record is in the scratch memory, complete and hashed; none if the store is full.
    pub(crate) fn intern_user_stack(cpu_slot: u32, side: u32, header: Header) -> Option<StackPosition> {
        let scratch = Scratch::of(cpu_slot)?;
        let counters = counters::counters(cpu_slot)?;
        let sealed = Sealed {
            words: &scratch.user,
            blocks: Header::blocks(header.words() as u32),
            hash: Hash(scratch.user_hash.load()).with(u64::from(header.check())),
        };
        sealed.intern(counters, side)
    }
}

subprog! {
    /// As [`intern_user_stack`], of the kernel stack.
    pub(crate) fn intern_kernel_stack(cpu_slot: u32, side: u32, header: Header) -> Option<StackPosition> {
        let scratch = Scratch::of(cpu_slot)?;
        let counters = counters::counters(cpu_slot)?;
        Sealed::new(&scratch.kernel, header)?.intern(counters, side)
    }
}

/// A complete record: header, frames, zeros up to a whole block.
struct Sealed<const WORDS: usize> {
    words: &'static [Word; WORDS],
    blocks: u32,
    hash: Hash,
}

impl<const WORDS: usize> Sealed<WORDS> {
    /// Completes a record whose frames, at most `WORDS` less what else it holds, follow the place of the
    /// header.
    #[inline(always)]
    fn new(words: &'static [Word; WORDS], header: Header) -> Option<Self> {
        words[0].store(header.0);
        // From memory, so that the verifier forgets the number's range: the code that follows is then verified once, and
        // not once for each way here.
        let frames = Header(words[0].load()).words();
        if frames > WORDS - 1 - PADDING_WORDS {
            return None;
        }
        for word in words.get(1 + frames..1 + frames + PADDING_WORDS)? {
            word.store(0);
        }
        let blocks = Header::blocks(frames as u32);
        let mut hashing = Hashing {
            words,
            hash: Hash::new(config!(seed)),
        };
        repeat_anywhere(blocks, PLAIN_BLOCKS, &mut hashing);
        Some(Self {
            words,
            blocks,
            hash: hashing.hash,
        })
    }

    /// The position of this stack on the given side, old or new. None if the store is
    /// full.
    #[inline(always)]
    fn intern(&self, counters: &Counters, side: u32) -> Option<StackPosition> {
        let mask = config!(stack_index_mask);
        let found = index::find(&STACK_INDEX, side * (mask + 1), mask, self.hash);
        if let SlotLookup::Entry(block) = found
            && self.is_at(side, block)
        {
            return Some(StackPosition::at(block));
        }
        let block = self.store(counters, side)?;
        // A stack whose slot leads to another with the same tag, or whose slots are all taken, is found by position
        // only.
        match found {
            SlotLookup::Free(slot) => index::claim(&STACK_INDEX, slot, self.hash, block),
            SlotLookup::Entry(_) | SlotLookup::Crowded => {
                counters::bump(counters, Counter::IndexCrowded)
            }
        }
        Some(StackPosition::at(block))
    }

    /// Appends the record to the given side; none if it is full.
    #[inline(always)]
    fn store(&self, counters: &Counters, side: u32) -> Option<u32> {
        let capacity = u64::from(config!(stack_blocks));
        let more = u64::from(self.blocks);
        // Hidden from the compiler, which would check the number long before it is used.
        let place = black_box(side as usize) & (SIDES - 1);
        let cursor = &CONTROL.get(0)?.stacks.get(place)?.cursor;
        let block = cursor.fetch_add(more);
        if intern::passes_half(block, more, capacity) {
            events::half_full(counters);
        }
        if block + more > capacity {
            return None;
        }
        let mut copy = Copy {
            words: self.words,
            first: side * config!(stack_blocks) + block as u32,
        };
        repeat_anywhere(self.blocks, PLAIN_BLOCKS, &mut copy);
        Some(block as u32)
    }

    #[inline(always)]
    fn is_at(&self, side: u32, block: u32) -> bool {
        let mut compare = Compare {
            words: self.words,
            first: side * config!(stack_blocks) + block,
            same: true,
        };
        repeat_anywhere(self.blocks, PLAIN_BLOCKS, &mut compare);
        compare.same
    }
}

/// Hashes a record, one block a turn.
struct Hashing<const WORDS: usize> {
    words: &'static [Word; WORDS],
    hash: Hash,
}

impl<const WORDS: usize> Turn for Hashing<WORDS> {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let Some(block) = block_of(self.words, index) else {
            return ControlFlow::Break(());
        };
        for word in block {
            self.hash = self.hash.with(word.load());
        }
        ControlFlow::Continue(())
    }
}

/// Compares a record with a stored one, one block a turn.
struct Compare<const WORDS: usize> {
    words: &'static [Word; WORDS],
    first: u32,
    same: bool,
}

impl<const WORDS: usize> Turn for Compare<WORDS> {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let mut difference = u64::MAX;
        if let Some((stored, words)) = blocks(self.words, self.first, index) {
            difference = 0;
            for (stored, word) in stored.iter().zip(words) {
                difference |= stored.load() ^ word.load();
            }
        }
        if difference != 0 {
            self.same = false;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Copies a record to its position, one block a turn.
struct Copy<const WORDS: usize> {
    words: &'static [Word; WORDS],
    first: u32,
}

impl<const WORDS: usize> Turn for Copy<WORDS> {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let Some((stored, words)) = blocks(self.words, self.first, index) else {
            return ControlFlow::Break(());
        };
        for (stored, word) in stored.iter().zip(words) {
            stored.store(word.load());
        }
        ControlFlow::Continue(())
    }
}

/// Block number `index` of the stored record that begins at block `first`, and of the record in the scratch memory.
#[inline(always)]
fn blocks<const WORDS: usize>(
    words: &'static [Word; WORDS],
    first: u32,
    index: u32,
) -> Option<(&'static Block, &'static Block)> {
    Some((STACKS.get(first + index)?, block_of(words, index)?))
}

/// Block number `index` of the record in the scratch memory.
#[inline(always)]
fn block_of<const WORDS: usize>(
    words: &'static [Word; WORDS],
    index: u32,
) -> Option<&'static Block> {
    if index as usize >= WORDS / BLOCK_WORDS {
        return None;
    }
    let start = index as usize * BLOCK_WORDS;
    words[start..start + BLOCK_WORDS].try_into().ok()
}
