//! Searches the index of code: which segment of which file has which unwind table.

use crate::platform::{
    config::config,
    loops::{Turn, repeat},
    maps::{CODE, Code},
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{CODE_PROBES, CODE_SLOT_BITS, CodeKey, CodeState, used_clock},
    intern::Hash,
};

struct Probing {
    hash: u32,
    /// The slot that was found; none yet if it is beyond the last one.
    slot: u32,
    key: CodeKey,
    offset: u64,
}

const SLOTS: u32 = 1 << CODE_SLOT_BITS;

impl Turn for Probing {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let place = self.hash.wrapping_add(index) & (SLOTS - 1);
        let Some(slot) = CODE.get(place) else {
            return ControlFlow::Break(());
        };
        let state = slot.state.load();
        if state == 0 {
            return ControlFlow::Break(());
        }
        if state == CodeState::GONE.0 || !self.is_for(slot) {
            return ControlFlow::Continue(());
        }
        self.slot = place;
        ControlFlow::Break(())
    }
}

impl Probing {
    #[inline(always)]
    fn is_for(&self, slot: &Code) -> bool {
        let difference = (slot.key.device.load() ^ self.key.device)
            | (slot.key.inode.load() ^ self.key.inode)
            | (slot.key.modified.load() ^ self.key.modified);
        difference == 0 && slot.start.load() <= self.offset && self.offset < slot.end.load()
    }
}

/// The slot of the byte at `offset` of a file with this [`hash`].
#[inline(always)]
pub(crate) fn find(hash: Hash, key: CodeKey, offset: u64) -> Option<&'static Code> {
    let mut probing = Probing {
        hash: hash.slot(0, u32::MAX),
        slot: SLOTS,
        key,
        offset,
    };
    repeat(CODE_PROBES, &mut probing);
    CODE.get(probing.slot)
}

/// Records that a slot was used.
#[inline(always)]
pub(crate) fn note_use(slot: &Code, now: u64) {
    let used = used_clock(now);
    if slot.used.load() != used {
        slot.used.store(used);
    }
}

/// Where the search for a file begins.
#[inline(always)]
pub(crate) fn hash(key: CodeKey) -> Hash {
    Hash::new(config!(seed))
        .with(key.device)
        .with(key.inode)
        .with(key.modified)
}
