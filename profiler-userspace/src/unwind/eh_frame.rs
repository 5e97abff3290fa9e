//! Reads unwind sections: from descriptions (FDEs) to stretches of code with their rules.
//!
//! In: sections, large ones read by several threads. Out: [`Found`]. A description that is damaged gets
//! [`Rule::UNSUPPORTED`] from there on; one that cannot be parsed at all is left out. Each byte is read a
//! bounded number of times, whatever the sections contain.

use super::found::{Change, Found, Stretch, count};
use super::program::{Effect, Factors, Nonsense, Program, State};
use super::source::Sources;
use super::{go, x86_64};
use crate::code::GoFunctions;
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice,
    FrameDescriptionEntry, LittleEndian, UnwindOffset, UnwindSection,
};
use profiler_common::abi::Rule;
use std::collections::HashMap;
use std::num::NonZero;
use std::ops::Range;
use std::rc::Rc;
use std::thread::{self, Builder};

/// The most shared entries (CIEs). Honest sections stay far below, because linkers merge them into a few, or
/// a few for each source file; hostile ones would be held in memory many times over.
const MAX_COMMONS: usize = 1 << 17;

/// How many bytes of a section justify a thread: some milliseconds of work.
const PART_BYTES: usize = 256 << 10;

/// The most threads for one section. Walks end where there is no table yet, so tables are made in a hurry;
/// but other programs need the machine too.
const MAX_PARTS: usize = 4;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Reads all descriptions of the object's code. Where `.eh_frame` has none, those of a Go program are used, and where there
/// are none of these, `.debug_frame`: Go's linker writes it from the same table, without the frame pointer.
pub(super) fn collect(sources: &Sources<'_>, go: Option<&mut GoFunctions<'_>>) -> Found {
    let mut found = Found::default();
    if let Some(section) = &sources.eh_frame {
        let section = EhFrame::from(EndianSlice::new(&section.bytes, LittleEndian));
        read(&section, sources, &mut found);
    }
    found.sort();
    if let Some(program) = go {
        found.add_where_silent(|found| go::describe(program, &sources.code, found));
    }
    if let Some(section) = &sources.debug_frame {
        let section = DebugFrame::from(EndianSlice::new(&section.bytes, LittleEndian));
        found.add_where_silent(|found| read(&section, sources, found));
    }
    describe_linkage(sources, &mut found);
    found.statistics.descriptions = count(found.stretches.len());
    found.statistics.changes = count(found.changes.len());
    found
}

/// Adds code that linkers leave undescribed although its rules are known.
fn describe_linkage(sources: &Sources<'_>, found: &mut Found) {
    let mut added = Vec::new();
    for section in &sources.linkage {
        let bytes = section.bytes.len() as u64;
        let Some(end) = section.address.checked_add(bytes) else {
            continue;
        };
        let addresses = section.address..end;
        let within = |part: &Range<u64>| part.start <= addresses.start && part.end >= end;
        if !sources.code.iter().any(within) || found.touches(&addresses) {
            continue;
        }
        let first = count(found.changes.len());
        for (after, rule) in x86_64::linkage(&section.bytes) {
            let rule = found.rules.place(rule);
            found.changes.push(Change { after, rule });
        }
        added.push(Stretch {
            addresses,
            changes: first..count(found.changes.len()),
        });
    }
    found.stretches.extend(added);
    found.sort();
}

/// What descriptions share (a CIE).
#[derive(Debug)]
struct Common<'a> {
    entry: CommonInformationEntry<Slice<'a>>,
    factors: Factors,
    /// The state at the beginning.
    initial: Result<State, Nonsense>,
}

/// Reads one section, in parts.
fn read<'a, S>(section: &S, sources: &Sources<'_>, found: &mut Found)
where
    S: UnwindSection<Slice<'a>> + Sync,
{
    let bytes = section.section().len();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let parts = (bytes / PART_BYTES).clamp(1, processors.min(MAX_PARTS));
    read_in_parts(section, sources, parts, found);
}

