//! Processes as they were when they were first seen, kept past their end until they are let go.
//!
//! In: who was sampled and what lay there, as the kernel half tells; `/proc`. Out: what an address of theirs
//! lies in, and the files behind it, opened only if they are the very files that were mapped.
//! Never names anything, and never fails: a process that has gone has no mappings.

mod age;
mod backing;
mod code_map;
mod ended;
mod held;
pub mod maps;
mod opening;
mod runtime;
mod shortage;
mod told;
pub mod vdso;

pub use backing::{Backing, BackingId, MappedFile};
pub use opening::{Opened, Owner};
pub use runtime::Runtime;
pub use shortage::Shortage;
pub use told::{Todo, Told, Unopened};

use crate::profile::raw::Who;
use backing::Backings;
use code_map::CodeMaps;
use foldhash::HashMap;
use held::Held;
use profiler_common::abi::CodeKey;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::ops::Range;
use std::time::SystemTime;
use told::ToldOf;

/// The most executable mappings kept of one reading: a hundred times what programs have. Addresses in
/// the rest are unknown, unless the kernel half told of them; see [`Shortage`].
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

impl Mapping {
    fn place(&self, address: u64, seen: SystemTime) -> Place {
        Place {
            backing: self.backing,
            offset: self.offset.wrapping_add(address - self.range.start),
            mapping: self.range.clone(),
            seen,
        }
    }
}

/// The mapping that an address lies in, of some that ascend.
fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.range.start <= address);
    let mapping = &mappings[after.checked_sub(1)?];
    mapping.range.contains(&address).then_some(mapping)
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
    // Whether it was met, that is, sampled.
    met: bool,
    // Whether it was looked at; it may have gone before.
    looked_at: bool,
    // Oldest first. None of who had gone before the first.
    readings: Vec<Reading>,
    // What the kernel half told of: files, and memory of which a reading may say more.
    told: ToldOf,
    told_memory: ToldOf,
}

impl Process {
    /// What an address lies in, if anything known.
    pub fn place(&self, address: u64) -> Option<Place> {
        let read = || {
            self.readings.iter().find_map(|reading| {
                let mapping = reading.find(address)?;
                Some(mapping.place(address, reading.taken))
            })
        };
        self.told
            .place(address)
            .or_else(read)
            .or_else(|| self.told_memory.place(address))
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

    /// All that it is known to have mapped.
    fn backings(&self) -> impl Iterator<Item = BackingId> {
        let read = self.readings.iter().flat_map(|reading| &reading.mappings);
        let told = self.told.mappings().chain(self.told_memory.mappings());
        read.chain(told).map(|mapping| mapping.backing)
    }
}

/// What a look at a process showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing: it has ended, or runs another program.
    Gone,
    /// What was known.
    Same,
    /// More than was known.
    Changed,
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
    // What the kernel half knows the vDSO by.
    vdso: Option<CodeKey>,
    compares_ages: bool,
    refused: usize,
    shortage: Shortage,
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
        let process = self.known.entry(identity).or_default();
        if std::mem::replace(&mut process.looked_at, true) {
            return false;
        }
        self.note_latest(identity);
        // Asked first, which takes a tenth of what looking in vain does: where processes come and go, most have gone.
        let reading = match (!self.has_gone(identity)).then(|| self.read(identity)) {
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
        if let Some(process) = self.known.get_mut(&identity) {
            process.readings.extend(reading);
        }
        true
    }

    /// Notes that a process was sampled. Whether it should be looked at: nothing was heard of it before.
    pub fn meet(&mut self, identity: Identity) -> bool {
        self.note_latest(identity);
        let process = self.known.entry(identity).or_default();
        !std::mem::replace(&mut process.met, true) && !process.looked_at
    }

    /// Whether a process has surely ended, or runs another program, so that a look at it would show nothing.
    pub fn has_gone(&self, identity: Identity) -> bool {
        !self.is_current(identity) || !ended::runs(identity.tgid)
    }

    /// Looks at a process: for the first time, or again.
    pub fn look(&mut self, identity: Identity) -> Look {
        let changed = self.see(identity) || self.refresh(identity);
        let has_gone = |process: &Process| process.readings.is_empty();
        if self.get(identity).is_none_or(has_gone) || !self.is_current(identity) {
            Look::Gone
        } else if changed {
            Look::Changed
        } else {
            Look::Same
        }
    }

    /// Notes that this is a program that runs under its PID, or ran before the one that does.
    fn note_latest(&mut self, identity: Identity) {
        let latest = self
            .latest
            .entry(identity.tgid)
            .or_insert(identity.incarnation);
        *latest = identity.incarnation.max(*latest);
    }

    /// Reads the mappings again, for an address that lies in none: libraries may have been loaded, and
    /// code made, since the process was seen. Says whether anything new was found; nothing is when the
    /// process has ended or runs another program.
    pub fn refresh(&mut self, identity: Identity) -> bool {
        let looked_at = self
            .known
            .get(&identity)
            .is_some_and(|process| process.looked_at);
        if !looked_at || !self.is_current(identity) {
            return false;
        }
        let Ok(fresh) = self.read(identity) else {
            return false;
        };
        let Some(Process { readings, .. }) = self.known.get(&identity) else {
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
        let Some(Process { readings, .. }) = self.known.get_mut(&identity) else {
            return false;
        };
        // The first reading stays, being the one that most samples fit.
        if readings.len() == MAX_READINGS {
            readings.remove(1);
            self.shortage.readings += 1;
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

    fn read(&mut self, identity: Identity) -> io::Result<Reading> {
        let file = File::open(format!("/proc/{}/maps", identity.tgid))?;
        // What is open stays with the process that it is of.
        if !self.is_there(identity) {
            return Err(ErrorKind::NotFound.into());
        }
        let mut cut = false;
        let mut mappings: Vec<Mapping> = Vec::new();
        // What was read before an error is as true as the rest.
        let _ended = maps::each_executable(BufReader::new(file), |entry| {
            if mappings.len() == MAX_MAPPINGS {
                cut = true;
                return false;
            }
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
            true
        });
        self.shortage.mappings += usize::from(cut);
        Ok(Reading {
            taken: SystemTime::now(),
            mappings: mappings.into_boxed_slice(),
        })
    }
}

impl Reading {
    fn find(&self, address: u64) -> Option<&Mapping> {
        find(&self.mappings, address)
    }
}

#[cfg(test)]
mod tests;
