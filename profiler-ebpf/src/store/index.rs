//! Searches an index: from a hash to the slot of its entry, or to a free one.

use crate::platform::{
    loops::{Turn, repeat_anywhere},
    word::Word,
};
use aya_ebpf::maps::Array;
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::intern::{Hash, PROBES, Probe, Slot};

/// The result of a search.
#[derive(Clone, Copy)]
pub(crate) enum SlotLookup {
    /// This entry has the same tag and is probably the one.
    Entry(u32),
    /// There is none; this slot of the map is free.
    Free(u32),
    /// There is none among the slots that are tried, and none of those is free.
    Crowded,
}

impl SlotLookup {
    const ENTRY: u64 = 0;
    const FREE: u64 = 1;
    const CROWDED: u64 = 2;

    /// As one initialized number: the verifier does not let uninitialized parts be copied.
    #[inline(always)]
    const fn word(kind: u64, place: u32) -> u64 {
        kind << 32 | place as u64
    }

    #[inline(always)]
    const fn from_word(word: u64) -> Self {
        match word >> 32 {
            Self::ENTRY => Self::Entry(word as u32),
            Self::FREE => Self::Free(word as u32),
            _ => Self::Crowded,
        }
    }
}

/// One probe after the other.
struct Probing {
    map: &'static Array<Word>,
    base: u32,
    mask: u32,
    hash: Hash,
    /// A [`SlotLookup`].
    found: u64,
}

impl Turn for Probing {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let place = self.base + self.hash.slot(index, self.mask);
        let Some(slot) = self.map.get(place) else {
            return ControlFlow::Break(());
        };
        self.found = match Slot(slot.load()).probe(self.hash) {
            Probe::Other => return ControlFlow::Continue(()),
            Probe::Entry(entry) => SlotLookup::word(SlotLookup::ENTRY, entry),
            Probe::Free => SlotLookup::word(SlotLookup::FREE, place),
        };
        ControlFlow::Break(())
    }
}

/// Searches for `hash` among the `mask + 1` slots from `base` on.
///
/// Through `repeat_anywhere` although the loop is short: what follows is then verified once, and not once for each probe
/// that may end the search.
#[inline(always)]
pub(crate) fn find(map: &'static Array<Word>, base: u32, mask: u32, hash: Hash) -> SlotLookup {
    let mut probing = Probing {
        map,
        base,
        mask,
        hash,
        found: SlotLookup::word(SlotLookup::CROWDED, 0),
    };
    repeat_anywhere(PROBES, PROBES, &mut probing);
    // Hidden from the compiler, which would drop the number.
    SlotLookup::from_word(black_box(probing.found))
}

/// Makes a free slot lead from `hash` to `entry`, unless another CPU took it meanwhile.
#[inline(always)]
pub(crate) fn claim(map: &'static Array<Word>, slot: u32, hash: Hash, entry: u32) {
    if let Some(slot) = map.get(slot) {
        slot.claim(Slot::new(hash, entry).0);
    }
}
