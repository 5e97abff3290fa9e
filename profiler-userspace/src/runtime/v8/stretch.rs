//! Code that V8's compilers made, in one stretch: the calls that were compiled into its functions, and lines.
//!
//! In: the address of a stretch. Out: pieces of code, and what the instructions of each belong to. Code lies in pages, each piece
//! behind a head that refers to its `Code`; nothing leads from an address to the head, so it is searched for downwards.

use super::heap::Heap;
use super::positions::{Entry, ScriptPosition, entries};
use crate::process::ProcessKey;
use crate::runtime::{BLOCK_BYTES, TargetMemory};
use foldhash::HashMap;
use profiler_common::runtime::v8::{STRETCH_BYTES, address_of, is_object};

/// The most bytes below a stretch that are searched, and how many at a time.
const MAX_SEARCHED: u64 = 1 << 20;
const PIECE: u64 = BLOCK_BYTES as u64;
/// So many pieces are read at once where the head is not near.
const MAX_PIECES: u64 = 4;
/// How far behind its head code begins, at most.
const MAX_HEAD: u64 = 128;
/// The most bytes of a table, and of an array.
const MAX_BYTES: usize = 1 << 18;
/// So many of the functions that are compiled into one are read ahead.
const MAX_AHEAD: usize = 8;
/// How deep calls are compiled into one another, at most.
const MAX_CALLS: usize = 32;

/// A piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// A reference to the `Code`.
    object: u64,
    start: u64,
    end: u64,
}

/// Instructions that belong to the same place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Where they end, from the begin of the stretch.
    pub(super) end: u32,
    /// The functions and places in them: calls that were compiled into one another, innermost first, and the function that the code
    /// is of last. Empty if nothing is known.
    pub(super) levels: Vec<Level>,
}

/// A function, by the address of its `SharedFunctionInfo`, and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) shared: u64,
    pub(super) offset: Option<u32>,
}

/// Maps of the heads of code, by which these are found without looking up what every other word refers to: those of an isolate
/// have one.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Heads {
    of: HashMap<ProcessKey, Vec<u64>>,
    /// The code in stretches that are looked at now, of one process.
    found: HashMap<u64, Vec<Code>>,
    /// Code that was read of these, with what it referred to then, and the numbers of the functions that it was read for.
    read: Vec<(Code, References, usize)>,
}

/// References of a piece of code: to its table of positions, and what deoptimization needs, with its function, the calls compiled into
/// it and their functions. The collector changes these words when it moves what they refer to.
type References = [Option<u64>; 5];

/// The most maps of heads that are kept of a process, and the most processes.
const MAX_MAPS: usize = 64;
const MAX_PROCESSES: usize = 1 << 10;

impl Heads {
    /// The pieces of code that a stretch has a part of, from the lowest, until [`settle`](Self::settle).
    pub(super) fn codes(
        &mut self,
        heap: &Heap<'_>,
        process: ProcessKey,
        stretch: u64,
    ) -> Vec<Code> {
        if let Some(found) = self.found.get(&stretch) {
            return found.clone();
        }
        let found = self.search(heap, process, stretch);
        self.found.insert(stretch, found.clone());
        found
    }

    /// References to what may be the `Code` of a stretch, by what was read of it and below it.
    pub(super) fn objects(&self, heap: &Heap<'_>, process: ProcessKey, stretch: u64) -> Vec<u64> {
        let (known, mut objects) = (self.of.get(&process), Vec::new());
        let first = (stretch & !(PIECE - 1)).wrapping_sub(PIECE);
        let mut words = [[0; 8]; 2 * BLOCK_BYTES / 8];
        let (below, own) = words.as_flattened_mut().split_at_mut(BLOCK_BYTES);
        let copied = heap.memory.copy(first, below);
        let copied = copied.and_then(|()| heap.memory.copy(first.wrapping_add(PIECE), own));
        if copied.is_none() {
            return objects;
        }
        let last = ((stretch.wrapping_sub(first) + STRETCH_BYTES) / 8) as usize;
        for place in (0..last).rev() {
            let map = u64::from_le_bytes(words[place]);
            if known.is_some_and(|known| known.contains(&map)) {
                let object = words.get(place + 1).map(|word| u64::from_le_bytes(*word));
                objects.extend(object);
                if first.wrapping_add(8 * place as u64) < stretch {
                    break;
                }
            }
        }
        objects
    }

