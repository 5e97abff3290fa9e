//! Caches what is mapped where in recently walked processes, from one firing to the next.
//!
//! In: an address of the running process. Out: its range and the table of the code there. Code that is not installed is
//! reported to user space.

use crate::{
    events,
    platform::{
        config,
        log::{self, Happened},
        maps::{CONTROL, Scratch},
        subprog::subprog,
        word::Word,
    },
    sample::context::SampleContext,
    walk::{
        code_index,
        mappings::{self, Mapping},
        scratch::{CachedCode, FOUND, KNOWN, ProcessCache},
    },
};
use profiler_common::{
    abi::{CodeKey, KernelEventKind, MappingKey, Switches, used_clock},
    intern::Hash,
};

/// Findings that are kept of the process whose stack is being walked.
#[inline(always)]
pub(crate) fn known(scratch: &'static Scratch) -> Option<&'static ProcessCache> {
    // From memory, so that the verifier treats all entries as one; the same for `current` below.
    let place = scratch.walk.place.load() as usize & (KNOWN - 1);
    scratch.walk.known.get(place)
}

/// The code mapped at an address: from the cache, or looked up.
#[inline(always)]
pub(crate) fn look_up(
    cpu_slot: u32,
    scratch: &'static Scratch,
    address: u64,
) -> Option<&'static CachedCode> {
    let known = known(scratch)?;
    // Most callers are in the same mapping as their callees.
    let found = known
        .found
        .get(known.current.load() as usize & (FOUND - 1))?;
    if found.holds(address) {
        return Some(found);
    }
    let mut current = FOUND as u64;
    for (place, found) in known.found.iter().enumerate() {
        if found.holds(address) {
            current = place as u64;
        }
    }
    known.current.store(current);
    if known.current.load() >= FOUND as u64 {
        current = known.turn.load() & (FOUND as u64 - 1);
        known.turn.store(current.wrapping_add(1));
        known.current.store(current);
        if let Some(hash) = find_code(cpu_slot, address) {
            let context = SampleContext::of(cpu_slot)?;
            if log::is_on() {
                let words = scratch.walk.words.load();
                log::note(Happened::UnknownCode, context.ids.tgid, words, address);
            }
            events::code(KernelEventKind::UnknownCode, context, address, hash);
        }
    }
    known.found.get(known.current.load() as usize & (FOUND - 1))
}

subprog! {
    /// Looks up what is mapped at an address of the running process and caches it. For code that is not installed, returns
    /// the hash of its file.
    fn find_code(cpu_slot: u32, address: u64) -> Option<Hash> {
        let scratch = Scratch::of(cpu_slot)?;
        let known = known(scratch)?;
        let found = known.found.get(known.current.load() as usize & (FOUND - 1))?;
        let [_, space, ..] = &known.stamp;
        find(scratch, space.load(), found, address)
    }
}

