//! The objects that locations of a recording lie in.
//!
//! In: places of processes. Out: locations in numbered objects, and for each object what opening it takes.
//! Mappings of one backing by several processes are one object, but for memory, in which each
//! process makes code of its own.

use super::demangle::visible;
use crate::process::{
    Backing, BackingId, CodeMaker, MappedAddress, Owner, ProcessKey, Processes, vdso,
};
use crate::profile::normalized::{Location, ObjectIndex};
use crate::profile::raw::Parts;
use foldhash::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::time::SystemTime;

/// The most processes remembered of one object, to reach it by. Half are those that came first, which
/// may run for long, the others those that came last, which may still run.
const MAX_OWNERS: usize = 16;

/// Key of an object: places that have the same are in one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    backing: BackingId,
    /// The process whose memory it is, if it is memory.
    maker: Option<ProcessKey>,
    /// Whether it is the image that the kernel maps into programs of 32 bits.
    narrow: bool,
}

/// Process that made the code of an object that is memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker {
    /// The process ID.
    pub(super) tgid: u32,
    /// The maker of code that the process seems to be.
    pub(super) maker: Option<&'static CodeMaker>,
    /// Whether its perf map or jitdump has any code.
    pub(super) has_code_map: bool,
}

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Its backing.
    pub(super) backing: BackingId,
    /// Whether it is the image that the kernel maps into programs of 32 bits.
    pub(super) narrow: bool,
    /// Its maker, if it is memory.
    pub(super) maker: Option<Maker>,
    /// Some of those that have it mapped.
    pub(super) owners: Vec<Owner>,
    /// When it was first seen mapped.
    pub(super) since: SystemTime,
}

/// All objects of a recording.
#[derive(Debug, Default)]
pub struct Objects {
    all: Vec<Object>,
    /// Of each of them.
    keys: Vec<Key>,
    indices: HashMap<Key, ObjectIndex>,
    /// How many processes' samples were normalized, by the parts that these are of.
    sampled: HashMap<Parts, usize>,
    pub(super) cut_maps: usize,
    /// How many frames were of functions of interpreters that were never reported.
    pub(super) nameless_functions: usize,
    /// How many frames were of functions of interpreters that were read in part.
    pub(super) functions_in_part: usize,
}

impl Objects {
    /// How many runtimes listed more code than was read.
    pub fn cut_maps(&self) -> usize {
        self.cut_maps
    }

    /// How many frames, of distinct stacks, were of functions of interpreters that were never reported.
    pub fn nameless_functions(&self) -> usize {
        self.nameless_functions
    }

    /// How many frames, of distinct stacks, were of functions of interpreters that were read in part.
    pub fn functions_in_part(&self) -> usize {
        self.functions_in_part
    }

    /// How many processes' samples were normalized that are of these parts.
    pub fn processes(&self, parts: Parts) -> usize {
        let wanted = self.sampled.iter().filter(|(of, _)| of.touch(parts));
        wanted.map(|(_, count)| count).sum()
    }

    /// Counts a process whose samples are of these parts.
    pub(super) fn count_process(&mut self, parts: Parts) {
        *self.sampled.entry(parts).or_default() += 1;
    }

    /// The object of that number.
    pub(super) fn get(&self, index: ObjectIndex) -> &Object {
        &self.all[index.0 as usize]
    }

    /// The key of the object of that number.
    pub(super) fn key(&self, index: ObjectIndex) -> Key {
        self.keys[index.0 as usize]
    }

    /// How frames call what is behind an object.
    pub(super) fn module(&self, index: ObjectIndex, processes: &Processes) -> String {
        module(processes.backing(self.get(index).backing))
    }

    /// The location at a place of a process; `has_code_map` is whether its perf map or jitdump has any code.
    pub(super) fn location(
        &mut self,
        process_key: ProcessKey,
        place: MappedAddress,
        has_code_map: bool,
        processes: &Processes,
    ) -> Location {
        let backing = processes.backing(place.backing);
        let maker = backing.may_be_made().then_some(process_key);
        let key = Key {
            backing: place.backing,
            maker,
            narrow: *backing == Backing::Vdso && !vdso::is_ours(&place.mapping),
        };
        let object = *self.indices.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.all.push(Object {
                backing: key.backing,
                narrow: key.narrow,
                maker: maker.map(|process_key| Maker {
                    tgid: process_key.tgid,
                    maker: processes.code_maker(process_key),
                    has_code_map,
                }),
                owners: Vec::new(),
                since: place.seen,
            });
            let count = u32::try_from(self.all.len()).expect("objects are fewer than mappings");
            ObjectIndex(count - 1)
        });
        self.all[object.0 as usize].note(Owner::new(process_key, place.mapping, place.seen));
        Location::At {
            object,
            offset: place.offset,
        }
    }
}

impl Object {
    fn note(&mut self, owner: Owner) {
        self.since = self.since.min(owner.seen);
        // Addresses ascend, so those in one mapping follow each other.
        if self.owners.last() == Some(&owner) {
            return;
        }
        self.owners
            .retain(|known| known.process_key != owner.process_key);
        if self.owners.len() == MAX_OWNERS {
            self.owners.remove(MAX_OWNERS / 2);
        }
        self.owners.push(owner);
    }
}

/// The name that stands for what lies behind a mapping, where it has no better.
pub(super) fn module(backing: &Backing) -> String {
    match backing {
        Backing::File(file) => visible(file.module().as_bytes()),
        Backing::Vdso => "vdso".to_owned(),
        Backing::Memory { label } => visible(label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_and_the_last_owners_are_remembered() {
        let owner = |tgid| {
            Owner::new(
                ProcessKey::new(tgid, 1),
                0..1,
                SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(1000 - tgid)),
            )
        };
        let mut processes = Processes::new();
        processes.see(ProcessKey::new(std::process::id(), 1));
        let here = processes.get(ProcessKey::new(std::process::id(), 1));
        let (backing, _) = here.unwrap().code().next().unwrap();
        let mut object = Object {
            backing,
            narrow: false,
            maker: None,
            owners: Vec::new(),
            since: owner(0).seen,
        };
        for tgid in 0..100 {
            object.note(owner(tgid));
            object.note(owner(tgid));
        }
        assert_eq!(object.owners.len(), MAX_OWNERS);
        let tgids: Vec<u32> = object
            .owners
            .iter()
            .map(|owner| owner.process_key.tgid)
            .collect();
        assert_eq!(tgids[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(tgids[8..], [92, 93, 94, 95, 96, 97, 98, 99]);
        assert_eq!(object.since, owner(99).seen);
    }
}
