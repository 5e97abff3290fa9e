//! Reads unwind sections: from descriptions (FDEs) to stretches of code with their rules.
//!
//! In: sections, or places in one. Out: [`UnwindFindings`]. A description that is damaged gets
//! [`Rule::UNSUPPORTED`] from there on; one that cannot be parsed at all is left out. Each byte is read a
//! bounded number of times, whatever the sections contain.

mod usual;

use super::found::{Stretch, UnwindFindings, count, part_at};
use super::program::{Effect, Factors, Nonsense, Program, State};
use super::source::Sources;
use super::{arch, go};
use crate::code::GoFunctions;
use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame,
    EndianSlice, LittleEndian, PartialFrameDescriptionEntry, UnwindOffset, UnwindSection,
};
use profiler_common::abi::Rule;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use usual::Usual;

/// The most shared entries (CIEs). Honest sections stay far below, because linkers merge them into a few, or
/// a few for each source file; hostile ones would be held in memory many times over.
const MAX_COMMONS: usize = 1 << 17;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Reads all descriptions of the object's code. Where `.eh_frame` has none, those of a Go program are used, and where there
/// are none of these, `.debug_frame`: Go's linker writes it from the same table, without the frame pointer.
///
/// Code that is described by a section that is only indexed has [`Rule::UNREAD`]; `unread` are its
/// addresses.
pub(super) fn collect(
    sources: &Sources,
    unread: Vec<Range<u64>>,
    go: Option<&mut GoFunctions<'_>>,
) -> UnwindFindings {
    let mut found = UnwindFindings::default();
    found.statistics.has_unread = !unread.is_empty();
    found.add_alike(unread, Rule::UNREAD);
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
fn describe_linkage(sources: &Sources, found: &mut UnwindFindings) {
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
        let first = found.next_change();
        for (after, rule) in arch::linkage(&section.bytes) {
            found.change(after, rule);
        }
        let changes = first..found.next_change();
        added.push(Stretch { addresses, changes });
    }
    found.stretches.extend(added);
    found.sort();
}

/// Shared part of descriptions (a CIE).
#[derive(Debug)]
struct Common<'a> {
    entry: CommonInformationEntry<Slice<'a>>,
    /// Whether its descriptions are [written as usual](usual::ENCODING), and begin as most do.
    is_usual: bool,
    factors: Factors,
    /// The state at the beginning.
    initial: Result<State, Nonsense>,
}

/// Reads one section.
fn read<'a, S>(section: &S, sources: &Sources, found: &mut UnwindFindings)
where
    S: UnwindSection<Slice<'a>>,
{
    let mut reading = Reading::of(section, &sources.bases);
    let mut entries = section.entries(&sources.bases);
    loop {
        match entries.next() {
            Ok(Some(CieOrFde::Cie(_))) => {}
            Ok(Some(CieOrFde::Fde(partial))) => reading.take(&partial, &sources.code, found),
            Ok(None) => break,
            Err(_) => {
                found.statistics.broken += 1;
                break;
            }
        }
    }
}

/// Reads the descriptions at these places of a section.
pub(super) fn read_some<'a>(
    section: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    places: &[usize],
    code: &[Range<u64>],
    found: &mut UnwindFindings,
) {
    let mut reading = Reading::of(section, bases);
    for &place in places {
        match section.partial_fde_from_offset(bases, place.into()) {
            Ok(partial) => reading.take(&partial, code, found),
            Err(_) => found.statistics.broken += 1,
        }
    }
}

/// Reads descriptions that were copied out of a section, each with its place there and that among `bytes`. Returns the places of
/// those that are not of the usual kind, and were not read.
pub(super) fn read_copies<'a>(
    section: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    (bytes, copies): (&[u8], Vec<(usize, Range<usize>)>),
    code: &[Range<u64>],
    found: &mut UnwindFindings,
) -> Vec<usize> {
    let mut reading = Reading::of(section, bases);
    let is_other = |&(offset, ref part): &(usize, Range<usize>)| {
        let bytes = &bytes[part.clone()];
        let common = usual::shared(bytes, offset).and_then(|at| reading.common(at.into()));
        !common.is_some_and(|common| reading.take_usual(bytes, offset, &common, code, found))
    };
    let others = copies.into_iter().filter(is_other);
    others.map(|(offset, _)| offset).collect()
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
    rules: usual::Rules,
}

