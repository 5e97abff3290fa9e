//! Targets: the parsers that are fed, and their inputs.
//!
//! In: an input's number. Out: the input, and its being read to the end, as flame-bpf reads such a thing.

use std::hint::black_box;
use std::str::FromStr;

use anyhow::Result;
use fastrand::Rng;
use flame_bpf::object::{Elf, ElfAddress, FileOffset};
use flame_bpf::process::proc_maps;
use flame_bpf::profile::{Unit, fold};
use flame_bpf::unwind::{UnwindTable, show, stretches_around};

use crate::corpus::{self, Seed};
use crate::{inputs, memory, mutate, names, raw};

/// A reader of what others wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The table builder: ELF files, their unwind sections above all.
    Unwind,
    /// The reader of ELF files' tables.
    Elf,
    /// The parser of `/proc/PID/maps`.
    Maps,
    /// The parser of folded stacks.
    Folded,
    /// The reader of raw recordings.
    Raw,
    /// The readers of perf maps and jitdumps.
    CodeMap,
    /// The reader of ELF files' symbols.
    Symbols,
    /// The readers of profiles of other tools.
    Inputs,
    /// Walks along chains of interpreters.
    Memory,
}

/// There is no such target.
#[derive(Debug, thiserror::Error)]
#[error("the targets are unwind, elf, maps, folded, code-map, symbols, raw, inputs and memory")]
pub(crate) struct UnknownTarget;

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        let mut all = Self::ALL.into_iter();
        all.find(|target| target.name() == name)
            .ok_or(UnknownTarget)
    }
}

impl Target {
    pub(crate) const ALL: [Self; 9] = [
        Self::Unwind,
        Self::Elf,
        Self::Maps,
        Self::Folded,
        Self::CodeMap,
        Self::Symbols,
        Self::Raw,
        Self::Inputs,
        Self::Memory,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unwind => "unwind",
            Self::Elf => "elf",
            Self::Maps => "maps",
            Self::Folded => "folded",
            Self::Raw => "raw",
            Self::CodeMap => "code-map",
            Self::Symbols => "symbols",
            Self::Inputs => "inputs",
            Self::Memory => "memory",
        }
    }

    /// Seeds that inputs are made from.
    pub(crate) fn corpus(self) -> Result<Vec<Seed>> {
        match self {
            Self::Unwind | Self::Elf | Self::Symbols => corpus::objects(),
            Self::CodeMap => Ok(names::code_maps()),
            Self::Maps => Ok(corpus::maps()),
            Self::Folded => Ok(corpus::folded()),
            Self::Raw => raw::corpus(),
            Self::Inputs => Ok(inputs::corpus()),
            Self::Memory => memory::corpus(),
        }
    }

    /// An input, by the seed and its number.
    pub(crate) fn input(self, corpus: &[Seed], seed: u64, number: u64) -> Vec<u8> {
        let mut rng = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let one = &corpus[rng.usize(..corpus.len())];
        let other = &corpus[rng.usize(..corpus.len())];
        match self {
            Self::Unwind | Self::Elf | Self::Symbols => mutate::object(one, other, &mut rng),
            // Dumps and pprof are binary, and the others are not.
            Self::CodeMap | Self::Inputs if rng.bool() => mutate::object(one, other, &mut rng),
            Self::Maps | Self::Folded | Self::CodeMap | Self::Inputs => {
                mutate::text(one, other, &mut rng)
            }
            Self::Raw => raw::input(one, other, &mut rng),
            Self::Memory => memory::input(one, &mut rng),
        }
    }

    /// Reads an input, and uses what came of it.
    pub(crate) fn read(self, input: &[u8]) {
        match self {
            Self::Unwind => unwind(input),
            Self::Elf => elf(input),
            Self::Maps => {
                let visit = |entry: proc_maps::Entry<'_>| {
                    black_box(proc_maps::unescape(entry.name));
                    assert!(entry.range.start < entry.range.end);
                    true
                };
                proc_maps::each_executable(input, visit).expect("memory can be read");
            }
            Self::Folded => folded(input),
            Self::Raw => raw::read(input),
            Self::CodeMap => names::read_code_map(input),
            Self::Symbols => names::read_symbols(input),
            Self::Inputs => inputs::read(input),
            Self::Memory => memory::read(input),
        }
    }
}

fn unwind(input: &[u8]) {
    let Ok(table) = UnwindTable::parse(input) else {
        return;
    };
    // In proportion to what there is, and to what it was made from.
    let rows = table.rows.len() as u64;
    assert!(
        rows <= table.origin.section_bytes.max(input.len() as u64) * 2 + 64,
        "{rows} rows of {} bytes of sections",
        table.origin.section_bytes
    );
    for range in &table.ranges {
        let last = range.addresses.end - 1;
        for address in [range.addresses.start, last, range.addresses.end, last / 2] {
            black_box(table.rule_at(ElfAddress(address)));
        }
    }
    for row in &table.rows {
        assert!(
            usize::from(row.rule) < table.rules.len(),
            "{row:?} has no rule"
        );
    }
    black_box(show(&table, Some(ElfAddress(0))));
    if table.rows.len() + table.pages.len() < 1 << 16 {
        black_box(show(&table, None));
    }
}

fn elf(input: &[u8]) {
    let Some(elf) = Elf::parse(input) else {
        return;
    };
    for offset in [0, 1, 4096, input.len() as u64, u64::MAX] {
        black_box(elf.segments.address(FileOffset(offset)));
    }
    black_box(format!("{elf:?}"));
    let Ok(file) = flame_bpf::object::RegularFile::in_memory("input", input) else {
        return;
    };
    if let Ok(table) = UnwindTable::parse(input) {
        let ranges = table.ranges.iter().take(8).map(|range| &range.addresses);
        let addresses: Vec<u64> = ranges
            .flat_map(|range| [range.start, range.start / 2 + range.end / 2, range.end - 1])
            .collect();
        black_box(stretches_around(&file.file, &addresses));
    }
    elf.each_function(&file.file, |function| {
        black_box(function.name.len());
    });
}

fn folded(input: &[u8]) {
    let Ok(profile) = fold::parse(input, Unit::Samples) else {
        return;
    };
    // A profile that can be read can be written, and then read without loss.
    let mut text = Vec::new();
    let style = fold::FoldStyle::default();
    fold::fold(&profile, style, &mut text).expect("memory can be written");
    let again = fold::parse(&text, Unit::Samples).expect("what was written can be read");
    let mut second = Vec::new();
    fold::fold(&again, style, &mut second).expect("memory can be written");
    assert_eq!(
        text, second,
        "folded text changes when it is read and written"
    );
}