#[inline(always)]
fn find(
    scratch: &'static Scratch,
    space: u64,
    found: &'static CachedCode,
    address: u64,
) -> Option<Hash> {
    found.start.store(address);
    found.end.store(address.wrapping_add(1));
    found.kind.store(CachedCode::NOWHERE);
    found.mapping_key.store(MappingKey::NONE.0);
    found.unreported.store(0);
    let mapping = mappings::find(space, scratch, address)?;
    found.start.store(mapping.start);
    found.end.store(mapping.end);
    if !mapping.is_executable() {
        return None;
    }
    let (key, offset) = mapping.code();
    let file = code_index::hash(key);
    if config::has(Switches::MAPPING_EVENTS) {
        let hash = hash_of_mapping(scratch, file, mapping, offset);
        found.unreported.store(hash.0);
    }
    let is_memory = key.is_anonymous();
    // Distance from an address to its file offset.
    let mut in_file = offset.wrapping_sub(mapping.start);
    let mapping_key = match is_memory {
        true => MappingKey::MEMORY,
        false => MappingKey::of_file(file, in_file),
    };
    found.mapping_key.store(mapping_key.0);
    if !config::has(Switches::UNWIND_ROWS) {
        found.kind.store(CachedCode::NO_TABLE);
        return None;
    }
    let (mut key, mut file) = (key, file);
    if is_memory {
        // It may hold code that a file describes.
        let tgid = (scratch.context.ids.load() >> 32) as u32;
        key = CodeKey::of_memory(tgid, scratch.context.incarnation.load(), mapping.start);
        file = code_index::hash(key);
        in_file = 0;
    }
    match code_index::find(file, key, address.wrapping_add(in_file)) {
        Some(slot) => {
            code_index::note_use(slot, scratch.context.now.load());
            let first = slot.start.load().wrapping_sub(in_file) as i64;
            if first > mapping.start as i64 {
                found.start.store(first as u64);
            }
            let end = slot.end.load().wrapping_sub(in_file) as i64;
            if end < mapping.end as i64 {
                found.end.store(end as u64);
            }
            found.shift.store(in_file.wrapping_add(slot.shift.load()));
            found.kind.store(slot.state.load());
            None
        }
        // Also memory that the kernel itself maps, other than the vDSO.
        None if is_memory || key.device == 0 => {
            found.kind.store(CachedCode::NO_TABLE);
            None
        }
        None => {
            found.kind.store(CachedCode::UNKNOWN);
            // Zero is no hash here.
            Some(Hash(file.0 | 1))
        }
    }
}

/// Hash of the process and a mapping, given the hash of its file and the offset in it.
#[inline(always)]
pub(crate) fn hash_of_mapping(
    scratch: &'static Scratch,
    file: Hash,
    mapping: Mapping,
    offset: u64,
) -> Hash {
    let context = &scratch.context;
    // Of the IDs, the upper half is the process's.
    file.with(context.incarnation.load())
        .with(context.ids.load() >> 32)
        .with(mapping.start)
        .with(mapping.end)
        .with(offset)
}

subprog! {
    /// False if the process's memory is gone. Otherwise selects the cache of the process, and clears it
    /// if it may be stale: the place had another process, or the mappings or the index of code have
    /// changed.
    ///
    /// It is also cleared every second, so that use of tables is recorded ([`used_clock`]).
    pub(crate) fn refresh_code_cache(cpu_slot: u32) -> bool {
        refresh(cpu_slot).is_some()
    }
}

#[inline(always)]
fn refresh(cpu_slot: u32) -> Option<()> {
    let Scratch { walk, .. } = Scratch::of(cpu_slot)?;
    let context = SampleContext::of(cpu_slot)?;
    let space = mappings::space();
    if space == 0 {
        return None;
    }
    let place = context.ids.tgid as usize & (KNOWN - 1);
    walk.place.store(place as u64);
    let known = walk.known.get(place)?;
    let code_changes = CONTROL
        .get(0)
        .map_or(0, |control| control.code_changes.load());
    walk.code_changes.store(code_changes);
    let changes = mappings::changes(space);
    let [process, memory, state, second] = &known.stamp;
    let other = renew(process, context.incarnation) | renew(memory, space);
    if other != 0 {
        known.runtime.store(0);
        known.fruitless.store(0);
    }
    let difference = other
        | renew(state, u64::from(changes.unwrap_or(0)) | code_changes << 32)
        | renew(second, used_clock(context.now))
        | u64::from(changes.is_none());
    if difference != 0 {
        for found in &known.found {
            found.end.store(0);
        }
        known.memory_state.store(match changes {
            Some(_) => {
                let number = walk.memory_states.load().wrapping_add(1);
                walk.memory_states.store(number);
                number
            }
            None => 0,
        });
    }
    walk.memory_state.store(known.memory_state.load());
    Some(())
}

/// Sets the word, and returns zero if it had this value.
#[inline(always)]
fn renew(word: &Word, value: u64) -> u64 {
    let difference = word.load() ^ value;
    word.store(value);
    difference
}