    /// The functions that what may be the `Code` of a stretch is of, by the addresses of their `SharedFunctionInfo`s.
    pub(super) fn functions(&self, heap: &Heap<'_>, process: ProcessKey, stretch: u64) -> Vec<u64> {
        let objects = self.objects(heap, process, stretch);
        let codes = objects.into_iter().map(|object| Code {
            object,
            start: 0,
            end: 0,
        });
        codes.filter_map(|code| code.function(heap)).collect()
    }

    /// Notes that a piece of code is read, for the function of this number.
    pub(super) fn note(&mut self, heap: &Heap<'_>, code: Code, number: usize) {
        self.read.push((code, code.references(heap), number));
    }

    /// Where the code is described that was read.
    pub(in crate::runtime) fn places(&self, memory: &TargetMemory, step: usize) -> Vec<u64> {
        let (heap, mut places) = (Heap::new(memory), Vec::new());
        for (code, ..) in &self.read {
            code.places(&heap, step, &mut places);
        }
        places
    }

    /// Forgets what lay in stretches. Returns the numbers of functions whose code refers to something else by now: what was read of
    /// them may be of other objects.
    pub(in crate::runtime) fn settle(&mut self, memory: &TargetMemory) -> Vec<usize> {
        self.found.clear();
        let heap = Heap::new(memory);
        let read = self.read.drain(..);
        let wrong = read.filter(|(code, references, _)| code.references(&heap) != *references);
        wrong.map(|(_, _, number)| number).collect()
    }

    fn search(&mut self, heap: &Heap<'_>, process: ProcessKey, stretch: u64) -> Vec<Code> {
        let known = self.of.get(&process);
        if let Some(known) = known {
            let is_head = |map: u64| known.contains(&map) && is_head(heap, map);
            if let Some(found) = codes(heap, stretch, is_head) {
                return found;
            }
        }
        // Of another isolate, or the first.
        let (mut kinds, mut maps) = (HashMap::default(), Vec::new());
        let Some(found) = codes(heap, stretch, |map| {
            let is_head = *kinds.entry(map).or_insert_with(|| is_head(heap, map));
            if is_head {
                maps.push(map);
            }
            is_head
        }) else {
            return Vec::new();
        };
        if self.of.len() >= MAX_PROCESSES && !self.of.contains_key(&process) {
            self.of.clear();
        }
        let known = self.of.entry(process).or_default();
        maps.retain(|map| !known.contains(map));
        maps.dedup();
        known.extend(maps);
        known.truncate(MAX_MAPS);
        found
    }
}

/// Whether a map is of the heads of code.
fn is_head(heap: &Heap<'_>, map: u64) -> bool {
    heap.type_of_map(map) == Some(heap.layout.instructions)
}

/// The pieces of code that a stretch has a part of, from the lowest; none at all if no head was met.
fn codes(heap: &Heap<'_>, stretch: u64, mut is_head: impl FnMut(u64) -> bool) -> Option<Vec<Code>> {
    let mut found = Vec::new();
    let mut end = stretch.saturating_add(STRETCH_BYTES);
    let mut piece = [0; PIECE as usize];
    // That piece and the one below it were read ahead.
    let mut read_from = (stretch & !(PIECE - 1)).saturating_sub(PIECE);
    while end > stretch.saturating_sub(MAX_SEARCHED) {
        let start = end.saturating_sub(1) & !(PIECE - 1);
        if start < read_from {
            let pieces = (0..MAX_PIECES).map(|number| start.saturating_sub(number * PIECE));
            heap.memory.read_ahead(pieces);
            read_from = start.saturating_sub((MAX_PIECES - 1) * PIECE);
        }
        let bytes = &mut piece[..(end - start) as usize];
        if heap.memory.copy(start, bytes).is_none() {
            break;
        }
        for (place, word) in bytes.as_chunks().0.iter().enumerate().rev() {
            let map = u64::from_le_bytes(*word);
            let object = || match bytes.as_chunks().0.get(place + 1) {
                Some(word) => u64::from_le_bytes(*word),
                None => heap.word(end).unwrap_or(0),
            };
            if !is_object(map) {
                continue;
            }
            let object = object();
            let may_be_head = heap.layout.is_one_object() || is_object(object);
            if !may_be_head || !is_head(map) {
                continue;
            }
            let head = start + 8 * place as u64;
            if let Some(code) = code_at(heap, head, object) {
                if code.end > stretch && code.start < stretch + STRETCH_BYTES {
                    found.push(code);
                }
                if head < stretch {
                    found.reverse();
                    return Some(found);
                }
            }
        }
        end = start;
    }
    found.reverse();
    (!found.is_empty()).then_some(found)
}

