//! Names of code that runtimes make.
//!
//! In: a process and addresses of its memory that no file holds. Out: the functions that its jitdump or perf
//! map has there. Both files list code in the order in which it was made and are read once, as a stream: if
//! several definitions cover an address, the last one counts, because memory is reused. No index is built, so
//! a map of a gigabyte costs no memory. Never trusts a number in either: both are written by the program
//! being profiled.
//!
//! Formats: `tools/perf/Documentation/jit-interface.txt` and `jitdump-specification.txt` in the kernel.

mod jitdump;
mod perf_map;

use super::demangle::visible;
use super::symbol_table::SymbolLookup;
use crate::process::{ProcessKey, Processes};
use std::fs::File;
use std::ops::Range;
use std::rc::Rc;

/// How much of a file is read at most, in bytes: the end of a perf map, the beginning of a jitdump.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// How many addresses all definitions of a file may cover together, so that a file full of definitions of
/// everything takes no longer than others.
const MAX_CLAIMS: u64 = 1 << 26;

/// The longest name kept, in bytes.
const MAX_NAME_BYTES: usize = 4 << 10;

/// A file in which a runtime lists the code it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeMap {
    /// `perf-PID.map`: text, a line for each function.
    PerfMap,
    /// `jit-PID.dump`: records of code that was made and moved.
    Jitdump,
}

/// The names that such a file has for code at some ascending addresses; none where it has no definition.
pub fn names_in(kind: CodeMap, file: &File, addresses: &[u64]) -> Vec<Option<Vec<u8>>> {
    let mut names = Names::new(addresses);
    match kind {
        CodeMap::PerfMap => perf_map::read(file, &mut names),
        CodeMap::Jitdump => jitdump::read(file, &mut names),
    }
    let found = names.into_found();
    let name = |of: Option<usize>| Some(found.names[of?].clone());
    found.of.iter().map(|of| name(*of)).collect()
}

/// The functions at some ascending addresses of a process, and whether everything it wrote was read.
pub(super) fn name(
    processes: &mut Processes,
    process_key: ProcessKey,
    addresses: &[u64],
) -> (SymbolLookup, bool) {
    let mut names = Names::new(addresses);
    for (backing, owner) in processes.jitdumps(process_key) {
        if let Ok(dump) = processes.open(backing, &[owner]) {
            jitdump::read(&dump.file.file, &mut names);
        }
    }
    let whole = names.whole;
    let found = names.into_found();
    let left: Vec<usize> = (0..addresses.len())
        .filter(|at| found.of[*at].is_none())
        .collect();
    if left.is_empty() {
        return (found, whole);
    }
    let Some(map) = processes.code_map(process_key) else {
        return (found, whole);
    };
    let addresses: Vec<u64> = left.iter().map(|at| addresses[*at]).collect();
    let mut names = Names::new(&addresses);
    perf_map::read(&map.file, &mut names);
    let whole = whole && names.whole;
    (merge(found, &left, names.into_found()), whole)
}

/// A function that a runtime made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeCode {
    /// Its name, as frames have it.
    pub name: String,
    /// Its addresses in the process.
    pub code: Range<u64>,
}

/// The functions at some ascending addresses of a process, as its jitdump or perf map has them now.
pub fn made_code(
    processes: &mut Processes,
    process_key: ProcessKey,
    addresses: &[u64],
) -> Vec<Option<MadeCode>> {
    let mut names = Names::new(addresses);
    for (backing, owner) in processes.jitdumps(process_key) {
        if let Ok(dump) = processes.open(backing, &[owner]) {
            jitdump::read(&dump.file.file, &mut names);
        }
    }
    let mut made = names.into_made();
    if made.iter().any(Option::is_none)
        && let Some(map) = processes.code_map(process_key)
    {
        let mut names = Names::new(addresses);
        perf_map::read(&map.file, &mut names);
        for (made, mapped) in made.iter_mut().zip(names.into_made()) {
            *made = made.take().or(mapped);
        }
    }
    made
}

