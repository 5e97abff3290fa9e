//! Recorded memory, broken at will, and what must hold of a walk in it all the same.
//!
//! In: a recording, and a source of randomness. Out: the recording with some of its memory, its descriptor, its registers and its
//! native frames changed, the same ones for the same randomness; what is wrong with a walk in it.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use fastrand::Rng;
use profiler_common::abi::MAX_USER_FRAMES;
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKind, memory::StackEntry, perl};

use super::{Recording, Walk};

/// Numbers at which readers of structures break.
const NUMBERS: [u64; 12] = [
    0,
    1,
    7,
    8,
    63,
    64,
    0xff,
    0xffff_ffff,
    1 << 47,
    1 << 63,
    u64::MAX - 7,
    u64::MAX,
];

/// Changes a recording in one place or in several.
pub fn break_at_will(recording: &mut Recording, rng: &mut Rng) {
    for _ in 0..1 << rng.u32(0..4) {
        change(recording, rng);
    }
}

fn change(recording: &mut Recording, rng: &mut Rng) {
    let process = &mut recording.process;
    let addresses: Vec<u64> = process.memory.keys().copied().collect();
    let (Some(&address), Some(&other)) = (rng.choice(&addresses), rng.choice(&addresses)) else {
        return;
    };
    match rng.u32(0..12) {
        0..=2 => {
            if let Some(byte) = process.memory.get_mut(&address) {
                *byte ^= 1 << rng.u32(0..8);
            }
        }
        3 => process.words(address & !7, &[number(rng)]),
        // Bytes from elsewhere, so that addresses lead to something of another kind.
        4..=6 => {
            let byte = |place| process.memory.get(&((other & !7) + place)).copied();
            let bytes: [u8; 8] = std::array::from_fn(|place| byte(place as u64).unwrap_or(0));
            process.bytes(address & !7, &bytes);
        }
        7 => {
            for address in address..address.saturating_add(rng.u64(1..64)) {
                process.memory.remove(&address);
            }
        }
        // The first word says which runtime it is.
        8 => process.descriptor[rng.usize(1..DESCRIPTOR_WORDS)] = number(rng),
        9 => process.descriptor[rng.usize(1..DESCRIPTOR_WORDS / 2)] ^= 1 << rng.u32(0..64),
        10 => process.registers[rng.usize(0..16)] = number(rng),
        _ => {
            let place = rng.usize(0..recording.natives.len().max(1));
            if let Some(native) = recording.natives.get_mut(place) {
                let numbers = [&mut native.address, &mut native.sp, &mut native.caller_sp];
                if let Some(one) = numbers.into_iter().nth(rng.usize(0..3)) {
                    *one = number(rng);
                }
            }
        }
    }
}

fn number(rng: &mut Rng) -> u64 {
    match rng.u32(0..3) {
        0 => rng.u64(..),
        1 => rng.u64(0..1 << 12),
        _ => NUMBERS[rng.usize(0..NUMBERS.len())],
    }
}

/// Walks in a recording that was broken.
///
/// # Errors
///
/// When a native frame is missing or in another place, when there are more frames than a stack has room for, or when a function is
/// shown that the recording, as it was made, does not show.
pub fn check_broken(broken: &Recording) -> Result<Walk> {
    let walk = broken.replay();
    let natives = walk.shown.iter().filter_map(|shown| match shown {
        StackEntry::Native(place) => Some(*place),
        _ => None,
    });
    ensure!(
        natives.eq(0..broken.natives.len()),
        "native frames are not in their places: {:?}",
        walk.lines
    );
    let count = walk.shown.len();
    ensure!(
        count <= MAX_USER_FRAMES + broken.natives.len(),
        "{count} frames are shown"
    );
    let known: BTreeSet<u64> = broken
        .shows
        .iter()
        .filter_map(|line| address(line))
        .collect();
    for (shown, line) in walk.shown.iter().zip(&walk.lines) {
        if let StackEntry::Function { function, .. } = shown {
            // The name of perl's file is known by nothing but that some statement says where it is.
            let is_file = broken.kind() == Some(RuntimeKind::Perl) && function & perl::OF_FILE != 0;
            ensure!(
                is_file || known.contains(function),
                "{line:?} is shown, where there is no such function"
            );
        }
    }
    Ok(walk)
}

/// The address in a line about a function.
fn address(line: &str) -> Option<u64> {
    let (address, _) = line.strip_prefix("function ")?.split_once(" at ")?;
    u64::from_str_radix(address, 16).ok()
}
