//! Which line each word of a function's code is of.
//!
//! In: the entries of an `rb_iseq_constant_body`, and the table that says which of them a word belongs to, a dictionary of
//! set bits (`struct succ_index_table` in `iseq.c`). Out: pairs of an end in words and a line.

use crate::process::FunctionLines;
use crate::runtime::TargetMemory;
use profiler_common::runtime::{
    Described as _,
    ruby::{Length, at},
};
use profiler_common::walk::Memory as _;

/// The most words of code that lines are looked up of.
const MAX_WORDS: u32 = 1 << 16;
/// The most entries that are read.
const MAX_ENTRIES: u32 = 1 << 16;

/// In a body, whose size in words is the upper half of its first word: entries, positions, number, table.
const BODY_ENTRIES_OF_3_1: u64 = 120;
/// Since 3.2.
const BODY_ENTRIES: u64 = 112;
/// Bytes of an entry, which begins with a line.
const ENTRY_BYTES: usize = 12;

/// Words that the first part of the table is about, and how many in each of its words, by seven bits each.
const FIRST: u32 = 54;
const FIRST_WORDS: usize = 6;
const FIRST_IN_WORD: u32 = 9;
/// Words of code that each of the other parts is about, and its size in words.
const PART: u32 = 512;
const PART_WORDS: usize = 10;

/// The lines of a function.
pub(in crate::runtime) fn lines(memory: &TargetMemory, body: u64) -> FunctionLines {
    read(memory, body).map_or(FunctionLines::None, FunctionLines::Table)
}

fn read(memory: &TargetMemory, body: u64) -> Option<Box<[(u32, u32)]>> {
    let [first] = memory.read(body)?;
    let words = ((first >> 32) as u32).min(MAX_WORDS);
    let place = if memory.descriptor(at::LENGTH) == Length::InFlags as u64 {
        BODY_ENTRIES_OF_3_1
    } else {
        BODY_ENTRIES
    };
    let [entries, _, number, table] = memory.read(body.wrapping_add(place))?;
    let number = (number as u32).min(MAX_ENTRIES);
    let mut bytes = vec![0; number as usize * ENTRY_BYTES];
    memory.copy(entries, &mut bytes)?;
    let lines: Vec<u32> = bytes
        .chunks_exact(ENTRY_BYTES)
        .map(|entry| u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]))
        .collect();
    if number == 1 {
        return Some([(u32::MAX, lines[0])].into());
    }
    let parts = words.saturating_sub(FIRST).div_ceil(PART) as usize;
    let mut bytes = vec![0; 8 * (FIRST_WORDS + PART_WORDS * parts)];
    memory.copy(table, &mut bytes)?;
    let table: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect();
    Some(pairs(words, &table, &lines))
}

/// Ends and lines of so many words of code.
fn pairs(words: u32, table: &[u64], lines: &[u32]) -> Box<[(u32, u32)]> {
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for word in 0..words {
        let entry = entry(table, word).and_then(|entry| lines.get(entry.checked_sub(1)?));
        let line = entry.copied().unwrap_or(0);
        match pairs.last_mut() {
            Some((end, same)) if *same == line => *end = word + 1,
            _ => pairs.push((word + 1, line)),
        }
    }
    pairs.into()
}

/// The number of the entry that a word belongs to, counted from one.
fn entry(table: &[u64], word: u32) -> Option<usize> {
    if word < FIRST {
        let place = table.get((word / FIRST_IN_WORD) as usize)?;
        return Some((place >> (word % FIRST_IN_WORD * 7) & 0x7f) as usize);
    }
    let word = word - FIRST;
    let part = FIRST_WORDS + PART_WORDS * (word / PART) as usize;
    // How many bits are set before the part, before each of its words but the first by nine bits each, and in the word.
    let [before, ranks, bits @ ..] = table.get(part..part + PART_WORDS)? else {
        return None;
    };
    let (index, bit) = (word % PART / 64, word % 64);
    let within = if index == 0 {
        0
    } else {
        ranks >> ((index - 1) * 9) & 0x1ff
    };
    let last = (bits.get(index as usize)? << (63 - bit)).count_ones();
    Some((*before as u32 as u64 + within + u64::from(last)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_functions_have_lines() {
        // Words 0 and 1 are of the first entry, 2 to 4 of the second, the rest of the third.
        let numbers = [1, 1, 2, 2, 2, 3, 3, 3, 3];
        let word = numbers
            .iter()
            .rev()
            .fold(0, |word, number| word << 7 | number);
        let table = [word, 0, 0, 0, 0, 0];
        assert_eq!(*pairs(9, &table, &[7, 9, 8]), [(2, 7), (5, 9), (9, 8)]);
        // Positions beyond the table have no line.
        assert_eq!(
            *pairs(10, &table, &[7, 9, 8]),
            [(2, 7), (5, 9), (9, 8), (10, 0)]
        );
    }

    #[test]
    fn long_functions_have_lines() {
        let mut table = vec![0; FIRST_WORDS + PART_WORDS];
        // One entry before; then one begins at each 32nd word.
        table[FIRST_WORDS] = 1;
        let ranks = (1..8)
            .rev()
            .fold(0, |ranks, index| (ranks << 9) | (2 * index));
        table[FIRST_WORDS + 1] = ranks;
        for bits in &mut table[FIRST_WORDS + 2..] {
            *bits = 1 | 1 << 32;
        }
        for (word, expected) in [(54, 2), (85, 2), (86, 3), (117, 3), (118, 4), (565, 17)] {
            assert_eq!(entry(&table, word), Some(expected), "{word}");
        }
        assert_eq!(entry(&table, 566), None);
    }
}
