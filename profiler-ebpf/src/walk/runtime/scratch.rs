//! Scratch memory of chains: how far each was followed, and what of it is shown.
//!
//! In: nothing but words. Out: a state to go back to. Never: takes a step.

use crate::platform::{
    loops::{Turn, repeat},
    word::Word,
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::MAX_USER_FRAMES,
    runtime::{CURSOR_WORDS, FETCH_WORDS, REMEMBERED_WORDS, RuntimeKind, own_frames},
};

/// The chains of interpreters that a walk follows.
#[repr(C)]
pub(crate) struct Chains {
    /// One bit for each [`RuntimeKind`]: whether its chain was begun.
    pub(crate) begun: Word,
    /// Whether nothing more comes of it.
    pub(crate) over: Word,
    /// How many words of the stack are not of native frames.
    pub(crate) words: Word,
    /// How many words are the second of a runtime's frame, so that there are as many fewer frames than words.
    pub(crate) seconds: Word,
    /// How many steps were taken along chains in this walk.
    pub(crate) steps: Word,
    /// The thread's.
    pub(crate) thread_pointer: Word,
    /// The native frame that is looked at: a [`profiler_common::runtime::NativeFrame`].
    pub(crate) address: Word,
    pub(crate) sp: Word,
    pub(crate) caller_sp: Word,
    pub(crate) is_first: Word,
    /// Its frame pointer and its saved register, as far as they are known: the last words of a [`Frame`].
    pub(crate) registers: [Word; 3],
    /// The number of the runtime whose level is being shown, plus one; zero if none is.
    pub(crate) pending: Word,
    /// Not zero once the native walk has ended and the rest of a chain is shown.
    pub(crate) is_rest: Word,
    /// The word of the native frame that runs it, which goes behind it.
    pub(crate) last: Word,
    /// Where the next word of the stack goes.
    pub(crate) place: Word,
    /// Where the level's first word is.
    pub(crate) level: Word,
    /// The flags of the last step.
    pub(crate) flags: Word,
    /// Words read of the process last; see [`profiler_common::runtime::Process::fetch`].
    pub(crate) fetched: [Word; FETCHED_PLACES],
    /// See [`profiler_common::runtime::Process::remember`].
    pub(crate) remembered: [Word; REMEMBERED_WORDS],
    /// By [`RuntimeKind`].
    pub(crate) of: [Chain; RUNTIME_KINDS],
    /// The address of the first of the runtime's own frames; zero if none was shown.
    pub(crate) own_base: Word,
    /// How far from it the others lie, as [`profiler_common::runtime::own_frames`] packs that.
    pub(crate) own_frames: [Word; MAX_USER_FRAMES / own_frames::IN_WORD],
}

/// Places for kinds of runtimes: a power of two.
pub(crate) const RUNTIME_KINDS: usize = RuntimeKind::ALL.len().next_power_of_two();

/// Places for what was read of the process: a power of two, so that the verifier need not follow what becomes of others.
pub(crate) const FETCHED_PLACES: usize = FETCH_WORDS.next_power_of_two();

/// The chain of one runtime.
#[repr(C)]
pub(crate) struct Chain {
    /// The number of the file's descriptor.
    pub(crate) descriptor: Word,
    /// Load bias of the file.
    pub(crate) bias: Word,
    pub(crate) cursor: [Word; CURSOR_WORDS],
}

/// State that [`Chains`] go back to.
#[repr(C)]
pub(crate) struct SavedChains {
    pub(crate) begun: Word,
    pub(crate) over: Word,
    pub(crate) words: Word,
    pub(crate) seconds: Word,
    pub(crate) steps: Word,
    /// By [`RuntimeKind`]; only of those that were begun.
    pub(crate) cursors: [[Word; CURSOR_WORDS]; RUNTIME_KINDS],
}

/// Forgets the last walk's chains.
#[inline(always)]
pub(crate) fn reset(chains: &Chains) {
    chains.begun.store(0);
    chains.over.store(0);
    chains.words.store(0);
    chains.seconds.store(0);
    chains.steps.store(0);
    chains.pending.store(0);
    chains.is_rest.store(0);
    chains.own_base.store(0);
}

/// Adds words that are not of native frames: how many, and how many of them are the second of a runtime's frame.
#[inline(always)]
pub(crate) fn add_words(chains: &Chains, words: u64, seconds: u64) {
    chains.words.store(chains.words.load().wrapping_add(words));
    chains
        .seconds
        .store(chains.seconds.load().wrapping_add(seconds));
}

/// Saves what a walk along these chains has come to.
#[inline(always)]
pub(crate) fn save(chains: &'static Chains, saved: &'static SavedChains) {
    saved.begun.store(chains.begun.load());
    saved.over.store(chains.over.load());
    saved.words.store(chains.words.load());
    saved.seconds.store(chains.seconds.load());
    saved.steps.store(chains.steps.load());
    copy_cursors(chains, saved, false);
}

/// Goes back to what was saved.
#[inline(always)]
pub(crate) fn go_back(chains: &'static Chains, saved: &'static SavedChains) {
    chains.begun.store(saved.begun.load());
    chains.over.store(saved.over.load());
    chains.words.store(saved.words.load());
    chains.seconds.store(saved.seconds.load());
    chains.steps.store(saved.steps.load());
    chains.pending.store(0);
    copy_cursors(chains, saved, true);
}

/// Copies the cursors of the chains that were begun.
#[inline(always)]
fn copy_cursors(chains: &'static Chains, saved: &'static SavedChains, is_back: bool) {
    let begun = saved.begun.load();
    if begun != 0 {
        let mut copying = Copying {
            chains,
            saved,
            begun,
            is_back,
        };
        repeat(RUNTIME_KINDS as u32, &mut copying);
    }
}

/// One cursor in each turn.
struct Copying {
    chains: &'static Chains,
    saved: &'static SavedChains,
    begun: u64,
    is_back: bool,
}

impl Turn for Copying {
    #[inline(always)]
    fn turn(&mut self, kind: u32) -> ControlFlow<()> {
        let kind = kind as usize & (RUNTIME_KINDS - 1);
        let (Some(chain), Some(saved)) = (self.chains.of.get(kind), self.saved.cursors.get(kind))
        else {
            return ControlFlow::Break(());
        };
        if self.begun >> kind & 1 != 0 {
            for (own, saved) in chain.cursor.iter().zip(saved) {
                if self.is_back {
                    own.store(saved.load());
                } else {
                    saved.store(own.load());
                }
            }
        }
        ControlFlow::Continue(())
    }
}
