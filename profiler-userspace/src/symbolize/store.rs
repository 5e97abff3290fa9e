//! Parts of a normalized profile that a raw recording keeps, with the names that these need.
//!
//! In: a [`NormalizedProfile`] profile of this machine, now. Out: one that means the same anywhere and later: locations in
//! objects that prove themselves, and names for all that could not be found any more: the kernel's functions,
//! code that runtimes made, what the kernel maps into processes, memory, and files that are not where they
//! were. And from such a profile a named one.

use super::backings;
use super::demangle::visible;
use super::kernel::KernelSymbols;
use super::locations::{Answer, offsets_of};
use super::memory_budget::MemoryBudget;
use super::native::{self, Named, Symbol};
use super::objects::Object;
use super::unsymbolized::{
    AllUnsymbolized, Reached, UnsymbolizedCode, UnsymbolizedFrames, UnsymbolizedId,
    UnsymbolizedTable,
};
use super::{Objects, Sources, Symbolized, at, build, name_cache, parallel};
use crate::object::{Elf, Fetch, FileOffset, RecordedObject};
use crate::process::{Backing, MappedFile, Opened, Processes};
use crate::profile::normalized::{
    Location, LocationIndex, NamedFunction, NormalizedKey, NormalizedProfile, NormalizedStack,
    NormalizedStackIndex, NormalizedWaker, ObjectIndex, WakerIndex,
};
use crate::profile::{FrameKind, Unit};
use foldhash::HashMap;
use std::os::unix::ffi::OsStrExt as _;

/// Contents of a raw recording.
#[derive(Clone, Debug)]
pub struct RecordingContents {
    /// The samples.
    pub normalized: NormalizedProfile,
    /// Objects that their locations are in, by number.
    pub objects: Vec<RecordedObject>,
    /// The code that had no names and will have none later, that of most samples first.
    pub unsymbolized: AllUnsymbolized,
}

/// Decision on an object's locations.
struct Kept {
    /// The number of an object that can be looked for later.
    object: Option<ObjectIndex>,
    /// Its symbols now, if it is asked.
    answer: Option<Answer>,
}

/// Makes of `normalized` what can be named anywhere and later.
pub fn store(
    normalized: &NormalizedProfile,
    objects: &Objects,
    processes: &Processes,
    kernel: &KernelSymbols,
    sources: &Sources<'_>,
) -> RecordingContents {
    let mut stored = normalized.without_samples();
    let mut unsymbolized = UnsymbolizedTable::default();
    let mut found = Vec::new();
    // Names without what may be fetched later are not kept.
    let names = sources.names.filter(|_| sources.fetch.is_none());
    let asked = native::Sources {
        naming: sources.naming,
        fetch: None,
        memory: &MemoryBudget::new(sources.naming.memory),
        cache: None,
    };
    let mut named: HashMap<Location, (Location, UnsymbolizedId)> = HashMap::default();
    for (object, offsets) in offsets_of(normalized) {
        let was = |offset: &FileOffset| Location::At {
            object,
            offset: offset.0,
        };
        let ask = || name_cache::look_up(names, (objects, object), processes, asked, &offsets);
        let kept = keep(objects.get(object), processes, ask, &mut found);
        let later = |offset: &FileOffset| {
            Some(Location::At {
                object: kept.object?,
                offset: offset.0,
            })
        };
        let Some(Answer {
            named: found,
            module,
            code,
            ..
        }) = &kept.answer
        else {
            let locations = offsets
                .iter()
                .map(|offset| (was(offset), later(offset).unwrap_or(Location::Unknown)));
            named.extend(
                locations.map(|(was, location)| (was, (location, UnsymbolizedId::default()))),
            );
            continue;
        };
        let code = code.clone().filter(|_| kept.object.is_none());
        let code = code.map_or_else(UnsymbolizedId::default, |code| unsymbolized.intern(code));
        let symbols = found.of.iter().zip(&found.addresses);
        for (offset, (symbol, address)) in offsets.iter().zip(symbols) {
            let mut of = |name| stored.name(NamedFunction::new(name, FrameKind::User));
            let location = match (symbol, later(offset)) {
                (Symbol::Named(index), _) => {
                    let name = found.functions[*index].outermost.name.clone();
                    (of(name), UnsymbolizedId::default())
                }
                (Symbol::Within(_) | Symbol::Unsymbolized, Some(later)) => {
                    (later, UnsymbolizedId::default())
                }
                (Symbol::Within(begin), None) => (of(at(module, begin.0)), code),
                (Symbol::Unsymbolized, None) => {
                    let address = address.map_or(offset.0, |address| address.0);
                    (of(at(module, address)), code)
                }
            };
            named.insert(was(offset), location);
        }
    }
    // In the order of the old locations, their successors.
    let locations: Vec<(LocationIndex, UnsymbolizedId)> = normalized
        .locations()
        .iter()
        .map(|old| {
            let (location, code) = match *old {
                Location::Named(name) => {
                    let known = normalized.names()[name as usize].clone();
                    (stored.name(known), UnsymbolizedId::default())
                }
                Location::Within { name, place } => {
                    let known = normalized.names()[name as usize].clone();
                    (stored.name_within(known, place), UnsymbolizedId::default())
                }
                Location::Unknown => (Location::Unknown, UnsymbolizedId::default()),
                Location::Kernel(address) => {
                    let function = kernel.function(address);
                    let location = match kernel.offset(address) {
                        Some(offset) => stored.name_within(function, offset),
                        None => stored.name(function),
                    };
                    (location, UnsymbolizedId::default())
                }
                Location::At { .. } => named[old],
            };
            (stored.location(location), code)
        })
        .collect();
    let stacks: Vec<NormalizedStackIndex> = normalized
        .stacks()
        .iter()
        .map(|stack| {
            let again = stack
                .locations
                .iter()
                .map(|location| locations[location.0 as usize].0);
            stored.stack(NormalizedStack {
                locations: again.collect(),
                ..stack.clone()
            })
        })
        .collect();
    let again = |index: Option<NormalizedStackIndex>| index.map(|index| stacks[index.0 as usize]);
    let wakers: Vec<WakerIndex> = normalized
        .wakers()
        .iter()
        .map(|waker| {
            stored.waker(NormalizedWaker {
                user: again(waker.user),
                kernel: again(waker.kernel),
                ..*waker
            })
        })
        .collect();
    for (key, sums) in normalized.samples() {
        let waker = key.waker.map(|index| normalized.waker_at(index));
        let woke = waker.map_or([None; 2], |waker| [waker.kernel, waker.user]);
        let stacks = [key.kernel, key.user].into_iter().chain(woke).flatten();
        let frames: Vec<UnsymbolizedFrames> = stacks
            .map(|stack| {
                let all = normalized.stack_at(stack).locations.iter();
                all.map(|location| locations[location.0 as usize].1)
                    .collect()
            })
            .collect();
        unsymbolized.count(frames.iter(), sums.count);
        let key = NormalizedKey {
            user: again(key.user),
            kernel: again(key.kernel),
            waker: key.waker.map(|index| wakers[index.0 as usize]),
            ..*key
        };
        stored.add(key, sums);
    }
    RecordingContents {
        normalized: stored,
        objects: found,
        unsymbolized: unsymbolized.into_most_first(),
    }
}

