//! Processes as they were when they were first seen, kept past their end until they are let go.
//!
//! In: who was sampled, as soon as the kernel half tells; `/proc`. Out: what an address of theirs lies
//! in, and the files behind it, opened only if they are the very files that were mapped.
//! Never names anything, and never fails: a process that has gone has no mappings.

mod backing;
mod code_map;
mod ended;
mod held;
pub mod maps;
mod opening;
mod runtime;
pub mod vdso;

pub use backing::{Backing, BackingId, MappedFile};
pub use opening::{Opened, Owner};
pub use runtime::Runtime;

use crate::profile::raw::Who;
use backing::Backings;
use code_map::CodeMaps;
use held::Held;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::ops::Range;
use std::time::SystemTime;

/// The most executable mappings kept of one reading: a hundred times what programs have. Addresses in
/// the rest are unknown.
const MAX_MAPPINGS: usize = 16 << 10;

/// The most readings kept of one process; see [`Processes::refresh`].
const MAX_READINGS: usize = 8;

/// One program that ran in one process. A PID that is worn again, and a process that called `exec`,
/// differ in the incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The process ID, as in our `/proc`.
    pub tgid: u32,
    /// Grows with each program under one PID; zero where the kernel cannot tell.
    pub incarnation: u64,
}

impl From<&Who> for Identity {
    fn from(who: &Who) -> Self {
        Self {
            tgid: who.tgid,
            incarnation: who.incarnation,
        }
    }
}

/// What an address lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What is mapped there.
    pub backing: BackingId,
    /// For a file, the offset in it; otherwise how far into the mapping.
    pub offset: u64,
    /// The whole mapping.
    pub mapping: Range<u64>,
    /// When the mapping was seen.
    pub seen: SystemTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    offset: u64,
    backing: BackingId,
}

#[derive(Debug)]
struct Reading {
    taken: SystemTime,
    // Ascending, as the kernel lists them.
    mappings: Box<[Mapping]>,
}

/// One process that was seen.
#[derive(Debug, Default)]
pub struct Process {
    // Oldest first. None of who had gone before the first.
    readings: Vec<Reading>,
}

impl Process {
    /// What an address lies in, if anything known.
    pub fn place(&self, address: u64) -> Option<Place> {
        self.readings.iter().find_map(|reading| {
            let mapping = reading.find(address)?;
            Some(Place {
                backing: mapping.backing,
                offset: mapping.offset.wrapping_add(address - mapping.range.start),
                mapping: mapping.range.clone(),
                seen: reading.taken,
            })
        })
    }
}

impl Process {
    /// What the process maps as code, as it was read last, with where.
    pub fn code(&self) -> impl Iterator<Item = (BackingId, Range<u64>)> {
        let last = self.readings.last();
        let mappings = last.map(|reading| &*reading.mappings).unwrap_or_default();
        mappings
            .iter()
            .map(|mapping| (mapping.backing, mapping.range.clone()))
    }
}

/// All processes seen so far.
#[derive(Debug, Default)]
pub struct Processes {
    known: HashMap<Identity, Process>,
    // The latest incarnation seen under each PID: only that one can still be read.
    latest: HashMap<u32, u64>,
    backings: Backings,
    code_maps: CodeMaps,
    held: Held,
    refused: usize,
}

impl Processes {
    /// No processes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// No processes yet. What they map will be kept open, so that it can be read after they and their
    /// files have gone.
    pub fn holding_files() -> Self {
        Self {
            held: Held::taking(),
            ..Self::default()
        }
    }

    /// Reads the mappings of a process that has not been seen yet, and says whether it was so. The
    /// sooner after its first sample, the more surely it still runs.
    pub fn see(&mut self, identity: Identity) -> bool {
        if self.known.contains_key(&identity) {
            return false;
        }
        let latest = self
            .latest
            .entry(identity.tgid)
            .or_insert(identity.incarnation);
        *latest = identity.incarnation.max(*latest);
        let reading = match self.is_current(identity).then(|| self.read(identity.tgid)) {
            Some(Ok(reading)) => Some(reading),
            Some(Err(error)) => {
                self.refused += usize::from(error.kind() == ErrorKind::PermissionDenied);
                None
            }
            None => None,
        };
        if let Some(reading) = &reading {
            self.look_for_code_map(identity, reading);
            self.hold(identity, reading);
        }
        let readings = reading.into_iter().collect();
        self.known.insert(identity, Process { readings });
        true
    }

