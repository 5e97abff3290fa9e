//! Mappings of one process, as read from `/proc/PID/maps` and as reported by the kernel half.
//!
//! In: readings and mapping events. Out: what an address lies in. Never reads a file of the process's own.

use super::backing::{Backing, BackingId, Backings};
use super::proc_maps;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::ops::Range;
use std::time::SystemTime;

/// The most executable mappings kept of one reading: a hundred times what programs have. Addresses in
/// the rest are unknown, unless mapping events have them; see [`Shortage`].
const MAX_MAPPINGS: usize = 16 << 10;

/// Place of an address: a mapping, and the offset in its backing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The backing that is mapped there.
    pub backing: BackingId,
    /// For a file, the offset in it; otherwise how far into the mapping.
    pub offset: u64,
    /// The whole mapping.
    pub mapping: Range<u64>,
    /// When the mapping was seen.
    pub seen: SystemTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    pub(super) offset: u64,
    pub(super) backing: BackingId,
}

impl Mapping {
    pub(super) fn place(&self, address: u64, seen: SystemTime) -> Place {
        Place {
            backing: self.backing,
            offset: self.offset.wrapping_add(address - self.range.start),
            mapping: self.range.clone(),
            seen,
        }
    }

    /// Whether the other mapping adds nothing.
    fn says_the_same(&self, other: &Self) -> bool {
        let within = self.range.start <= other.range.start && other.range.end <= self.range.end;
        let ahead = other.range.start.wrapping_sub(self.range.start);
        within && self.backing == other.backing && self.offset.wrapping_add(ahead) == other.offset
    }
}

/// The mapping that an address lies in, of some that ascend.
pub(super) fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.range.start <= address);
    let mapping = &mappings[after.checked_sub(1)?];
    mapping.range.contains(&address).then_some(mapping)
}

#[derive(Debug)]
pub(super) struct Reading {
    pub(super) taken: SystemTime,
    // Ascending, as the kernel lists them.
    pub(super) mappings: Box<[Mapping]>,
}

/// One process that was seen.
#[derive(Debug, Default)]
pub struct Process {
    // Whether it was sampled.
    pub(super) met: bool,
    // Whether its mappings were read; it may have ended before.
    pub(super) looked_at: bool,
    // Oldest first. Empty if it had ended before the first could be read.
    pub(super) readings: Vec<Reading>,
    // Mappings reported by the kernel half: files, and memory of which a reading may say more.
    pub(super) reported: ReportedMappings,
    pub(super) reported_memory: ReportedMappings,
}

impl Process {
    /// The place of an address, if it is known.
    pub fn place(&self, address: u64) -> Option<Place> {
        let read = || {
            self.readings.iter().find_map(|reading| {
                let mapping = reading.find(address)?;
                Some(mapping.place(address, reading.taken))
            })
        };
        self.reported
            .place(address)
            .or_else(read)
            .or_else(|| self.reported_memory.place(address))
    }

    /// Mappings of code, by the last reading: backings and their addresses.
    pub fn code(&self) -> impl Iterator<Item = (BackingId, Range<u64>)> {
        let last = self.readings.last();
        let mappings = last.map(|reading| &*reading.mappings).unwrap_or_default();
        mappings
            .iter()
            .map(|mapping| (mapping.backing, mapping.range.clone()))
    }

    /// All that it is known to have mapped.
    pub(super) fn backings(&self) -> impl Iterator<Item = BackingId> {
        let read = self.readings.iter().flat_map(|reading| &reading.mappings);
        let reported = self
            .reported
            .mappings()
            .chain(self.reported_memory.mappings());
        read.chain(reported).map(|mapping| mapping.backing)
    }
}

impl Reading {
    pub(super) fn find(&self, address: u64) -> Option<&Mapping> {
        find(&self.mappings, address)
    }

    /// Reads the mappings of a process; and whether there were more than are kept. `is_there` says, once the file is open,
    /// whether it is that of the right process.
    pub(super) fn read(
        tgid: u32,
        backings: &mut Backings,
        is_there: impl FnOnce() -> bool,
    ) -> io::Result<(Self, bool)> {
        let file = File::open(format!("/proc/{tgid}/maps"))?;
        // An open file stays that of its process, even if the PID is used again.
        if !is_there() {
            return Err(ErrorKind::NotFound.into());
        }
        let mut cut = false;
        let mut mappings: Vec<Mapping> = Vec::new();
        // Lines read before an error are right.
        let _ended = proc_maps::each_executable(BufReader::new(file), |entry| {
            if mappings.len() == MAX_MAPPINGS {
                cut = true;
                return false;
            }
            // The kernel lists them in ascending order; searching relies on it.
            if mappings
                .last()
                .is_none_or(|last| last.range.end <= entry.range.start)
            {
                let backing = backings.intern(&entry);
                let in_file = matches!(backings.get(backing), Backing::File(_));
                mappings.push(Mapping {
                    // Elsewhere the number shown is an address, or means nothing.
                    offset: if in_file { entry.offset } else { 0 },
                    backing,
                    range: entry.range,
                });
            }
            true
        });
        let reading = Self {
            taken: SystemTime::now(),
            mappings: mappings.into_boxed_slice(),
        };
        Ok((reading, cut))
    }
}

/// The mappings of one process that were reported.
#[derive(Debug, Default)]
pub(super) struct ReportedMappings {
    /// Ascending, and without overlaps in each. Where another thing was mapped at an address later, it is
    /// in a later one; samples do not say which of them they are of.
    layers: Vec<Vec<Mapping>>,
    /// When the last one came.
    pub(super) seen: Option<SystemTime>,
}

impl ReportedMappings {
    /// Adds a mapping, unless it is known.
    pub(super) fn add(&mut self, mapping: Mapping) {
        self.seen = Some(SystemTime::now());
        for layer in &mut self.layers {
            let at = layer.partition_point(|other| other.range.end <= mapping.range.start);
            match layer.get(at) {
                Some(other) if other.says_the_same(&mapping) => return,
                Some(other) if other.range.start < mapping.range.end => {}
                _ => return layer.insert(at, mapping),
            }
        }
        self.layers.push(vec![mapping]);
    }

    /// The place of an address in the first mapping that was reported there.
    pub(super) fn place(&self, address: u64) -> Option<Place> {
        let mut layers = self.layers.iter();
        let mapping = layers.find_map(|layer| find(layer, address))?;
        Some(mapping.place(address, self.seen?))
    }

    /// All of them.
    pub(super) fn mappings(&self) -> impl Iterator<Item = &Mapping> + Clone {
        self.layers.iter().flatten()
    }
}
