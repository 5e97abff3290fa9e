//! Counts: each key has one tally in the live epoch.

use crate::{
    events,
    platform::{
        config::config,
        maps::{CONTROL, Scratch, TALLIES, TALLY_INDEX, Tally},
        subprog::Scalar,
        word::Word,
    },
    sample::counters,
    store::index::{self, SlotLookup},
};
use core::hint::black_box;
use profiler_common::{
    abi::{Counter, KEY_WORDS, SIDES},
    intern::{self, Hash},
};

/// Whether a key was counted before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Not on this side.
    First,
    Again,
}

impl Scalar for Counted {
    #[inline(always)]
    fn into_word(self) -> u64 {
        (self == Self::Again).into_word()
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        if bool::from_word(word) {
            Self::Again
        } else {
            Self::First
        }
    }
}

/// Adds one firing of the given weight to the tally, on the given side, of the key in the scratch memory. None if the table
/// is full.
#[inline(always)]
pub(crate) fn count(cpu_slot: u32, scratch: &Scratch, side: u32, weight: u64) -> Option<Counted> {
    let words = &scratch.key;
    let counters = counters::counters(cpu_slot)?;
    let mut hash = Hash::new(config!(seed));
    for word in words {
        hash = hash.with(word.load());
    }
    let mask = config!(tally_index_mask);
    let base = side * config!(tally_capacity);
    let found = index::find(&TALLY_INDEX, side * (mask + 1), mask, hash);
    if let SlotLookup::Entry(entry) = found
        && let Some(tally) = TALLIES.get(base + entry)
        && has_key(tally, words)
    {
        tally.weight.add(weight);
        tally.count.add(1);
        return Some(Counted::Again);
    }
    let capacity = u64::from(config!(tally_capacity));
    // Hidden from the compiler, which would check the number long before it is used.
    let place = black_box(side as usize) & (SIDES - 1);
    let cursor = &CONTROL.get(0)?.tallies.get(place)?.cursor;
    let entry = cursor.fetch_add(1);
    if intern::passes_half(entry, 1, capacity) {
        events::half_full(counters);
    }
    if entry >= capacity {
        return None;
    }
    let tally = TALLIES.get(base + entry as u32)?;
    for (place, word) in tally.key.iter().zip(words) {
        place.store(word.load());
    }
    tally.weight.store(weight);
    tally.count.store(1);
    match found {
        SlotLookup::Free(slot) => index::claim(&TALLY_INDEX, slot, hash, entry as u32),
        SlotLookup::Entry(_) | SlotLookup::Crowded => {
            counters::bump(counters, Counter::IndexCrowded)
        }
    }
    Some(Counted::First)
}

/// Whether the tally belongs to the key. A tally is published only when its key is complete.
#[inline(always)]
fn has_key(tally: &Tally, words: &[Word; KEY_WORDS]) -> bool {
    let mut difference = 0;
    for (place, word) in tally.key.iter().zip(words) {
        difference |= place.load() ^ word.load();
    }
    difference == 0
}