    /// Reads the mappings again, for an address that lies in none: libraries may have been loaded, and
    /// code made, since the process was seen. Says whether anything new was found; nothing is when the
    /// process has ended or runs another program.
    pub fn refresh(&mut self, identity: Identity) -> bool {
        if !self.is_current(identity) || !self.known.contains_key(&identity) {
            return false;
        }
        let Ok(fresh) = self.read(identity.tgid) else {
            return false;
        };
        let Some(Process { readings }) = self.known.get(&identity) else {
            return false;
        };
        let known = |mapping: &Mapping| {
            readings
                .iter()
                .any(|reading| reading.find(mapping.range.start) == Some(mapping))
        };
        // Another program has its files elsewhere. Where the kernel tells of `exec`, a reading that
        // shares none with the first is of a program whose own samples have yet to come; unless the
        // first was taken so early in `exec` that there was nothing to share.
        let is_file =
            |mapping: &&Mapping| matches!(self.backings.get(mapping.backing), Backing::File(_));
        let none_before = !readings
            .iter()
            .any(|reading| reading.mappings.iter().any(|mapping| is_file(&mapping)));
        let same_program = identity.incarnation == 0
            || none_before
            || fresh.mappings.iter().filter(is_file).any(known);
        let nothing_new = fresh.mappings.iter().all(known);
        if !same_program {
            return false;
        }
        self.look_for_code_map(identity, &fresh);
        if nothing_new {
            return false;
        }
        self.hold(identity, &fresh);
        let Some(Process { readings }) = self.known.get_mut(&identity) else {
            return false;
        };
        // The first reading stays, being the one that most samples fit.
        if readings.len() == MAX_READINGS {
            readings.remove(1);
        }
        readings.push(fresh);
        true
    }

    /// A process that was seen.
    pub fn get(&self, identity: Identity) -> Option<&Process> {
        self.known.get(&identity)
    }

    /// What a [`Place`] of these processes lies in.
    pub fn backing(&self, id: BackingId) -> &Backing {
        self.backings.get(id)
    }

    /// How many processes' mappings we were not allowed to read. None of their code has a name;
    /// running with sudo, or with `CAP_SYS_PTRACE`, mends it.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// Whether `/proc` would tell of this one, and not of who wore the PID or ran in it later.
    fn is_current(&self, identity: Identity) -> bool {
        self.latest.get(&identity.tgid) == Some(&identity.incarnation)
    }

    fn read(&mut self, tgid: u32) -> io::Result<Reading> {
        let file = File::open(format!("/proc/{tgid}/maps"))?;
        let mut mappings: Vec<Mapping> = Vec::new();
        // What was read before an error is as true as the rest.
        let _ended = maps::each_executable(BufReader::new(file), |entry| {
            // The kernel lists them in ascending order; searching relies on it.
            if mappings
                .last()
                .is_none_or(|last| last.range.end <= entry.range.start)
            {
                let backing = self.backings.intern(&entry);
                let in_file = matches!(self.backings.get(backing), Backing::File(_));
                mappings.push(Mapping {
                    // Elsewhere the number shown is an address, or means nothing.
                    offset: if in_file { entry.offset } else { 0 },
                    backing,
                    range: entry.range,
                });
            }
            mappings.len() < MAX_MAPPINGS
        });
        Ok(Reading {
            taken: SystemTime::now(),
            mappings: mappings.into_boxed_slice(),
        })
    }
}

