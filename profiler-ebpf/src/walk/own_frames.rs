//! Where the frames of a runtime lie that were put into a stack.
//!
//! In: the address of a frame, and the place of its words in the stack. Out: the address again, once it is to be told what the
//! function belongs to. [`profiler_common::runtime::own_frames`] says how it is packed into the scratch memory.

use crate::walk::runtime::scratch::Chains;
use core::hint::black_box;
use profiler_common::runtime::own_frames::{self, Position};

/// Notes a frame.
#[inline(always)]
pub(crate) fn note(chains: &Chains, place: usize, address: u64) {
    if chains.own_base.load() == 0 {
        chains.own_base.store(address);
    }
    let bits = own_frames::bits(address, chains.own_base.load());
    let position = Position::of(place);
    if let Some(word) = chains.own_frames.get(black_box(position.word)) {
        word.store(position.put(word.load(), bits));
    }
}

/// The address of a frame that was noted; zero if it is not known.
#[inline(always)]
pub(crate) fn address(chains: &Chains, place: usize) -> u64 {
    let position = Position::of(place);
    let word = chains.own_frames.get(black_box(position.word));
    match word.and_then(|word| position.distance(word.load())) {
        None => 0,
        Some(distance) => chains.own_base.load().wrapping_add(distance),
    }
}
