//! Leaves code that nothing explains where no frame pointer leads on: by a word above the stack pointer that may be a
//! return address.
//!
//! In: how a walk ended. Out: the next caller to try, or the end as it was. A word counts if it lies behind a call in code with
//! rows ([`profiler_common::walk::guess`]) and the walk from there reaches the root; a mark stands in front of such a
//! caller. Otherwise the walk goes back to where it was and tries the next word.

use crate::{
    platform::{
        config,
        loops::{Turn, repeat},
        maps::Scratch,
        subprog::subprog,
        word::Word,
    },
    walk::{
        innermost::follows_call,
        runtime::{self, scratch::Chains},
        scratch::{Guess, ProcessCache, Walk},
        stack_memory::StackMemory,
    },
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{CodeState, Fallbacks, FrameTag, FrameWord, MAX_USER_FRAMES, StackEnd, Switches},
    walk::{
        Memory,
        guess::{MAX_WORDS, is_worthwhile, may_be_code},
        native::{Frame, Kept, Reached},
    },
};

/// The most turns of a walk that go into words that are none, and into what lies behind them.
pub(crate) const TURNS: u32 = MAX_USER_FRAMES as u32;

/// Forgets the last walk's.
#[inline(always)]
pub(crate) fn reset(guess: &Guess) {
    guess.noted.store(0);
    guess.first_words.store(0);
    guess.is_root_row.store(0);
    guess.is_trying.store(0);
}

/// Whether this end of a walk is one to go back from. A root that nothing but a zero in the stack tells of is believed only of
/// callers that were not searched for.
#[inline(always)]
pub(crate) fn is_in_doubt(walk: &Walk, end: u64) -> bool {
    if end == StackEnd::Root as u64 {
        walk.guess.first_words.load() != 0 && walk.guess.is_root_row.load() == 0
    } else {
        end != StackEnd::Truncated as u64
    }
}

/// Notes that the frame that was noted last, with this stack pointer, is in code that nothing explains, and in how many words its
/// caller may be looked for.
#[inline(always)]
pub(crate) fn note(walk: &Walk, sp: u64, words: u64) {
    walk.guess.sp.store(sp);
    walk.guess.most.store(words);
    walk.guess.noted.store(walk.words.load());
}

/// Whether the frame that is looked at is no more than a word that may be a return address.
#[inline(always)]
pub(crate) fn is_trying(walk: &Walk) -> bool {
    walk.guess.is_trying.load() != 0
}

/// Puts a mark in front of the caller that is tried, in code of this kind, or says that it is none.
#[inline(always)]
pub(crate) fn settle(
    scratch: &'static Scratch,
    place: &Word,
    kind: u64,
    address: u64,
) -> ControlFlow<u64> {
    if !CodeState(kind).has_table() || !follows_call(address, false) {
        return ControlFlow::Break(StackEnd::Implausible as u64);
    }
    let (walk, others) = (&scratch.walk, &scratch.chains.words);
    walk.guess.is_trying.store(0);
    place.store(FrameWord::new(FrameTag::Mark, StackEnd::Guess as u32).0);
    walk.words.store(walk.words.load().wrapping_add(1));
    others.store(others.load().wrapping_add(1));
    ControlFlow::Continue(())
}

subprog! {
    /// Goes on from the next word that may be a return address, where a walk has ended before its root; or says how the
    /// walk ends.
    pub(crate) fn guess_caller(cpu_slot: u32, end: u64) -> ControlFlow<u64> {
        Scratch::of(cpu_slot).map_or(ControlFlow::Break(end), |scratch| resume(scratch, end))
    }
}

