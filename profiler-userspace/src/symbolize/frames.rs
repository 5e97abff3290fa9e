//! A frame for each address.
//!
//! In: the addresses of a raw profile. Out: [`Frames`], one lot for each process and one for the
//! kernel. Addresses are gathered first, then named object by object, so that each object is opened
//! once, and no two at a time.

use super::demangle::visible;
use super::kernel::{KernelNames, KernelNaming};
use super::native::{self, Named, Symbol};
use super::{frame, lookups};
use crate::object::FileOffset;
use crate::process::{Backing, BackingId, Identity, Opened, Owner, Process, Processes, vdso};
use crate::profile::raw::RawProfile;
use crate::profile::{Frame, FrameId, FrameKind, Profile};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::SystemTime;

/// Addresses that no program's code has, at either end. They come of walks that went astray, and are
/// not worth reading a process's mappings again.
const PLAUSIBLE: Range<u64> = 1 << 12..1 << 56;

/// Frames by address.
#[derive(Debug, Default)]
pub(super) struct Frames {
    // Ascending and distinct.
    addresses: Vec<u64>,
    // One for each address.
    frames: Vec<FrameId>,
}

impl Frames {
    /// The frame of an address that was gathered.
    pub(super) fn get(&self, address: u64) -> FrameId {
        let at = self.addresses.binary_search(&address);
        self.frames[at.expect("all addresses of the profile were gathered")]
    }
}

/// Distinct addresses, kept few while they come in.
#[derive(Debug, Default)]
struct Gathered {
    addresses: Vec<u64>,
    /// How many there may be before they are sorted out.
    limit: usize,
}

impl Gathered {
    fn extend(&mut self, addresses: impl Iterator<Item = u64>) {
        self.addresses.extend(addresses);
        if self.addresses.len() > self.limit {
            self.sort_out();
            self.limit = (2 * self.addresses.len()).max(4096);
        }
    }

    fn sort_out(&mut self) {
        self.addresses.sort_unstable();
        self.addresses.dedup();
    }

    fn into_distinct(mut self) -> Vec<u64> {
        self.sort_out();
        self.addresses.shrink_to_fit();
        self.addresses
    }
}

/// What is asked of one backing.
#[derive(Debug, Default)]
struct Wanted {
    owners: Vec<Owner>,
    queries: Vec<Query>,
}

/// One address of one process.
#[derive(Debug)]
struct Query {
    offset: FileOffset,
    /// Which of the owners asks.
    owner: usize,
    /// Which of its addresses.
    address: usize,
}

/// A frame for each address of each process's user stacks.
pub(super) fn user(
    raw: &RawProfile,
    processes: &mut Processes,
    profile: &mut Profile,
) -> HashMap<Identity, Frames> {
    let mut gathered: BTreeMap<Identity, Gathered> = BTreeMap::new();
    let mut known = HashSet::new();
    for sample in &raw.samples {
        let identity = Identity::from(&sample.who);
        if let Some(index) = sample.user
            && known.insert((identity, index))
        {
            gathered
                .entry(identity)
                .or_default()
                .extend(lookups(raw.stack(index)));
        }
    }
    drop(known);
    let unknown = profile.intern(frame("[unknown]".to_owned(), FrameKind::User));
    let mut wanted: BTreeMap<BackingId, Wanted> = BTreeMap::new();
    let mut all = HashMap::new();
    for (identity, gathered) in gathered {
        let addresses = gathered.into_distinct();
        want(identity, &addresses, processes, &mut wanted);
        let frames = vec![unknown; addresses.len()];
        all.insert(identity, Frames { addresses, frames });
    }
    for (backing, wanted) in wanted {
        answer(backing, wanted, processes, profile, &mut all);
    }
    all
}

/// Finds what each address of a process lies in.
fn want(
    identity: Identity,
    addresses: &[u64],
    processes: &mut Processes,
    wanted: &mut BTreeMap<BackingId, Wanted>,
) {
    processes.see(identity);
    let astray = |process: &Process| {
        addresses
            .iter()
            .any(|address| PLAUSIBLE.contains(address) && process.place(*address).is_none())
    };
    if processes.get(identity).is_some_and(astray) {
        processes.refresh(identity);
    }
    let Some(process) = processes.get(identity) else {
        return;
    };
    for (at, &address) in addresses.iter().enumerate() {
        let Some(place) = process.place(address) else {
            continue;
        };
        let wanted = wanted.entry(place.backing).or_default();
        let owner = Owner {
            identity,
            mapping: place.mapping,
            seen: place.seen,
        };
        // Addresses ascend, so those in one mapping follow each other.
        if wanted.owners.last() != Some(&owner) {
            wanted.owners.push(owner);
        }
        wanted.queries.push(Query {
            offset: FileOffset(place.offset),
            owner: wanted.owners.len() - 1,
            address: at,
        });
    }
}