impl Reading {
    fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self
            .mappings
            .partition_point(|mapping| mapping.range.start <= address);
        let mapping = &self.mappings[after.checked_sub(1)?];
        mapping.range.contains(&address).then_some(mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ourselves() -> Identity {
        Identity {
            tgid: std::process::id(),
            incarnation: 7,
        }
    }

    fn here() -> u64 {
        ourselves as fn() -> Identity as usize as u64
    }

    fn place(processes: &Processes, identity: Identity, address: u64) -> Option<Place> {
        processes.get(identity)?.place(address)
    }

    #[test]
    fn places_an_address_in_its_file() {
        let mut processes = Processes::new();
        assert!(processes.see(ourselves()));
        assert!(!processes.see(ourselves()));
        let found = place(&processes, ourselves(), here()).unwrap();
        let Backing::File(file) = processes.backing(found.backing) else {
            panic!("{found:?}")
        };
        assert_eq!(file.path, std::env::current_exe().unwrap());
        assert!(found.mapping.contains(&here()));
        assert_eq!(place(&processes, ourselves(), 8), None);
    }

    #[test]
    fn a_process_that_has_gone_is_known_and_has_nothing() {
        let mut processes = Processes::new();
        let gone = Identity {
            tgid: u32::MAX,
            incarnation: 1,
        };
        assert!(processes.see(gone));
        assert!(!processes.see(gone));
        assert_eq!(place(&processes, gone, here()), None);
        assert!(!processes.refresh(gone));
    }

    #[test]
    fn keeps_mappings_past_the_end_of_the_process() {
        let mut sleeper = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let identity = Identity {
            tgid: sleeper.id(),
            incarnation: 1,
        };
        let mut processes = Processes::new();
        processes.see(identity);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(!processes.refresh(identity));
        let mapped = processes.known[&identity].readings[0].mappings[0]
            .range
            .start;
        assert!(place(&processes, identity, mapped).is_some());
    }

    #[test]
    fn an_earlier_program_is_not_read_from_a_later_one() {
        let mut processes = Processes::new();
        processes.see(ourselves());
        let earlier = Identity {
            incarnation: 6,
            ..ourselves()
        };
        assert!(processes.see(earlier));
        assert_eq!(place(&processes, earlier, here()), None);
        let later = Identity {
            incarnation: 8,
            ..ourselves()
        };
        assert!(processes.see(later));
        assert!(place(&processes, later, here()).is_some());
        assert!(!processes.refresh(ourselves()));
    }

    /// As if this test's own code had not been mapped yet.
    fn forget_here(processes: &mut Processes) {
        for reading in &mut processes.known.get_mut(&ourselves()).unwrap().readings {
            let all = std::mem::take(&mut reading.mappings).into_iter();
            reading.mappings = all
                .filter(|mapping| !mapping.range.contains(&here()))
                .collect();
        }
    }

    #[test]
    fn refreshing_finds_what_was_mapped_since() {
        let mut processes = Processes::new();
        processes.see(ourselves());
        forget_here(&mut processes);
        assert_eq!(place(&processes, ourselves(), here()), None);
        assert!(processes.refresh(ourselves()));
        assert!(place(&processes, ourselves(), here()).is_some());
        assert!(
            !processes.refresh(ourselves()),
            "nothing new the second time"
        );
    }

    #[test]
    fn refreshing_does_not_take_another_programs_mappings() {
        let mut processes = Processes::new();
        processes.see(ourselves());
        let Process { readings } = processes.known.get_mut(&ourselves()).unwrap();
        for mapping in &mut readings[0].mappings {
            // Of what the kernel maps, some lies at the same place in every process.
            if !matches!(
                processes.backings.get(mapping.backing),
                Backing::Memory { .. }
            ) {
                mapping.range = mapping.range.start + 1..mapping.range.end;
            }
        }
        assert!(!processes.refresh(ourselves()));
        assert_eq!(processes.known[&ourselves()].readings.len(), 1);
    }

    #[test]
    fn old_readings_make_room_but_the_first_stays() {
        let mut processes = Processes::new();
        processes.see(ourselves());
        for _ in 0..20 {
            forget_here(&mut processes);
            assert!(processes.refresh(ourselves()));
        }
        assert_eq!(processes.known[&ourselves()].readings.len(), MAX_READINGS);
    }
}