/// Reads one section, each part in a thread.
fn read_in_parts<'a, S>(section: &S, sources: &Sources<'_>, parts: usize, found: &mut Found)
where
    S: UnwindSection<Slice<'a>> + Sync,
{
    let bytes = section.section().len();
    let begin = |part: usize| part * (bytes / parts);
    let end = |part: usize| {
        if part + 1 == parts {
            bytes
        } else {
            begin(part + 1)
        }
    };
    let read = |part: usize| read_part(section, sources, begin(part)..end(part));
    thread::scope(|scope| {
        // Threads inherit the priority of the one that starts them.
        let others: Vec<_> = (1..parts)
            .map(|part| Builder::new().spawn_scoped(scope, move || read(part)))
            .collect();
        found.absorb(read(0));
        for (part, other) in (1..parts).zip(others) {
            let other = other.ok().and_then(|thread| thread.join().ok());
            // If no thread can be started, the part is read here.
            found.absorb(other.unwrap_or_else(|| read(part)));
        }
    });
}

/// Reads the descriptions that begin in this part of a section.
fn read_part<'a, S>(section: &S, sources: &Sources<'_>, part: Range<usize>) -> Found
where
    S: UnwindSection<Slice<'a>>,
{
    let mut found = Found::default();
    let mut reading = Reading {
        bases: &sources.bases,
        commons: HashMap::new(),
        latest: None,
        budget: section.section().len(),
        section: section.clone(),
        program: Program::new(),
    };
    let is_last = part.end == section.section().len();
    let mut entries = section.entries(&sources.bases);
    loop {
        match entries.next() {
            Ok(Some(CieOrFde::Cie(_))) => {}
            Ok(Some(CieOrFde::Fde(partial))) if partial.offset() < part.start => {}
            Ok(Some(CieOrFde::Fde(partial))) if partial.offset() >= part.end => break,
            Ok(Some(CieOrFde::Fde(partial))) => {
                let Some(common) = reading.common(partial.cie_offset()) else {
                    found.statistics.broken += 1;
                    continue;
                };
                match partial.parse(|_, _, _| Ok(common.entry.clone())) {
                    Ok(entry) => reading.describe(&entry, &common, &sources.code, &mut found),
                    Err(_) => found.statistics.broken += 1,
                }
            }
            Ok(None) => break,
            Err(_) => {
                // All threads see this entry; one of them counts it.
                found.statistics.broken += u32::from(is_last);
                break;
            }
        }
    }
    found
}

/// A section being read.
struct Reading<'a, 'bases, S> {
    section: S,
    bases: &'bases BaseAddresses,
    commons: HashMap<usize, Option<Rc<Common<'a>>>>,
    /// The last shared entry; mostly also the next one.
    latest: Option<(usize, Rc<Common<'a>>)>,
    /// How many bytes of shared entries may still be read. Honest entries are read once each; hostile ones
    /// could overlap.
    budget: usize,
    program: Program,
}

impl<'a, S> Reading<'a, '_, S>
where
    S: UnwindSection<Slice<'a>>,
{
    /// The shared entry at `offset` and its initial state; none if it cannot be read.
    fn common(&mut self, offset: S::Offset) -> Option<Rc<Common<'a>>> {
        let place = UnwindOffset::into(offset);
        if let Some((latest, common)) = &self.latest
            && *latest == place
        {
            return Some(Rc::clone(common));
        }
        if !self.commons.contains_key(&place) {
            if self.commons.len() == MAX_COMMONS {
                return None;
            }
            let common = self.read_common(offset).map(Rc::new);
            self.commons.insert(place, common);
        }
        let common = Rc::clone(self.commons.get(&place)?.as_ref()?);
        self.latest = Some((place, Rc::clone(&common)));
        Some(common)
    }

