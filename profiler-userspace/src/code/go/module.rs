//! The `runtime.moduledata` of a Go program: where code and lists begin, which its table does not
//! say.
//!
//! It has no symbol, but begins with the table's address and that of the table's names. In position-independent programs
//! both are written by the loader, and stand in relocations.

use super::table::{Format, Table};
use crate::code::relocations;
use crate::object::image::read_at;
use crate::object::{Image, Part};
use std::collections::HashMap;

/// How much data is searched, in bytes.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;

/// How much is searched at a time, in bytes.
const BLOCK_BYTES: u64 = 1 << 20;

/// How many words of it are used.
const WORDS: u64 = 48;

/// The place of the address where code begins, in words.
const TEXT: u64 = 22;

/// Where a program's parts begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// Its code; zero where functions are listed by address.
    pub(super) text: u64,
    /// The address that functions' data are relative to.
    pub(super) data: Option<u64>,
}

impl Module {
    /// That of the program with this table; none if its code is not to be found.
    pub(super) fn find(image: &Image<'_>, table: &Table<'_>) -> Option<Self> {
        // The place of what functions' data are relative to.
        let data = match table.format {
            Format::Go116 => None,
            Format::Go118 => Some(38),
            Format::Go120 => Some(40),
        };
        let names = table.address().checked_add(table.names)?;
        let candidates = relocated(image, table.address())
            .into_iter()
            .chain(plain(image, table.address()));
        for (address, words) in candidates {
            let word = |number: u64| {
                let at = address.checked_add(number * 8)?;
                let relocated = words.get(&at).copied();
                relocated.or_else(|| {
                    let bytes = image.bytes(at, 8);
                    Some(u64::from_le_bytes(*bytes.first_chunk()?))
                })
            };
            let text = word(TEXT).filter(|&text| image.code_at(text).is_some());
            if word(1) == Some(names)
                && let Some(text) = text
            {
                let is_by_address = table.format == Format::Go116;
                return Some(Self {
                    text: if is_by_address { 0 } else { text },
                    data: data.and_then(word),
                });
            }
        }
        let text = match table.format {
            Format::Go116 => 0,
            Format::Go118 | Format::Go120 => table.text?,
        };
        Some(Self { text, data: None })
    }
}

/// A place that may be a module's beginning, and what the loader writes there and behind.
type Candidate = (u64, HashMap<u64, u64>);

/// The places into which the loader writes the table's address.
fn relocated(image: &Image<'_>, table: u64) -> Option<Candidate> {
    const EVERYWHERE: Part = Part {
        address: 0,
        offset: 0,
        bytes: u64::MAX,
    };
    let mut place = None;
    relocations::each_relative(image, &[EVERYWHERE], |at, value| {
        if value == table && place.is_none() {
            place = Some(at);
        }
    });
    let address = place?;
    let around = Part {
        address,
        offset: 0,
        bytes: WORDS * 8,
    };
    let mut words = HashMap::new();
    relocations::each_relative(image, &[around], |at, value| {
        words.insert(at, value);
    });
    Some((address, words))
}

/// The places in data where the table's address stands.
fn plain<'i>(image: &'i Image<'_>, table: u64) -> impl Iterator<Item = Candidate> + 'i {
    let mut left = MAX_SEARCHED_BYTES;
    let blocks = image.data().flat_map(|part| {
        let count = part.bytes.div_ceil(BLOCK_BYTES);
        (0..count).map(move |number| (part, number * BLOCK_BYTES))
    });
    let blocks = blocks.take_while(move |_| {
        left = left.saturating_sub(BLOCK_BYTES);
        left > 0
    });
    blocks.flat_map(move |(part, from)| {
        let size = (part.bytes - from).min(BLOCK_BYTES) as usize;
        let bytes = read_at(image.file, part.offset.saturating_add(from), size);
        let words = bytes.as_chunks::<8>().0.iter().zip(0u64..);
        let found = words.filter(|(word, _)| u64::from_le_bytes(**word) == table);
        let address = part.address.wrapping_add(from);
        let found: Vec<Candidate> = found
            .map(|(_, number)| (address.wrapping_add(number * 8), HashMap::new()))
            .collect();
        found
    })
}