#[inline(always)]
fn resume(scratch: &'static Scratch, end: u64) -> ControlFlow<u64> {
    let (walk, chains) = (&scratch.walk, &scratch.chains);
    let guess = &walk.guess;
    let Some(known) = runtime::known(scratch) else {
        return ControlFlow::Break(end);
    };
    let words = walk.words.load();
    let is_open = guess.first_words.load() != 0;
    if words != 0 && guess.noted.load() == words && guess.is_trying.load() == 0 {
        // Nothing was noted since: here is where the walk does not go on.
        if !is_open {
            if config::has(Switches::RUNTIMES) && runtime::makes_code(known) {
                return ControlFlow::Break(end);
            }
            let fruitless = known.fruitless.load();
            if !is_worthwhile(fruitless) {
                known.fruitless.store(fruitless.wrapping_add(1));
                return ControlFlow::Break(end);
            }
            guess.first_words.store(words);
            guess.end.store(end);
            guess.fallbacks.store(walk.fallbacks.load());
            runtime::scratch::save(chains, &guess.chains[0]);
        }
        guess.words.store(words);
        runtime::scratch::save(chains, &guess.chains[1]);
        let place = guess.sp.load().wrapping_add(7) & !7;
        guess.place.store(place);
        guess.last.store(place.wrapping_add(8 * guess.most.load()));
    } else if !is_open {
        return ControlFlow::Break(end);
    }
    walk.words.store(guess.words.load());
    runtime::scratch::go_back(chains, &guess.chains[1]);
    walk.fallbacks.store(guess.fallbacks.load());
    if try_next(walk, guess) {
        return ControlFlow::Continue(());
    }
    give_up(walk, chains, known);
    ControlFlow::Break(guess.end.load())
}

/// Goes back to where the first search began.
#[inline(always)]
fn give_up(walk: &'static Walk, chains: &'static Chains, known: &ProcessCache) {
    let guess = &walk.guess;
    walk.words.store(guess.first_words.load());
    runtime::scratch::go_back(chains, &guess.chains[0]);
    guess.first_words.store(0);
    known
        .fruitless
        .store(known.fruitless.load().wrapping_add(1));
}

/// Puts the next word that may be a return address in the place of the frame; false if there is none.
#[inline(always)]
fn try_next(walk: &'static Walk, guess: &Guess) -> bool {
    let mut search = Search {
        walk,
        place: guess.place.load(),
        last: guess.last.load(),
        found: 0,
    };
    repeat(MAX_WORDS as u32, &mut search);
    let Search { place, found, .. } = search;
    guess.place.store(place);
    guess.is_trying.store(1);
    walk.put(Frame {
        ip: found,
        sp: place,
        fp: Kept::LOST,
        saved: Kept::LOST,
        reached: Reached::Called,
    });
    found != 0
}

struct Search {
    walk: &'static Walk,
    place: u64,
    last: u64,
    found: u64,
}

impl Turn for Search {
    #[inline(always)]
    fn turn(&mut self, _: u32) -> ControlFlow<()> {
        if self.place >= self.last {
            return ControlFlow::Break(());
        }
        let place = self.place;
        let Some([word]) = StackMemory(&self.walk.stack).read_upward::<1>(place) else {
            return ControlFlow::Break(());
        };
        self.place = place.wrapping_add(8);
        if may_be_code(word, place) {
            self.found = word;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Says of a walk that has ended whether its callers were found so.
#[inline(always)]
pub(crate) fn finish(scratch: &'static Scratch) {
    let (walk, chains) = (&scratch.walk, &scratch.chains);
    let guess = &walk.guess;
    let Some(known) = runtime::known(scratch) else {
        return;
    };
    if guess.first_words.load() == 0 {
        return;
    }
    let frames = walk.words.load().wrapping_sub(chains.seconds.load());
    let has_ended = walk.end.load() != StackEnd::Truncated as u64;
    if has_ended || frames >= MAX_USER_FRAMES as u64 - 1 {
        walk.add_fallback(Fallbacks::GUESS);
        known.fruitless.store(0);
        return;
    }
    // All turns went into words that were none.
    walk.end.store(guess.end.load());
    walk.fallbacks.store(guess.fallbacks.load());
    give_up(walk, chains, known);
}