    fn read_common(&mut self, offset: S::Offset) -> Option<Common<'a>> {
        let entry = self.section.cie_from_offset(self.bases, offset).ok()?;
        self.budget = self.budget.checked_sub(entry.entry_len())?;
        let factors = Factors {
            code: entry.code_alignment_factor(),
            stack: entry.data_alignment_factor(),
            encoding: entry.encoding(),
        };
        self.program.begin(State::EMPTY);
        let mut instructions = entry.instructions(&self.section, self.bases);
        let mut initial = Ok(State::EMPTY);
        loop {
            match instructions.next() {
                Ok(None) => break,
                Ok(Some(ref instruction)) => {
                    match self.program.run(instruction, &factors, &self.section) {
                        Ok(Effect::State) => initial = Ok(self.program.state),
                        _ => {
                            initial = Err(Nonsense);
                            break;
                        }
                    }
                }
                Err(_) => {
                    initial = Err(Nonsense);
                    break;
                }
            }
        }
        if entry.return_address_register().0 != x86_64::RETURN_ADDRESS {
            initial = Err(Nonsense);
        }
        Some(Common {
            entry,
            factors,
            initial,
        })
    }

    /// Adds the code and the changes of one description.
    fn describe(
        &mut self,
        entry: &FrameDescriptionEntry<Slice<'a>>,
        common: &Common<'a>,
        code: &[Range<u64>],
        found: &mut Found,
    ) {
        let addresses = entry.initial_address()..entry.end_address();
        let before = code.partition_point(|part| part.start <= addresses.start);
        let part = code.get(..before).and_then(<[_]>::last);
        let Some(part) = part.filter(|part| part.contains(&addresses.start)) else {
            found.statistics.strays += 1;
            return;
        };
        let end = addresses.end.min(part.end);
        let Ok(bytes) = u32::try_from(end.saturating_sub(addresses.start)) else {
            found.statistics.strays += 1;
            return;
        };
        if bytes == 0 {
            found.statistics.strays += 1;
            return;
        }
        let first = count(found.changes.len());
        let mut noting = Noting {
            found,
            signal: entry.is_signal_trampoline(),
            last: None,
        };
        let after = match common.initial {
            Ok(initial) => {
                self.program.begin(initial);
                let code = addresses.start..addresses.start + u64::from(bytes);
                self.follow(entry, &common.factors, code, &mut noting)
            }
            Err(Nonsense) => Err(0),
        };
        if let Err(after) = after {
            noting.note_rule(after, Rule::UNSUPPORTED);
            found.statistics.broken += 1;
        }
        found.stretches.push(Stretch {
            addresses: addresses.start..end,
            changes: first..count(found.changes.len()),
        });
    }

    /// Runs the instructions for `code`. Returns the offset from which they are invalid, if any.
    fn follow(
        &mut self,
        entry: &FrameDescriptionEntry<Slice<'a>>,
        factors: &Factors,
        code: Range<u64>,
        noting: &mut Noting<'_>,
    ) -> Result<(), u32> {
        let mut instructions = entry.instructions(&self.section, self.bases);
        let mut after = 0;
        loop {
            let effect = match instructions.next() {
                // Kept by reference: it was written in parts, and copying it would stall the processor until
                // all of them are stored.
                Ok(Some(ref instruction)) => self.program.run(instruction, factors, &self.section),
                Ok(None) => break,
                Err(_) => return Err(after),
            };
            let effect = effect.map_err(|Nonsense| after)?;
            let next = match effect {
                Effect::State => continue,
                Effect::Advance(bytes) => u64::from(after).saturating_add(bytes),
                Effect::Jump(address) => match address.checked_sub(code.start) {
                    Some(next) if next >= u64::from(after) => next,
                    _ => return Err(after),
                },
            };
            if let Some(state) = self.program.changed() {
                noting.note(after, state);
            }
            match u32::try_from(next) {
                Ok(next) if u64::from(next) < code.end - code.start => after = next,
                _ => return Ok(()),
            }
        }
        if let Some(state) = self.program.changed() {
            noting.note(after, state);
        }
        Ok(())
    }
}

/// Collects the changes of one description.
struct Noting<'f> {
    found: &'f mut Found,
    signal: bool,
    /// The last rule added.
    last: Option<Rule>,
}

impl Noting<'_> {
    fn note(&mut self, after: u32, state: &State) {
        self.note_rule(after, x86_64::rule(state, self.signal));
    }

    fn note_rule(&mut self, after: u32, rule: Rule) {
        if self.last == Some(rule) {
            return;
        }
        self.last = Some(rule);
        let rule = self.found.rules.place(rule);
        self.found.changes.push(Change { after, rule });
    }
}

#[cfg(test)]
mod tests;