/// The code behind a head whose second word is this, if it is one.
fn code_at(heap: &Heap<'_>, head: u64, object: u64) -> Option<Code> {
    let layout = heap.layout;
    let (object, start) = if layout.is_one_object() {
        (head | 1, head.checked_add(layout.start.into())?)
    } else {
        (heap.type_of(object)? == layout.code).then_some(())?;
        (object, heap.field(object, layout.start.into())?)
    };
    let size = heap.field(object, layout.size.into())? as u32;
    let is_behind = start > head && start - head <= MAX_HEAD;
    is_behind.then_some(())?;
    Some(Code {
        object,
        start,
        end: start.checked_add(size.into())?,
    })
}

impl Code {
    /// Where it is described: by itself; in the next step, by what it refers to; and then by what that refers to, until the functions
    /// that are compiled into it.
    pub(super) fn places(&self, heap: &Heap<'_>, step: usize, places: &mut Vec<u64>) {
        let layout = heap.layout;
        match step {
            0 => places.push(self.object),
            1 => places.extend(heap.field(self.object, layout.deoptimization.into())),
            2 => {
                let indexes = [layout.function, layout.inlined, layout.literals];
                places.extend(indexes.iter().filter_map(|index| self.data(heap, *index)));
            }
            3 => {
                let functions: Vec<u64> = self.inlined(heap).collect();
                if !functions.is_empty() {
                    places.extend(heap.field(self.object, layout.positions.into()));
                }
                places.extend(functions);
            }
            _ if layout.is_wrapped != 0 => {
                let wrappers = self.inlined(heap);
                places.extend(wrappers.filter_map(|wrapper| heap.field(wrapper, 8)));
            }
            _ => {}
        }
    }

    /// References to the first of the functions that are compiled into it, as its literals have them, by the lowest bytes of their
    /// numbers: few code has more.
    fn inlined(&self, heap: &Heap<'_>) -> impl Iterator<Item = u64> {
        let calls = self.data(heap, heap.layout.inlined);
        let calls = calls.and_then(|calls| heap.bytes(calls, 1, 16 * MAX_AHEAD));
        let literals = self.data(heap, heap.layout.literals).unwrap_or(0);
        let indexes = calls.unwrap_or_default().into_iter().skip(8).step_by(16);
        indexes.filter_map(move |index| heap.field(literals, 16 + 8 * u64::from(index)))
    }

    /// See [`References`].
    fn references(&self, heap: &Heap<'_>) -> References {
        let layout = heap.layout;
        [
            heap.field(self.object, layout.positions.into()),
            heap.field(self.object, layout.deoptimization.into()),
            self.data(heap, layout.function),
            self.data(heap, layout.inlined),
            self.data(heap, layout.literals),
        ]
    }

    /// The function that it is of, by the address of its `SharedFunctionInfo`; none of code that has nothing compiled into it.
    pub(super) fn function(&self, heap: &Heap<'_>) -> Option<u64> {
        let layout = heap.layout;
        let flags = heap.field(self.object, layout.flags.into())?;
        // The kind is in the lowest four bits, in all versions.
        (flags as u16 & 15 > layout.baseline).then_some(())?;
        self.unwrapped(heap, self.data(heap, layout.function)?)
    }

    /// An element of what deoptimization needs.
    fn data(&self, heap: &Heap<'_>, index: u16) -> Option<u64> {
        let data = heap.field(self.object, heap.layout.deoptimization.into())?;
        heap.field(data, 16 + 8 * u64::from(index))
    }

    /// The address of a `SharedFunctionInfo` that is referred to, through its wrapper where there is one.
    fn unwrapped(&self, heap: &Heap<'_>, shared: u64) -> Option<u64> {
        let shared = if heap.layout.is_wrapped != 0 {
            heap.field(shared, 8)?
        } else {
            shared
        };
        is_object(shared).then_some(address_of(shared))
    }