/// The functions at some ascending addresses, as a jitdump has them in the end.
pub fn made_in_dump(dump: &File, addresses: &[u64]) -> Vec<Option<MadeCode>> {
    let mut names = Names::new(addresses);
    jitdump::read(dump, &mut names);
    names.into_made()
}

/// The places in a jitdump, by address, of the code that a process made at some ascending addresses, where the dump gives
/// these this name in the end. Code that was moved is left out: it is dumped as it was before.
pub fn dumped_code(dump: &File, pid: u32, name: &str, addresses: &[u64]) -> Vec<(Range<u64>, u64)> {
    let made = made_in_dump(dump, addresses).into_iter().flatten();
    let mut ranges: Vec<Range<u64>> = made
        .filter(|made| made.name == name)
        .map(|made| made.code)
        .collect();
    ranges.dedup();
    jitdump::places(dump, pid, &ranges)
}

/// Fills the gaps in one source with what another knows.
fn merge(mut found: SymbolLookup, left: &[usize], more: SymbolLookup) -> SymbolLookup {
    let first = found.names.len();
    found.names.extend(more.names);
    for (at, of) in left.iter().zip(more.of) {
        found.of[*at] = of.map(|index| first + index);
    }
    found
}

/// The latest name for each of some addresses.
struct Names<'a> {
    addresses: &'a [u64],
    of: Vec<Option<Latest>>,
    /// The addresses of what defines each.
    ranges: Vec<Range<u64>>,
    claims: u64,
    /// Whether everything up to the first invalid record was read.
    whole: bool,
}

/// The latest definition of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Latest {
    Named(Rc<[u8]>),
    /// Moved there: the number of the original definition.
    Moved(u64),
}

impl<'a> Names<'a> {
    fn new(addresses: &'a [u64]) -> Self {
        debug_assert!(addresses.is_sorted());
        Self {
            addresses,
            of: vec![None; addresses.len()],
            ranges: vec![0..0; addresses.len()],
            claims: 0,
            whole: true,
        }
    }

    /// Adds that the `size` bytes of code at `start` are this; `false` once a file has claimed too much.
    fn define(&mut self, start: u64, size: u64, latest: impl FnOnce() -> Latest) -> bool {
        let from = self.addresses.partition_point(|address| *address < start);
        let covered = self.addresses[from..]
            .iter()
            .take_while(|address| **address - start < size)
            .count();
        if covered > 0 {
            self.claims += covered as u64;
            self.of[from..from + covered].fill(Some(latest()));
            self.ranges[from..from + covered].fill(start..start.saturating_add(size));
        }
        let goes_on = self.claims <= MAX_CLAIMS;
        self.whole &= goes_on;
        goes_on
    }

    /// Checks the size of a file that is about to be read against the limit.
    fn note_length(&mut self, file: &File) {
        let bytes = file.metadata().map_or(0, |status| status.len());
        self.whole &= bytes <= MAX_FILE_BYTES;
    }

    fn into_made(self) -> Vec<Option<MadeCode>> {
        let all = self.of.into_iter().zip(self.ranges);
        all.map(|(of, code)| match of {
            Some(Latest::Named(name)) => Some(MadeCode {
                name: visible(&name),
                code,
            }),
            _ => None,
        })
        .collect()
    }

    fn into_found(self) -> SymbolLookup {
        let mut found = SymbolLookup {
            of: vec![None; self.of.len()],
            ..SymbolLookup::default()
        };
        for (of, latest) in found.of.iter_mut().zip(self.of) {
            let Some(Latest::Named(name)) = latest else {
                continue;
            };
            // Adjacent addresses are often in the same function.
            if found.names.last().is_none_or(|last| **last != *name) {
                found.names.push(name.to_vec());
            }
            *of = Some(found.names.len() - 1);
        }
        found
    }
}

#[cfg(test)]
mod tests;
