//! Names for what lies behind mappings.
//!
//! In: for each backing, who asks for which offsets. Out: their frames, and for those without a name the
//! gap that they lie in. Each object is opened once, and no two at a time.

use super::demangle::visible;
use super::frame;
use super::frames::Frames;
use super::gaps::{Gap, GapId, Gaps, Reached};
use super::native::{self, Function, Named, Sources, Symbol};
use crate::object::FileOffset;
use crate::process::{Backing, BackingId, Identity, Opened, Owner, Place, Processes, vdso};
use crate::profile::{Frame, FrameId, FrameKind, Profile};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

/// What is asked of one backing.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    owners: Vec<Owner>,
    pub(super) queries: Vec<Query>,
}

/// One address of one process.
#[derive(Debug)]
pub(super) struct Query {
    offset: FileOffset,
    /// Which of the owners asks.
    owner: usize,
    /// Which of its addresses.
    address: usize,
}

/// Asks for what is still to be named.
pub(super) fn want(
    identity: Identity,
    places: Vec<Option<Place>>,
    wanted: &mut BTreeMap<BackingId, Wanted>,
) {
    for (at, place) in places.into_iter().enumerate() {
        let Some(place) = place else {
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

/// What answers are made from, and where they go.
pub(super) struct Answers<'a> {
    pub(super) processes: &'a Processes,
    pub(super) sources: Sources<'a>,
    pub(super) profile: &'a mut Profile,
    pub(super) gaps: &'a mut Gaps,
    /// The frames of all who ask.
    pub(super) all: &'a mut HashMap<Identity, Frames>,
}

impl Answers<'_> {
    /// Names all that is asked of one backing.
    pub(super) fn answer(&mut self, id: BackingId, mut wanted: Wanted) {
        wanted.queries.sort_unstable_by_key(|query| query.offset);
        let mut offsets: Vec<FileOffset> =
            wanted.queries.iter().map(|query| query.offset).collect();
        offsets.dedup();
        let backing = self.processes.backing(id);
        let looked_up = self.look_up(id, backing, &wanted.owners, &offsets);
        let gap_of = gap(backing, &looked_up);
        let LookedUp { named, age, .. } = looked_up;
        // Many addresses lie in one function.
        let ids: Vec<(FrameId, Rc<[FrameId]>)> = named
            .functions
            .into_iter()
            .map(|function| self.intern(function))
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
                Symbol::Named(index) if known => Ok(&ids[index]),
                Symbol::At(address) if known => Err(address.0),
                _ => Err(query.offset.0),
            };
            let gap = match id {
                Ok(_) => GapId::default(),
                Err(_) => self.gap(&gap_of, owner.identity),
            };
            let frames = self
                .all
                .get_mut(&owner.identity)
                .expect("every owner was gathered");
            let (id, inlined) = match id {
                Ok((id, inlined)) => (*id, Some(inlined)),
                Err(number) => (self.profile.intern(unnamed(&module, number)), None),
            };
            frames.frames[query.address] = id;
            if let Some(inlined) = inlined.filter(|inlined| !inlined.is_empty()) {
                frames.inlined.insert(query.address, Rc::clone(inlined));
            }
            frames.gaps[query.address] = gap;
        }
    }

    fn intern(&mut self, function: Function) -> (FrameId, Rc<[FrameId]>) {
        let outermost = frame(function.name, FrameKind::User);
        let inlined = function.inlined.into_iter();
        (
            self.profile.intern(outermost),
            inlined
                .map(|name| self.profile.intern(frame(name, FrameKind::Inlined)))
                .collect(),
        )
    }

    fn gap(&mut self, gap: &GapOf, identity: Identity) -> GapId {
        match gap {
            GapOf::Nothing => GapId::default(),
            GapOf::Object(gap) => self.gaps.intern(gap.clone()),
            GapOf::Maker => self.gaps.intern(Gap::Made {
                tgid: identity.tgid,
                runtime: self.processes.runtime(identity),
                told: self.gaps.told(identity),
            }),
        }
    }

    /// What the object behind a backing tells of some offsets.
    fn look_up(
        &self,
        id: BackingId,
        backing: &Backing,
        owners: &[Owner],
        offsets: &[FileOffset],
    ) -> LookedUp {
        let object = match backing {
            Backing::File(file) => self
                .processes
                .open(id, owners)
                .map(|opened| (opened, file.path.as_path())),
            Backing::Vdso if owners.iter().all(|owner| vdso::is_ours(&owner.mapping)) => {
                vdso::image().map(|image| (Opened::ours(image), Path::new("")))
            }
            Backing::Vdso | Backing::Memory { .. } => None,
        };
        match object {
            Some((opened, path)) => LookedUp {
                named: native::name(&opened, path, offsets, self.sources),
                age: opened.file.born,
                reached: match opened.root == Path::new("/") {
                    true => Reached::Here,
                    false => Reached::Elsewhere,
                },
            },
            None => LookedUp {
                named: Named::nothing(offsets.len()),
                age: None,
                reached: Reached::Gone,
            },
        }
    }
}

/// What is to be said of places without names.
enum GapOf {
    Nothing,
    Object(Gap),
    /// Each process has a gap of its own.
    Maker,
}

fn gap(backing: &Backing, looked_up: &LookedUp) -> GapOf {
    let LookedUp { named, reached, .. } = looked_up;
    match backing {
        // What symbols leave in an object that has them are a linker's stubs.
        Backing::File(_) if named.has_symbols => GapOf::Nothing,
        Backing::File(file)
            if named.is_object || *reached == Reached::Gone && !file.is_memory() =>
        {
            GapOf::Object(Gap::Object {
                module: module(backing),
                path: file.path.clone(),
                build_id: named.build_id.clone(),
                reached: *reached,
            })
        }
        _ if backing.may_be_made() => GapOf::Maker,
        _ => GapOf::Nothing,
    }
}

/// What the object behind a backing tells.
struct LookedUp {
    named: Named,
    /// When it was made, where that is known.
    age: Option<SystemTime>,
    reached: Reached,
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
pub(super) fn at(module: &str, offset: u64) -> String {
    format!("[{module}+{offset:#x}]")
}
