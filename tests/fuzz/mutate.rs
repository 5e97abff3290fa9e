//! Making broken inputs from real ones.
//!
//! In: one or two real inputs, and a source of randomness. Out: bytes, the same ones for the same randomness.

use std::ops::Range;

use fastrand::Rng;

use crate::corpus::Seed;

/// Numbers at which readers of binary formats break.
const NUMBERS: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x10000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Pieces at which parsers of our texts break.
const PIECES: [&[u8]; 24] = [
    b" ",
    b";",
    b"\n",
    b"-",
    b"--",
    b":",
    b"\0",
    b"\xff",
    b"\xe2\x80\xa8",
    b"\\012",
    b"#",
    b"# ",
    b"\r\n",
    b"\t",
    b"18446744073709551615",
    b"18446744073709551616",
    b"ffffffffffffffff",
    b"10000000000000000",
    b"_[k]",
    b"[tid 1]",
    b"[cpu 0]",
    b"[unknown]",
    b" (deleted)",
    b"r-xp",
];

/// An object file with some of its headers and sections changed.
pub(crate) fn object(one: &Seed, other: &Seed, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = one.bytes.clone();
    // Most inputs shall be read far, so most have few changes.
    for _ in 0..1 << rng.u32(0..6) {
        let part = one.parts[rng.usize(..one.parts.len())].clone();
        change(&mut bytes, part, other, rng);
    }
    if rng.u32(0..20) == 0 {
        bytes.truncate(rng.usize(..=bytes.len()));
    }
    bytes
}

/// A change within a part, which does not change how long it is.
fn change(bytes: &mut [u8], part: Range<usize>, other: &Seed, rng: &mut Rng) {
    // An earlier change cannot have made the file shorter, but the other file may be.
    let at = rng.usize(part.clone());
    let rest = &mut bytes[at..part.end];
    match rng.u32(0..10) {
        0 | 1 => rest[0] ^= 1 << rng.u32(0..8),
        2 => rest[0] = rng.u8(..),
        3..=5 => {
            let number = NUMBERS[rng.usize(..NUMBERS.len())];
            let number = number.wrapping_add_signed(rng.i64(-2..3)).to_le_bytes();
            put(rest, &number[..1 << rng.u32(0..4)]);
        }
        // A length or an offset that is nearly right.
        6 => {
            if let Some(bytes) = rest.first_chunk_mut::<4>() {
                let near = u32::from_le_bytes(*bytes).wrapping_add_signed(rng.i32(-16..17));
                *bytes = near.to_le_bytes();
            }
        }
        // The same somewhere else in it, such as another description's length or instructions.
        7 => {
            let from = rng.usize(part.clone());
            let length = rng.usize(1..=64).min(part.end - from);
            let piece = bytes[from..from + length].to_vec();
            put(&mut bytes[at..part.end], &piece);
        }
        // A number that goes on for ever.
        8 => put(rest, &[0xff; 24][..rng.usize(1..=24)]),
        _ => {
            let from = &other.parts[rng.usize(..other.parts.len())];
            let from = &other.bytes[from.clone()];
            let start = rng.usize(..from.len());
            let length = rng.usize(1..=256).min(from.len() - start);
            put(rest, &from[start..start + length]);
        }
    }
}

/// Overwrites as much as there is room for.
fn put(room: &mut [u8], bytes: &[u8]) {
    let length = bytes.len().min(room.len());
    room[..length].copy_from_slice(&bytes[..length]);
}

/// A text with pieces put in, taken out, doubled and changed.
pub(crate) fn text(one: &Seed, other: &Seed, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = one.bytes.clone();
    for _ in 0..1 << rng.u32(0..6) {
        let at = rng.usize(..=bytes.len());
        let to = (at + rng.usize(0..30)).min(bytes.len());
        match rng.u32(0..6) {
            0 => drop(bytes.drain(at..to)),
            1 | 2 => {
                let piece = PIECES[rng.usize(..PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let piece = bytes[at..to].repeat(rng.usize(1..20));
                bytes.splice(at..at, piece);
            }
            4 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.u8(..);
                }
            }
            _ => {
                let from = rng.usize(..=other.bytes.len());
                let end = (from + rng.usize(0..100)).min(other.bytes.len());
                bytes.splice(at..to, other.bytes[from..end].iter().copied());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(bytes: &[u8]) -> Seed {
        Seed {
            bytes: bytes.to_vec(),
            parts: vec![0..4, 8..bytes.len()],
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_input() {
        let (one, other) = (seed(&[1; 200]), seed(&[2; 90]));
        for number in 0..500 {
            let make = |make: fn(&Seed, &Seed, &mut Rng) -> Vec<u8>| {
                let twice = [(); 2].map(|()| make(&one, &other, &mut Rng::with_seed(number)));
                assert_eq!(twice[0], twice[1]);
                twice[0] != one.bytes
            };
            // Some changes undo each other, or put what was there.
            assert!(make(object) || make(text) || number > 0);
        }
    }

    #[test]
    fn mutation_changes_only_the_given_parts() {
        let (one, other) = (seed(&[1; 200]), seed(&[2; 90]));
        let mut changed = 0;
        for number in 0..500 {
            let bytes = object(&one, &other, &mut Rng::with_seed(number));
            if let Some(between) = bytes.get(4..8) {
                assert_eq!(between, [1; 4]);
            }
            changed += usize::from(bytes != one.bytes);
        }
        assert!(changed > 400, "{changed} of 500 inputs were changed");
    }
}
