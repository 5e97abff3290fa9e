//! Where the frames of a runtime lie that were put into a stack.
//!
//! In: the address of a frame, and the place of its words in the stack. Out: the address again, once it is to be told what the
//! function belongs to. All lie within the steps that a walk takes from the first that was shown, so each has 16 bits: a frame's
//! distance from that one, in words, plus one. Zero stands for a frame that is further away.

use crate::platform::maps::Chains;
use core::hint::black_box;

/// Frames in a word of the scratch memory.
const IN_WORD: usize = 4;
const BITS: usize = 64 / IN_WORD;
const MASK: u64 = (1 << BITS) - 1;

/// In which word a frame stands, and how far it is shifted there. `place`: of its words in the stack, which are two.
#[inline(always)]
fn position(place: usize) -> (usize, usize) {
    let frame = place / 2;
    (black_box(frame / IN_WORD), frame % IN_WORD * BITS)
}

/// Notes a frame.
#[inline(always)]
pub(crate) fn note(chains: &Chains, place: usize, address: u64) {
    if chains.own_base.load() == 0 {
        chains.own_base.store(address);
    }
    let distance = address.wrapping_sub(chains.own_base.load()) / 8;
    let packed = if distance < MASK { distance + 1 } else { 0 };
    let (word, shift) = position(place);
    if let Some(word) = chains.own_frames.get(word) {
        let others = word.load() & !(MASK << shift);
        word.store(others | packed << shift);
    }
}

/// The address of a frame that was noted; zero if it is not known.
#[inline(always)]
pub(crate) fn address(chains: &Chains, place: usize) -> u64 {
    let (word, shift) = position(place);
    let word = chains.own_frames.get(word);
    match word.map_or(0, |word| word.load() >> shift & MASK) {
        0 => 0,
        packed => chains.own_base.load().wrapping_add((packed - 1) * 8),
    }
}