/// Decides on an object: it is kept to be looked for later, or asked for names now, or both where
/// it would not be found, but its debug file may be.
fn keep(
    object: &Object,
    processes: &Processes,
    ask: impl FnOnce() -> Answer,
    found: &mut Vec<RecordedObject>,
) -> Kept {
    let recorded = match processes.backing(object.backing) {
        Backing::File(file) => match backings::open(object, processes) {
            Ok((opened, path)) => {
                Elf::read(&opened.file.file).map(|elf| RecordedObject::of(path, &opened.file, &elf))
            }
            Err(_) => (!file.is_memory()).then(|| RecordedObject::gone(file.path.clone())),
        },
        Backing::Vdso | Backing::Memory { .. } => None,
    };
    let Some(recorded) = recorded else {
        return Kept {
            object: None,
            answer: Some(ask()),
        };
    };
    let answer = match (&recorded.proof, recorded.find()) {
        (Some(_), None) => Some(ask()),
        _ => None,
    };
    found.push(recorded);
    let number = u32::try_from(found.len() - 1).expect("objects are fewer than mappings");
    Kept {
        object: Some(ObjectIndex(number)),
        answer,
    }
}

/// Names what a raw recording kept.
pub fn symbolize_stored(
    normalized: NormalizedProfile,
    objects: &[RecordedObject],
    unit: Unit,
    sources: &Sources<'_>,
) -> Symbolized {
    let naming = sources.naming;
    let memory = MemoryBudget::new(naming.memory);
    let look_up = |index: ObjectIndex, offsets: &[FileOffset], fetch: Option<&Fetch<'_>>| {
        let sources = native::Sources {
            naming,
            fetch,
            memory: &memory,
            cache: None,
        };
        look_up(&objects[index.0 as usize], offsets, sources)
    };
    // The kernel's functions have their names already.
    build(
        normalized,
        unit,
        &KernelSymbols::default(),
        sources,
        parallel::threads(),
        &look_up,
    )
}

/// The symbols of an object that is where it was, or whose debug file is somewhere.
fn look_up(
    object: &RecordedObject,
    offsets: &[FileOffset],
    sources: native::Sources<'_>,
) -> Answer {
    let module = visible(MappedFile::module_at(&object.path).as_bytes());
    let found = object.find().map(Opened::ours);
    let reached = match (&found, &object.proof) {
        (Some(_), _) => Reached::Here,
        (None, Some(_)) => Reached::Absent,
        (None, None) => Reached::Gone,
    };
    let named = match (&found, object.outline()) {
        (Some(opened), _) => native::name(opened, &object.path, offsets, sources),
        (None, Some(outline)) => native::name_absent(&outline, &object.path, offsets, sources),
        (None, None) => Named::nothing(offsets.len()),
    };
    let code = (!named.has_symbols).then(|| UnsymbolizedCode::Object {
        module: module.clone(),
        path: object.path.clone(),
        build_id: named.build_id.clone(),
        reached,
    });
    let path = object.path.clone();
    Answer {
        named,
        module,
        path,
        code,
    }
}
