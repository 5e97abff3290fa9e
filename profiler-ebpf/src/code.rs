//! Looking through the index of code: which part of a file has which unwind table.

use crate::{
    config::config,
    maps::{CODE, Code},
    repeat::{Turn, repeat},
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{CODE_PROBES, CODE_SLOT_BITS, CodeKey, CodeState, used_clock},
    intern::Hash,
};

/// What is published of a place in a file.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) shift: u64,
    pub(crate) state: CodeState,
}

struct Probing {
    hash: Hash,
    key: CodeKey,
    offset: u64,
    now: u64,
    known: Option<Known>,
}

impl Turn for Probing {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let Some(slot) = CODE.get(self.hash.slot(index, (1 << CODE_SLOT_BITS) - 1)) else {
            return ControlFlow::Break(());
        };
        let state = slot.state.load();
        if state == 0 {
            return ControlFlow::Break(());
        }
        if state == CodeState::GONE.0 || !self.is_for(slot) {
            return ControlFlow::Continue(());
        }
        self.known = Some(Known {
            start: slot.start.load(),
            end: slot.end.load(),
            shift: slot.shift.load(),
            state: CodeState(state),
        });
        let used = used_clock(self.now);
        if slot.used.load() != used {
            slot.used.store(used);
        }
        ControlFlow::Break(())
    }
}

impl Probing {
    #[inline(always)]
    fn is_for(&self, slot: &Code) -> bool {
        let difference = (slot.key[0].load() ^ self.key.device)
            | (slot.key[1].load() ^ self.key.inode)
            | (slot.key[2].load() ^ self.key.modified);
        difference == 0 && slot.start.load() <= self.offset && self.offset < slot.end.load()
    }
}

/// What is published of the byte at `offset` of a file.
#[inline(always)]
pub(crate) fn find(key: CodeKey, offset: u64, now: u64) -> Option<Known> {
    let mut probing = Probing {
        hash: hash(key),
        key,
        offset,
        now,
        known: None,
    };
    repeat(CODE_PROBES, &mut probing);
    probing.known
}

/// Where the search for a file begins.
#[inline(always)]
pub(crate) fn hash(key: CodeKey) -> Hash {
    Hash::new(config!(seed))
        .with(key.device)
        .with(key.inode)
        .with(key.modified)
}