/// Names all that is asked of one backing.
fn answer(
    id: BackingId,
    mut wanted: Wanted,
    processes: &Processes,
    profile: &mut Profile,
    all: &mut HashMap<Identity, Frames>,
) {
    wanted.queries.sort_unstable_by_key(|query| query.offset);
    let mut offsets: Vec<FileOffset> = wanted.queries.iter().map(|query| query.offset).collect();
    offsets.dedup();
    let backing = processes.backing(id);
    let (named, age) = look_up(id, backing, &wanted.owners, processes, &offsets);
    // Many addresses lie in one function.
    let ids: Vec<FrameId> = named
        .names
        .into_iter()
        .map(|name| profile.intern(frame(name, FrameKind::User)))
        .collect();
    let module = module(backing);
    let mut at = 0;
    for query in &wanted.queries {
        if offsets[at] != query.offset {
            at += 1;
        }
        let owner = &wanted.owners[query.owner];
        // Another owner's file was an earlier one, now replaced, if it was seen before this was made.
        let known = age.is_none_or(|born| born <= owner.seen);
        let id = match named.of[at] {
            Symbol::Named(index) if known => ids[index],
            Symbol::At(address) if known => profile.intern(unnamed(&module, address.0)),
            _ => profile.intern(unnamed(&module, query.offset.0)),
        };
        let frames = all
            .get_mut(&owner.identity)
            .expect("every owner was gathered");
        frames.frames[query.address] = id;
    }
}

/// What the object behind a backing tells of some offsets, and when it was made.
fn look_up(
    id: BackingId,
    backing: &Backing,
    owners: &[Owner],
    processes: &Processes,
    offsets: &[FileOffset],
) -> (Named, Option<SystemTime>) {
    let object = match backing {
        Backing::File(file) => processes
            .open(id, owners)
            .map(|opened| (opened, file.path.as_path())),
        Backing::Vdso if owners.iter().all(|owner| vdso::is_ours(&owner.mapping)) => {
            vdso::image().map(|image| (Opened::ours(image), Path::new("")))
        }
        Backing::Vdso | Backing::Memory { .. } => None,
    };
    match object {
        Some((opened, path)) => (native::name(&opened, path, offsets), opened.file.born),
        None => (Named::nothing(offsets.len()), None),
    }
}

/// A frame for each address of the kernel's stacks.
pub(super) fn kernel(
    raw: &RawProfile,
    names: &mut KernelNames<'_>,
    profile: &mut Profile,
) -> (Frames, KernelNaming) {
    let mut gathered = Gathered::default();
    let mut known = HashSet::new();
    for index in raw.samples.iter().filter_map(|sample| sample.kernel) {
        if known.insert(index) {
            gathered.extend(lookups(raw.stack(index)));
        }
    }
    let addresses = gathered.into_distinct();
    let (names, naming) = names.name(&addresses);
    let frames = addresses
        .iter()
        .zip(names)
        .map(|(&address, name)| {
            let name = name.unwrap_or_else(|| at("kernel", address));
            profile.intern(frame(name, FrameKind::Kernel))
        })
        .collect();
    (Frames { addresses, frames }, naming)
}

/// How frames call what lies behind a mapping.
pub(super) fn module(backing: &Backing) -> String {
    match backing {
        Backing::File(file) => visible(file.module().as_bytes()),
        Backing::Vdso => "vdso".to_owned(),
        Backing::Memory { label } => visible(label),
    }
}

/// A frame that has no name.
fn unnamed(module: &str, offset: u64) -> Frame {
    frame(at(module, offset), FrameKind::User)
}

/// How a place without a name is shown. The number is, where the object could be read, the address in
/// it that `objdump` and `addr2line` take; else how far into the file it lies, or into the mapping if
/// there is no file. For the kernel, whose base is as unknown as its names, it is the address itself.
fn at(module: &str, offset: u64) -> String {
    format!("[{module}+{offset:#x}]")
}