    /// Runs of instructions in a stretch, in order; none if nothing is known. `function`: what the code is of. `places`: whether the
    /// places in functions are wanted; otherwise code with nothing compiled into it has no runs.
    pub(super) fn runs(
        &self,
        heap: &Heap<'_>,
        stretch: u64,
        function: u64,
        places: bool,
    ) -> Vec<Run> {
        self.runs_of(heap, stretch, function, places)
            .unwrap_or_default()
    }

    fn runs_of(
        &self,
        heap: &Heap<'_>,
        stretch: u64,
        function: u64,
        places: bool,
    ) -> Option<Vec<Run>> {
        let layout = heap.layout;
        let calls = self.data(heap, layout.inlined)?;
        let calls = heap.bytes(calls, 1, MAX_BYTES).unwrap_or_default();
        let (calls, _) = calls.as_chunks::<16>();
        (places || !calls.is_empty()).then_some(())?;
        let table = heap.field(self.object, layout.positions.into())?;
        let entries = entries(&heap.bytes(table, 1, MAX_BYTES)?, heap.version);
        let literals = self.data(heap, layout.literals)?;
        let literal = |index: u32| {
            let literal = heap.field(literals, 16 + 8 * u64::from(index))?;
            self.literal(heap, literal)
        };
        let levels = |place: ScriptPosition| {
            let mut levels = levels(place, calls, literal, function);
            let dropped = levels.iter_mut().filter(|_| !places);
            dropped.for_each(|level| level.offset = None);
            levels
        };
        Some(runs(self.start, self.end, stretch, &entries, levels))
    }

    /// The address of the `SharedFunctionInfo` that a literal refers to, as it is or in a wrapper.
    fn literal(&self, heap: &Heap<'_>, literal: u64) -> Option<u64> {
        let shared = super::shared_type(heap);
        if heap.type_of(literal)? == shared {
            return Some(address_of(literal));
        }
        self.unwrapped(heap, literal)
    }
}

/// Functions and places in them, innermost first, of a place. `calls`: of each, the place of the call, and the number of its
/// function's literal.
fn levels(
    place: ScriptPosition,
    calls: &[[u8; 16]],
    literal: impl Fn(u32) -> Option<u64>,
    function: u64,
) -> Vec<Level> {
    let (mut place, mut levels) = (place, Vec::new());
    while place.call != 0 {
        let call = calls.get(place.call as usize - 1);
        let Some((call, true)) = call.map(|call| (call, levels.len() < MAX_CALLS)) else {
            return Vec::new();
        };
        let (at, literals) = call.split_at(8);
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        // A negative index stands for the function itself.
        let index = u32::try_from(number(&literals[..4]) as u32 as i32);
        let Some(shared) = index.map_or(Some(function), &literal) else {
            return Vec::new();
        };
        levels.push(Level {
            shared,
            offset: place.offset,
        });
        place = ScriptPosition::of(number(at));
    }
    levels.push(Level {
        shared: function,
        offset: place.offset,
    });
    levels
}

