//! Mappings of one process, as read from `/proc/PID/maps` and as reported by the kernel half.
//!
//! In: readings and mapping events. Out: what an address lies in. Never reads a file of the process's own.

use super::backing::{BackingId, Backings};
use super::contexts;
use super::mapping::{MappedAddress, Mapping, Moved, find};
use super::proc_maps;
use super::reported::{self, Choice, Choices, ReportedMappings};
use profiler_common::abi::MappingKey;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::ops::Range;
use std::time::SystemTime;

/// The most executable mappings kept of one reading: a hundred times what programs have. Addresses in
/// the rest are unknown, unless mapping events have them; see [`Shortage`].
const MAX_MAPPINGS: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Reading {
    pub(super) taken: SystemTime,
    // Ascending, as the kernel lists them.
    pub(super) mappings: Box<[Mapping]>,
    // Where it publishes its context.
    pub(super) contexts: Vec<u64>,
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
    // Whether several mappings were reported at one address.
    is_contested: bool,
}

/// Memory that holds a part of a file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedText {
    /// The file.
    pub backing: BackingId,
    /// Its addresses.
    pub range: Range<u64>,
    /// The offset of what lies at the first of them in the file.
    pub offset: u64,
    /// The kind of memory.
    pub moved: Moved,
}

impl Process {
    /// Adds a file's mapping that was reported.
    pub(super) fn add_reported(&mut self, mapping: Mapping) {
        self.is_contested |=
            self.reported.contest(&mapping) || self.reported_memory.contest(&mapping);
        self.reported.add(mapping);
    }

    /// Adds memory that was reported. Whether it is the first.
    pub(super) fn add_reported_memory(&mut self, mapping: Mapping) -> bool {
        let is_first = self.reported_memory.seen.is_none();
        self.is_contested |= self.reported.contest(&mapping);
        self.reported_memory.add(mapping);
        is_first
    }

    /// The place of an address, if it is known: the first of several.
    pub fn place(&self, address: u64) -> Option<MappedAddress> {
        self.place_in(address, Choice::First)
    }

    /// The place of an address by the choice among what lay there.
    pub fn place_in(&self, address: u64, choice: Choice) -> Option<MappedAddress> {
        let read = |wanted: fn(&Mapping) -> bool| {
            self.readings.iter().find_map(|reading| {
                let mapping = reading.find(address).filter(|mapping| wanted(mapping))?;
                Some(mapping.place(address, reading.taken))
            })
        };
        let file = |mapping: Option<&Mapping>| Some(mapping?.place(address, self.reported.seen?));
        let memory = || {
            let mapping = self.reported_memory.first(address)?;
            Some(mapping.place(address, self.reported_memory.seen?))
        };
        // Shared memory that holds a file's text.
        let shared = || read(|mapping| matches!(mapping.moved, Some(Moved::Shared(_))));
        match choice {
            Choice::First => shared()
                .or_else(|| file(self.reported.first(address)))
                .or_else(|| read(|_| true))
                .or_else(memory),
            Choice::Layer(layer) => {
                let mapping = self.reported.in_layer(layer, address);
                let is_whole = |place: &MappedAddress| {
                    mapping.is_some_and(|mapping| mapping.range.start == place.mapping.start)
                };
                shared().filter(is_whole).or_else(|| file(mapping))
            }
            Choice::Memory => {
                read(|mapping| mapping.mapping_key == MappingKey::MEMORY).or_else(memory)
            }
            Choice::Unknown => None,
        }
    }

    /// Which mappings the addresses of a stack with this check lay in; none where there is one for each.
    pub fn choices(&self, addresses: impl Iterator<Item = u64>, check: u32) -> Option<Vec<Choice>> {
        if !self.is_contested || check == 0 {
            return None;
        }
        let frames: Vec<Choices> = addresses
            .map(|address| self.at(address).collect())
            .collect();
        let is_contested = frames.iter().any(|choices| choices.len() > 1);
        is_contested.then(|| reported::choose(&frames, check))
    }

    /// The places that an address may be in, at one time or another.
    pub fn places(&self, address: u64) -> Vec<MappedAddress> {
        let reported = self.at(address);
        let mut places: Vec<MappedAddress> = reported
            .filter_map(|(choice, _)| self.place_in(address, choice))
            .collect();
        if places.is_empty() {
            places.extend(self.place(address));
        }
        places
    }

    fn at(&self, address: u64) -> impl Iterator<Item = (Choice, MappingKey)> {
        let memory = self.reported_memory.at(address);
        let memory = memory.map(|(_, mapping_key)| (Choice::Memory, mapping_key));
        self.reported.at(address).chain(memory)
    }

    /// Mappings of code, by the last reading: backings and their addresses.
    pub fn code(&self) -> impl Iterator<Item = (BackingId, Range<u64>)> {
        let last = self.readings.last();
        let mappings = last.map(|reading| &*reading.mappings).unwrap_or_default();
        mappings
            .iter()
            .map(|mapping| (mapping.backing, mapping.range.clone()))
    }

    /// Memory that holds text of files, by the last reading.
    pub fn moved_text(&self) -> impl Iterator<Item = MovedText> {
        let last = self.readings.last();
        let mappings = last.map(|reading| &*reading.mappings).unwrap_or_default();
        mappings.iter().filter_map(|mapping| {
            Some(MovedText {
                backing: mapping.backing,
                range: mapping.range.clone(),
                offset: mapping.offset,
                moved: mapping.moved?,
            })
        })
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
        let mut contexts = Vec::new();
        // Lines read before an error are right.
        let maps = BufReader::new(file);
        let _ended = proc_maps::each_executable_or(maps, contexts::may_be_one, |entry| {
            contexts::note(&entry, &mut contexts);
            if !entry.executable {
                return true;
            }
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
                let in_file = backings.get(backing).file().is_some();
                mappings.push(Mapping {
                    // Elsewhere the number shown is an address, or means nothing.
                    offset: if in_file { entry.offset } else { 0 },
                    backing,
                    mapping_key: if in_file {
                        MappingKey::NONE
                    } else {
                        MappingKey::MEMORY
                    },
                    range: entry.range,
                    moved: None,
                });
            }
            true
        });
        let reading = Self {
            taken: SystemTime::now(),
            mappings: mappings.into_boxed_slice(),
            contexts,
        };
        Ok((reading, cut))
    }
}