impl<'a, 'bases, S> Reading<'a, 'bases, S>
where
    S: UnwindSection<Slice<'a>>,
{
    fn of(section: &S, bases: &'bases BaseAddresses) -> Self {
        Self {
            bases,
            commons: HashMap::new(),
            latest: None,
            budget: section.section().len(),
            section: section.clone(),
            program: Program::new(),
            rules: usual::Rules::new(),
        }
    }

    /// Adds what a description says.
    fn take(
        &mut self,
        partial: &PartialFrameDescriptionEntry<'_, S, Slice<'a>>,
        code: &[Range<u64>],
        found: &mut UnwindFindings,
    ) {
        let Some(common) = self.common(partial.cie_offset()) else {
            found.statistics.broken += 1;
            return;
        };
        let section = self.section.section().slice();
        let offset = partial.offset();
        let bytes = section.get(offset..).unwrap_or_default();
        if !self.take_usual(bytes, offset, &common, code, found) {
            self.take_any(partial, &common, code, found);
        }
    }

    /// Adds what a description says, whatever its kind.
    fn take_any(
        &mut self,
        partial: &PartialFrameDescriptionEntry<'_, S, Slice<'a>>,
        common: &Common<'a>,
        code: &[Range<u64>],
        found: &mut UnwindFindings,
    ) {
        let Ok(entry) = partial.parse(|_, _, _| Ok(common.entry.clone())) else {
            found.statistics.broken += 1;
            return;
        };
        let addresses = entry.initial_address()..entry.end_address();
        let section = self.section.clone();
        let mut instructions = entry.instructions(&section, self.bases);
        let next = || instructions.next().map_err(|_| Nonsense);
        let taken = self.describe(addresses, code, found, |reading, code, found| {
            let mut noting = Noting {
                found,
                signal: common.entry.is_signal_trampoline(),
                last: None,
            };
            let stopped = match &common.initial {
                Ok(initial) => {
                    reading.program.begin(initial);
                    reading.follow(next, &common.factors, code.clone(), &mut noting)
                }
                Err(Nonsense) => Err((0, Nonsense)),
            };
            if let Err((after, Nonsense)) = stopped {
                noting.note_rule(after, Rule::UNSUPPORTED);
                found.statistics.broken += 1;
            }
            Some(())
        });
        debug_assert!(taken.is_some(), "the general reader knows all");
    }

    /// Adds what a description of the usual kind says, which `bytes` begin with; false if it is of another.
    fn take_usual(
        &mut self,
        bytes: &[u8],
        offset: usize,
        common: &Common<'a>,
        code: &[Range<u64>],
        found: &mut UnwindFindings,
    ) -> bool {
        let section = self.bases.eh_frame.section.filter(|_| common.is_usual);
        let address = section.map(|section| section.wrapping_add(offset as u64));
        let usual = address.and_then(|address| Usual::of(bytes, address));
        let Some(Usual {
            addresses,
            instructions,
        }) = usual
        else {
            return false;
        };
        let read = |reading: &mut Self, code: &Range<u64>, found: &mut UnwindFindings| {
            let length = (code.end - code.start) as u32;
            let note = |after, rule| found.change(after, rule);
            usual::follow(instructions, length, &mut reading.rules, note)
        };
        self.describe(addresses, code, found, read).is_some()
    }

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
        self.program.begin(&State::EMPTY);
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
        if entry.return_address_register().0 != arch::RETURN_ADDRESS {
            initial = Err(Nonsense);
        }
        let is_usual = entry.fde_address_encoding() == Some(usual::ENCODING)
            && factors.code == 1
            && factors.stack == -8
            && !entry.is_signal_trampoline()
            && initial.as_ref().is_ok_and(arch::begins_as_usual);
        Some(Common {
            is_usual,
            entry,
            factors,
            initial,
        })
    }

    /// Adds the code of one description, and the changes that `read` finds in it; nothing if it finds none that it knows.
    fn describe(
        &mut self,
        addresses: Range<u64>,
        code: &[Range<u64>],
        found: &mut UnwindFindings,
        read: impl FnOnce(&mut Self, &Range<u64>, &mut UnwindFindings) -> Option<()>,
    ) -> Option<()> {
        let Some(part) = part_at(code, addresses.start) else {
            found.statistics.strays += 1;
            return Some(());
        };
        let end = addresses.end.min(part.end);
        let bytes = u32::try_from(end.saturating_sub(addresses.start));
        if !bytes.is_ok_and(|bytes| bytes > 0) {
            found.statistics.strays += 1;
            return Some(());
        }
        let addresses = addresses.start..end;
        let first = found.next_change();
        if read(self, &addresses, found).is_none() {
            found.changes.truncate(first as usize);
            return None;
        }
        found.add_stretch(addresses, first);
        Some(())
    }

    /// Runs the instructions for `code`. Returns the offset from which they cannot be run, if any.
    fn follow(
        &mut self,
        mut next: impl FnMut() -> Result<Option<CallFrameInstruction<usize>>, Nonsense>,
        factors: &Factors,
        code: Range<u64>,
        noting: &mut Noting<'_>,
    ) -> Result<(), (u32, Nonsense)> {
        let mut after = 0;
        loop {
            let effect = match next() {
                // Kept by reference: it was written in parts, and copying it would stall the processor until
                // all of them are stored.
                Ok(Some(ref instruction)) => self.program.run(instruction, factors, &self.section),
                Ok(None) => break,
                Err(Nonsense) => return Err((after, Nonsense)),
            };
            let effect = effect.map_err(|nonsense| (after, nonsense))?;
            let next = match effect {
                Effect::State => continue,
                Effect::Advance(bytes) => u64::from(after).saturating_add(bytes),
                Effect::Jump(address) => match address.checked_sub(code.start) {
                    Some(next) if next >= u64::from(after) => next,
                    _ => return Err((after, Nonsense)),
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
    found: &'f mut UnwindFindings,
    signal: bool,
    /// The last rule added.
    last: Option<Rule>,
}

impl Noting<'_> {
    fn note(&mut self, after: u32, state: &State) {
        self.note_rule(after, arch::rule(state, self.signal));
    }

    fn note_rule(&mut self, after: u32, rule: Rule) {
        if self.last == Some(rule) {
            return;
        }
        self.last = Some(rule);
        self.found.change(after, rule);
    }
}

#[cfg(test)]
mod tests;