/// Runs of the instructions from `start` to `end` that are in a stretch.
fn runs(
    start: u64,
    end: u64,
    stretch: u64,
    entries: &[Entry],
    levels: impl Fn(ScriptPosition) -> Vec<Level>,
) -> Vec<Run> {
    let within = |address: u64| address.saturating_sub(stretch).min(STRETCH_BYTES) as u32;
    let mut runs = vec![Run {
        end: within(start),
        levels: Vec::new(),
    }];
    for (index, entry) in entries.iter().enumerate() {
        let next = entries.get(index + 1).map(|next| next.instruction);
        let end = next.map_or(end, |next| start.saturating_add(next.into()).min(end));
        let begins = start.saturating_add(entry.instruction.into());
        if end <= stretch || begins >= stretch + STRETCH_BYTES {
            continue;
        }
        if let Some(last) = runs.last_mut().filter(|_| begins > stretch && index == 0) {
            last.end = within(begins);
        }
        // Of several at one instruction, the last holds.
        if runs.last().is_none_or(|last| within(end) > last.end) {
            runs.push(Run {
                end: within(end),
                levels: levels(entry.place),
            });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn what_was_read_of_code_whose_tables_moved_is_wrong() {
        let fake = Fake::default();
        let memory = fake.memory();
        let (heap, mut heads) = (Heap::new(&memory), Heads::default());
        let code = Code {
            object: fake.code([0x101, 0x201, 0x301]),
            start: 0,
            end: 0x100,
        };
        heads.note(&heap, code, 4);
        assert_eq!(heads.places(&memory, 0), [code.object]);
        memory.forget();
        assert!(heads.settle(&memory).is_empty());
        heads.note(&heap, code, 4);
        heads.note(&heap, code, 7);
        fake.code([0x101, 0x501, 0x301]);
        memory.forget();
        assert_eq!(heads.settle(&memory), [4, 7]);
        assert!(heads.settle(&memory).is_empty());
    }

    #[test]
    fn code_near_a_stretch_says_which_function_it_is_of() {
        const MAP: u64 = 0x5001;
        let fake = Fake::default();
        let memory = fake.memory();
        let heap = Heap::new(&memory);
        let process = ProcessKey {
            tgid: 1,
            incarnation: 2,
        };
        let mut words = vec![0u64; BLOCK_BYTES / 2];
        let middle = words.len() / 2;
        words[middle..middle + 2].copy_from_slice(&[MAP, fake.code([0x101, 0x201, 0x301])]);
        let head = words.as_ptr() as u64 + 8 * middle as u64;
        let stretch = (head | (STRETCH_BYTES - 1)) + 1;
        let mut heads = Heads::default();
        assert!(heads.functions(&heap, process, stretch).is_empty());
        heads.of.insert(process, vec![MAP]);
        assert_eq!(heads.functions(&heap, process, stretch), [0x100]);
        // The collector has moved it.
        fake.code([0x401, 0x201, 0x301]);
        memory.forget();
        assert_eq!(heads.functions(&heap, process, stretch), [0x400]);
    }

    fn place(offset: u32, call: u32) -> ScriptPosition {
        ScriptPosition {
            offset: Some(offset),
            call,
        }
    }

    fn call(offset: u64, call: u64, literal: i32) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&((offset + 1) << 1 | call << 31).to_le_bytes());
        bytes[8..12].copy_from_slice(&literal.to_le_bytes());
        bytes
    }

    fn level(shared: u64, offset: u32) -> Level {
        Level {
            shared,
            offset: Some(offset),
        }
    }

    #[test]
    fn calls_within_calls_are_followed() {
        let calls = [call(10, 0, 1), call(20, 1, 0), call(30, 0, -1)];
        let literal = |index| [0x200, 0x300].get(index as usize).copied();
        let levels = |place| levels(place, &calls, literal, 0x100);
        assert_eq!(levels(place(5, 0)), [level(0x100, 5)]);
        assert_eq!(levels(place(5, 1)), [level(0x300, 5), level(0x100, 10)]);
        let deep = [level(0x200, 5), level(0x300, 20), level(0x100, 10)];
        assert_eq!(levels(place(5, 2)), deep);
        // Itself.
        assert_eq!(levels(place(5, 3)), [level(0x100, 5), level(0x100, 30)]);
        assert_eq!(levels(place(5, 4)), []);
    }

    #[test]
    fn calls_that_lead_in_a_circle_are_none() {
        let calls = [call(10, 2, 0), call(20, 1, 0)];
        assert_eq!(levels(place(5, 1), &calls, |_| Some(8), 0x100), []);
    }

    #[test]
    fn runs_are_those_of_the_stretch() {
        let entries = [(0, 1), (0x10, 2), (0x200, 3)].map(|(instruction, offset)| Entry {
            instruction,
            place: place(offset, 0),
        });
        let runs = |start, end, stretch| {
            let runs = runs(start, end, stretch, &entries, |place| {
                vec![level(0x100, place.offset.unwrap())]
            });
            let runs = runs.into_iter();
            let runs = runs.map(|run| (run.end, run.levels.first().and_then(|level| level.offset)));
            runs.collect::<Vec<_>>()
        };
        assert_eq!(
            runs(0x1080, 0x1400, 0x1000),
            [(0x80, None), (0x90, Some(1)), (0x100, Some(2))]
        );
        assert_eq!(runs(0x1080, 0x1400, 0x1100), [(0, None), (0x100, Some(2))]);
        assert_eq!(runs(0x1080, 0x1080, 0x1000), [(0x80, None)]);
        assert_eq!(
            runs(0x1080, 0x12a0, 0x1200),
            [(0, None), (0x80, Some(2)), (0xa0, Some(3))]
        );
    }
}
