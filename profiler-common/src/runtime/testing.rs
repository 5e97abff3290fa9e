//! Parts that the tests of several runtimes share.
//!
//! In: memory that a test made. Out: what is expected of it, ways to break it, assertions on what is left.

extern crate std;

use super::{
    Chain, NativeFrame, RemoteString,
    memory::{Recorded, StackEntry, walk},
};
use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestCaseResult};
use std::{fmt::Debug, string::String, vec::Vec};

/// A frame of the chain.
pub(super) fn function(function: u64, position: u32) -> StackEntry {
    StackEntry::Function { function, position }
}

/// Where a string begins, and its length.
pub(super) fn extent(piece: RemoteString) -> (u64, u32) {
    (piece.address, piece.bytes)
}

/// A string of one byte a character.
pub(super) fn text(process: &Recorded, piece: RemoteString) -> String {
    let bytes = (0..u64::from(piece.bytes)).map(|at| process.memory[&(piece.address + at)]);
    bytes.map(char::from).collect()
}

/// Asserts that no two are the same.
pub(super) fn assert_distinct<T: PartialEq + Debug>(all: &[T]) {
    for (place, one) in all.iter().enumerate() {
        assert!(!all[..place].contains(one), "{all:?}");
    }
}

/// Asserts that all functions that are shown are functions.
pub(super) fn assert_functions<R: Chain>(process: &Recorded, shown: &[StackEntry]) {
    for one in shown {
        if let StackEntry::Function { function, .. } = one {
            assert!(R::check(process, *function).is_some(), "{one:?}");
        }
    }
}

/// Numbers below a bound, the same each time: a linear congruential generator (Knuth, MMIX).
pub(super) fn random() -> impl FnMut(usize) -> usize {
    let mut state = 1u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

/// Walks memory of which some bytes are changed, many times: it ends, and shows no wrong function.
pub(super) fn walk_changed_bytes<R: Chain>(process: &Recorded, stack: &[NativeFrame]) {
    let places: Vec<u64> = process.memory.keys().copied().collect();
    let mut random = random();
    for _ in 0..2000 {
        let mut broken = process.clone();
        for _ in 0..8 {
            broken.bytes(places[random(places.len())], &[random(256) as u8]);
        }
        let shown = walk::<R>(&broken, stack, true);
        assert!(shown.len() <= 1024 + stack.len() + 2, "{}", shown.len());
        assert_functions::<R>(&broken, &shown);
    }
}

/// A change of memory: where, a byte, and which pointer is put in the byte's place if that is odd.
type Change = (Index, u8, Index);

/// Changes of memory.
pub(super) fn changes() -> impl Strategy<Value = Vec<Change>> {
    vec((any::<Index>(), any::<u8>(), any::<Index>()), 1..40)
}

/// Walks memory that is changed: it ends, and keeps the native frames.
pub(super) fn walk_changed<R: Chain>(
    mut process: Recorded,
    stack: &[NativeFrame],
    (changes, pointers): (Vec<Change>, &[u64]),
    breaks: bool,
) -> TestCaseResult {
    let places: Vec<u64> = process.memory.keys().copied().collect();
    for (place, byte, pointer) in changes {
        let place = places[place.index(places.len())];
        if byte & 1 == 0 {
            process.bytes(place, &[byte]);
        } else {
            process.words(place & !7, &[*pointer.get(pointers)]);
        }
    }
    let walked = walk::<R>(&process, stack, breaks);
    let natives = walked
        .iter()
        .filter(|shown| matches!(shown, StackEntry::Native(_)));
    prop_assert_eq!(natives.count(), stack.len());
    prop_assert!(walked.len() <= 1024 + stack.len());
    Ok(())
}
