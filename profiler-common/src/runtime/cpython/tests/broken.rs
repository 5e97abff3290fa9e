//! Memory that is broken at will.

extern crate std;

use super::{
    CPython, at,
    outer::{two_interpreters_of_3_11, two_interpreters_of_3_13},
    two_levels_of_3_11, two_levels_of_3_13,
};
use crate::runtime::memory::{StackEntry, walk};
use crate::runtime::testing::{assert_functions, random};
use std::vec::Vec;

#[test]
fn broken_memory_ends_in_marks_and_never_in_a_wrong_function() {
    let mut random = random();
    for (process, stack) in [
        two_levels_of_3_11(),
        two_levels_of_3_13(),
        two_interpreters_of_3_11(),
        two_interpreters_of_3_13(),
    ] {
        let places: Vec<u64> = process.memory.keys().copied().collect();
        for _ in 0..4000 {
            let mut broken = process.clone();
            for _ in 0..=random(4) {
                let place = places[random(places.len())];
                match random(4) {
                    0 => drop(broken.memory.remove(&place)),
                    1 => {
                        broken.descriptor[random(at::LAST + 1)] = places[random(places.len())];
                    }
                    // A pointer to somewhere else that can be read.
                    2 => broken.words(place & !7, &[places[random(places.len())]]),
                    _ => broken.bytes(place, &[random(256) as u8]),
                }
            }
            let shown = walk::<CPython>(&broken, &stack, random(2) == 0);
            assert!(shown.len() <= 1024 + stack.len() + 1, "{}", shown.len());
            let natives = shown
                .iter()
                .filter(|one| matches!(one, StackEntry::Native(_)));
            assert_eq!(natives.count(), stack.len());
            assert_functions::<CPython>(&broken, &shown);
        }
    }
}
