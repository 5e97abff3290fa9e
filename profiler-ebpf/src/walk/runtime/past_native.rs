//! Shows the rest of a runtime's chain where the native walk has ended before it.
//!
//! In: a walk that has ended. Out: behind its words a mark that says why, unless such an end is usual, and the frames that are
//! left of the chain, level after level, whichever native frame runs them.

use super::{
    TRUNCATED, known, prepare,
    scratch::add_words,
    table::{OUTLIVE_NATIVE_FRAMES, level_of, step_of},
};
use crate::{
    platform::{
        loops::{Turn, repeat},
        maps::Scratch,
        subprog::subprog,
    },
    sample::counters,
    walk::runtime::scratch::Chains,
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{Counter, FrameTag, FrameWord, MAX_USER_FRAMES, StackEnd},
    runtime::{ChainFrame, NativeFrame},
    walk::native::{FRAME_WORDS, Frame},
};

/// Whether frames of interpreters may be missing below the end of a walk.
#[inline(always)]
pub(crate) fn has_frames(scratch: &'static Scratch) -> bool {
    let end = scratch.walk.end.load();
    if end == StackEnd::Truncated as u64 || scratch.walk.words.load() == 0 {
        return false;
    }
    let left = scratch.chains.begun.load() & !scratch.chains.over.load();
    end != StackEnd::Root as u64 || left != 0
}

subprog! {
    /// Shows what is left of the chain of the process's runtime behind a mark that says why the native walk ended.
    pub(crate) fn show_frames(cpu_slot: u32) {
        if let Some(scratch) = Scratch::of(cpu_slot) {
            rest(cpu_slot, scratch);
        }
    }
}

#[inline(always)]
fn rest(cpu_slot: u32, scratch: &'static Scratch) -> Option<()> {
    let known = known(scratch)?;
    let descriptor = known.runtime.load() as u32;
    if descriptor == 0 {
        return None;
    }
    let (walk, chains) = (&scratch.walk, &scratch.chains);
    let kind = prepare(chains, descriptor, known.bias.load())?;
    chains.is_rest.store(1);
    enter_any_level(kind, cpu_slot, chains);
    if chains.pending.load() == 0 {
        return None;
    }
    let end = walk.end.load();
    let is_root = end == StackEnd::Root as u64;
    let is_usual = is_root && OUTLIVE_NATIVE_FRAMES >> kind & 1 != 0;
    let mut words = walk.words.load();
    if !is_usual {
        let why = if is_root {
            // The interpreter has more levels than there are native frames to run them.
            StackEnd::Implausible as u64
        } else {
            end
        };
        let mark = scratch.user.get(1 + black_box(words as usize))?;
        mark.store(FrameWord::new(FrameTag::Mark, why as u32).0);
        add_words(chains, 1, 0);
        words = words.wrapping_add(1);
    }
    chains.level.store(words);
    chains.place.store(words);
    chains.flags.store(0);
    // One more than there is room for frames, to see whether the chain goes on.
    let mut levels = Rest { cpu_slot, kind };
    repeat(MAX_USER_FRAMES as u32 + 1, &mut levels);
    let place = chains.place.load();
    if place <= words {
        return None;
    }
    walk.words.store(place);
    let is_truncated = chains.flags.load() & u64::from(TRUNCATED) != 0;
    walk.end.store(if is_truncated {
        StackEnd::Truncated as u64
    } else {
        StackEnd::Root as u64
    });
    if !is_usual {
        counters::bump(counters::counters(cpu_slot)?, Counter::ChainsWithoutStack);
    }
    Some(())
}

/// The rest of a chain, one step after the other.
struct Rest {
    cpu_slot: u32,
    kind: u64,
}

impl Turn for Rest {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        if step_of(self.kind, self.cpu_slot).is_continue() {
            return ControlFlow::Continue(());
        }
        let Some(scratch) = Scratch::of(self.cpu_slot) else {
            return ControlFlow::Break(());
        };
        let chains = &scratch.chains;
        let over = u64::from(TRUNCATED | ChainFrame::CHAIN_ENDS);
        if chains.flags.load() & over != 0 {
            return ControlFlow::Break(());
        }
        let place = chains.place.load();
        let more = place.wrapping_sub(chains.level.load());
        add_words(chains, more, more / 2);
        chains.level.store(place);
        enter_any_level(self.kind, self.cpu_slot, chains);
        ControlFlow::Continue(())
    }
}

/// Begins the chain, if it is not, and enters its next level, whichever native frame runs it.
#[inline(always)]
fn enter_any_level(kind: u64, cpu_slot: u32, chains: &'static Chains) {
    const ANY: NativeFrame = NativeFrame::ANY;
    const LOST: Frame = Frame {
        fp: ANY.fp,
        saved: ANY.saved,
        ..Frame::from_words([0; FRAME_WORDS])
    };
    let [_, _, registers @ ..] = LOST.words();
    chains.address.store(ANY.address);
    chains.sp.store(ANY.sp);
    chains.caller_sp.store(ANY.caller_sp);
    chains.is_first.store(ANY.is_first);
    for (place, word) in chains.registers.iter().zip(registers) {
        place.store(word);
    }
    let _: ControlFlow<u64> = level_of(kind, cpu_slot);
}
