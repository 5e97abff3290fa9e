//! Counting: the one tally of a key in the live epoch.

use crate::{
    config::config,
    counter,
    maps::{Books, CONTROL, TALLIES, TALLY_INDEX, Tally},
    notice,
};
use profiler_common::{
    abi::{Counter, KEY_WORDS, SampleKey},
    intern::{self, Hash, PROBES, Probe, Slot},
};

/// Adds one firing of the given weight to the key's tally on the given side. None if the table is full.
#[inline(always)]
pub(crate) fn record(books: &Books, side: u32, key: &SampleKey, weight: u64) -> Option<()> {
    let words = key.words();
    let hash = words
        .iter()
        .fold(Hash::new(config!(seed)), |hash, &word| hash.with(word));
    let mask = config!(tally_index_mask);
    let base = side * config!(tally_capacity);
    let mut free = None;
    for probe in 0..PROBES {
        let slot = TALLY_INDEX.get(side * (mask + 1) + hash.slot(probe, mask))?;
        match Slot(slot.load()).probe(hash) {
            Probe::Other => {}
            Probe::Entry(entry) => {
                let tally = TALLIES.get(base + entry)?;
                if has_key(tally, &words) {
                    tally.weight.add(weight);
                    tally.count.add(1);
                    return Some(());
                }
            }
            Probe::Free => {
                free = Some(slot);
                break;
            }
        }
    }
    let capacity = u64::from(config!(tally_capacity));
    let entry = CONTROL
        .get(0)?
        .tallies
        .get(side as usize)?
        .cursor
        .fetch_add(1);
    if intern::passes_half(entry, 1, capacity) {
        notice::half_full(books);
    }
    if entry >= capacity {
        return None;
    }
    let tally = TALLIES.get(base + entry as u32)?;
    for (place, word) in tally.key.iter().zip(words) {
        place.store(word);
    }
    tally.weight.store(weight);
    tally.count.store(1);
    match free {
        // Whoever else took the slot meanwhile keeps it; this tally is counted all the same.
        Some(slot) => {
            slot.claim(Slot::new(hash, entry as u32).0);
        }
        None => counter::bump(books, Counter::IndexCrowded),
    }
    notice::new_process(books, key.tgid, key.incarnation);
    Some(())
}

/// Whether the tally belongs to the key. A tally is published only when its key is complete.
#[inline(always)]
fn has_key(tally: &Tally, words: &[u64; KEY_WORDS]) -> bool {
    let mut difference = 0;
    for (place, word) in tally.key.iter().zip(words) {
        difference |= place.load() ^ word;
    }
    difference == 0
}
