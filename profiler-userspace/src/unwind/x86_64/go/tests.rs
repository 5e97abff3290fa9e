//! Tests of the frames that compilers make, against reading the code.

use super::assembly::Switch;
use super::*;
use crate::unwind::go::tests::rules_at;

const PUSHED: &[u8] = &[
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3,
];
const STORED: &[u8] = &[
    0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10, 0x90, 0x48,
    0x8b, 0x6c, 0x24, 0x10, 0x48, 0x83, 0xc4, 0x18, 0xc3,
];

#[test]
fn the_frame_pointer_is_the_caller_s_until_it_is_saved() {
    let sizes = [(1, 0), (8, 8), (13, 24), (14, 8), (15, 0)];
    let kept = frame(24, saved());
    let wanted = [
        (0, frame(0, Slot::SAME)),
        (1, frame(8, saved())),
        (8, kept),
        (13, frame(8, saved())),
        (14, frame(0, Slot::SAME)),
    ];
    assert_eq!(compiled(&sizes, |_| Prologue::Push), wanted);
    let read = assembly::rules(PUSHED, &sizes, false, Switch::Unknown);
    assert_eq!(rules_at(&read, 0..15), rules_at(&wanted, 0..15));
    let sizes = [(4, 0), (24, 24), (25, 0)];
    let wanted = [
        (0, frame(0, Slot::SAME)),
        (4, frame(24, Slot::SAME)),
        (9, kept),
        (24, frame(0, Slot::SAME)),
    ];
    assert_eq!(compiled(&sizes, |_| Prologue::Store), wanted);
    let read = assembly::rules(STORED, &sizes, false, Switch::Unknown);
    assert_eq!(rules_at(&read, 0..25), rules_at(&wanted, 0..25));
}

#[test]
fn sizes_that_no_frame_has_are_no_rule() {
    for size in [-8, 4, i32::MAX, i32::MIN] {
        assert_eq!(frame(size, saved()), Rule::MISSING);
        compiled(&[(4, size), (8, 8)], |_| Prologue::Store);
    }
}
