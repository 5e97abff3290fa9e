//! Names and lines of functions, and the calls that V8 compiled into them.
//!
//! In: a function that the kernel half has reported, and the memory of its process. Out: what the report leaves open. The kernel
//! half has read the name and the file; what changes meanwhile is left as it was reported.

use super::heap::{Heap, Layout};
use super::positions::entries;
use super::script::{Script, Scripts};
use super::stretch::{Heads, Level};
use crate::process::{FunctionEvent, FunctionLines, InlinedCall, ProcessKey, RuntimeFunction};
use crate::runtime::{BLOCK_BYTES, Caches, TargetMemory};
use foldhash::HashMap;
use profiler_common::runtime::v8::{
    KINDS_OF_FRAMES, NAME_GOES_ON, STRETCH_BYTES, check_in_stretch, name_of, script_of, start_of,
};
use profiler_common::runtime::{COMPILED, FunctionInfo as _, RuntimeKind, V8};
use std::sync::Arc;

/// The longest name, in characters.
const MAX_NAME: usize = 256;
/// The most bytes of a table of positions.
const MAX_BYTES: usize = 1 << 18;

/// Completes a function by what was told.
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    memory: &TargetMemory,
    function: &mut RuntimeFunction,
) {
    function.file = plain(&function.file).into();
    function.lines = FunctionLines::None;
    if event.extra & NAME_GOES_ON != 0 {
        function.name.push('…');
    }
    let word = event.function.function_address();
    if word < KINDS_OF_FRAMES {
        function.name = kind_of_frame(Heap::new(memory).layout, word).to_owned();
        (function.is_unnamed, function.is_nameless) = (false, false);
    }
}

/// The address of the function's `SharedFunctionInfo`, and that of the stretch of code.
fn addresses(event: &FunctionEvent) -> (u64, Option<u64>) {
    let word = event.function.function_address();
    let stretch = (word & COMPILED != 0).then_some(word & !COMPILED);
    (event.extra & !7, stretch)
}

/// Whether anything is to be read: of code that runs no function, nothing; of the interpreter's, lines, and names that were not told
/// whole.
pub(in crate::runtime) fn is_worth(
    event: &FunctionEvent,
    told: &RuntimeFunction,
    lines: bool,
) -> bool {
    let word = event.function.function_address();
    word >= KINDS_OF_FRAMES && (lines || word & COMPILED != 0 || !is_whole(event, told))
}

/// Whether name and file of a function were told whole.
fn is_whole(event: &FunctionEvent, told: &RuntimeFunction) -> bool {
    let is_cut =
        event.extra & NAME_GOES_ON != 0 || event.name.lacks_end || event.file.lacks_beginning;
    !is_cut && !told.is_unnamed
}

/// Whether a function is still the one that was reported.
pub(in crate::runtime) fn is_same(
    event: &FunctionEvent,
    memory: &TargetMemory,
    caches: &mut Caches,
) -> bool {
    shared_now(event, memory, caches).is_some()
}

/// The address of a function's `SharedFunctionInfo` now; none if the function has gone. The collector may have moved it since it was
/// reported; then the code that lies where it did says where it is.
fn shared_now(event: &FunctionEvent, memory: &TargetMemory, caches: &mut Caches) -> Option<u64> {
    let (shared, stretch) = addresses(event);
    let is_it = |shared: u64| {
        let check = match stretch {
            Some(stretch) => check_in_stretch(memory, shared, stretch),
            None => memory.check(RuntimeKind::V8, shared),
        };
        check == Some(event.check)
    };
    if is_it(shared) {
        return Some(shared);
    }
    let heap = Heap::new(memory);
    let functions = caches.heads.functions(&heap, event.process_key, stretch?);
    functions.into_iter().find(|function| is_it(*function))
}

/// Where a function and its code lie, and then what leads from there.
pub(in crate::runtime) fn places(
    event: &FunctionEvent,
    memory: &TargetMemory,
    caches: &mut Caches,
    step: usize,
    places: &mut Vec<u64>,
) {
    let (shared, stretch) = addresses(event);
    match step {
        0 => {
            places.push(shared);
            places.extend(stretch.map(|stretch| stretch + STRETCH_BYTES - 8));
        }
        1 => {
            places.extend(script_of(memory, shared).filter(|_| caches.lines));
            // Most heads are not far below.
            places.extend(stretch.map(|stretch| stretch.wrapping_sub(BLOCK_BYTES as u64)));
        }
        2 => {
            let heap = Heap::new(memory);
            let objects =
                stretch.map(|stretch| caches.heads.objects(&heap, event.process_key, stretch));
            places.extend(objects.into_iter().flatten());
        }
        _ => {
            let heap = Heap::new(memory);
            let codes =
                stretch.map(|stretch| caches.heads.codes(&heap, event.process_key, stretch));
            for code in codes.into_iter().flatten() {
                code.places(&heap, step - 2, places);
            }
        }
    }
}

/// Reads what more there is of a function.
pub(in crate::runtime) fn read(
    event: &FunctionEvent,
    number: usize,
    memory: &TargetMemory,
    caches: &mut Caches,
    told: &RuntimeFunction,
) -> RuntimeFunction {
    let Some(shared) = shared_now(event, memory, caches) else {
        return told.clone();
    };
    let (_, stretch) = addresses(event);
    let mut reader = Reader {
        heap: Heap::new(memory),
        process: event.process_key,
        number,
        lines: caches.lines,
        scripts: &mut caches.scripts,
        heads: &mut caches.heads,
        functions: &mut caches.functions,
    };
    let is_enough = !caches.lines && is_whole(event, told);
    let (known, script) = reader.known(shared, Some(told).filter(|_| is_enough));
    let mut read = (*known).clone();
    if let Some(stretch) = stretch {
        reader.read_stretch(&mut read, script.as_deref(), stretch, shared);
    } else if caches.lines {
        let lines = script.and_then(|script| reader.bytecode_lines(&script, shared));
        read.lines = lines.map_or(FunctionLines::None, FunctionLines::Table);
    }
    read
}

/// Generated code that runs no function.
fn kind_of_frame(layout: Layout, kind: u64) -> &'static str {
    if kind == u64::from(layout.regular_expression) {
        "[regular expression]"
    } else if kind == u64::from(layout.web_assembly) {
        "[WebAssembly]"
    } else {
        "[generated code]"
    }
}

/// Stands for a name that a function does not have.
pub(in crate::runtime) const UNNAMED: &str = "<anonymous>";

/// A path without what makes it a URL.
fn plain(name: &str) -> &str {
    name.strip_prefix("file://").unwrap_or(name)
}

/// In a `SharedFunctionInfo`: its bytecode, or what leads to it; and in what has a function's own entry to the interpreter.
const DATA: u64 = 8;
const INTERPRETER_DATA: u64 = 8;

/// Functions of a process.
struct Reader<'r> {
    heap: Heap<'r>,
    process: ProcessKey,
    /// Which it is of the functions that are read together.
    number: usize,
    /// Whether lines are wanted.
    lines: bool,
    scripts: &'r mut Scripts,
    heads: &'r mut Heads,
    functions: &'r mut Functions,
}

/// A function without what is compiled into it, and its script.
type FunctionAndScript = (Arc<RuntimeFunction>, Option<Arc<Script>>);

/// The most functions that are kept; then all are read anew.
const MAX_FUNCTIONS: usize = 1 << 16;

/// Functions that were read, with their checks, by the addresses of their `SharedFunctionInfo`s: most have code in many stretches, or
/// are compiled into many.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Functions {
    known: HashMap<(ProcessKey, u64), (u32, FunctionAndScript)>,
    /// Those that were read since they were settled last.
    unsettled: HashMap<u64, Unsettled>,
}

/// A function that was read, with its check, and the numbers of those that it was read for, which are read together.
#[derive(Debug)]
struct Unsettled {
    check: u32,
    known: FunctionAndScript,
    numbers: Vec<usize>,
}

impl Functions {
    /// The function at an address, if it was read before, or since they were settled last: then for that of this number, too.
    fn get(
        &mut self,
        process: ProcessKey,
        shared: u64,
        check: u32,
        number: usize,
    ) -> Option<FunctionAndScript> {
        if let Some((known_check, known)) = self.known.get(&(process, shared))
            && *known_check == check
        {
            return Some(known.clone());
        }
        let unsettled = self.unsettled.get_mut(&shared)?;
        (unsettled.check == check).then(|| {
            unsettled.numbers.push(number);
            unsettled.known.clone()
        })
    }

    /// Keeps those of a process that are what they were when they were read. Returns the numbers of those for which others were read:
    /// the collector may have put these there meanwhile.
    pub(in crate::runtime) fn settle(
        &mut self,
        process: ProcessKey,
        memory: &TargetMemory,
    ) -> Vec<usize> {
        let mut wrong = Vec::new();
        for (shared, unsettled) in self.unsettled.drain() {
            if memory.check(RuntimeKind::V8, shared) != Some(unsettled.check) {
                wrong.extend(unsettled.numbers);
                continue;
            }
            if self.known.len() >= MAX_FUNCTIONS {
                self.known.clear();
            }
            let known = (unsettled.check, unsettled.known);
            self.known.insert((process, shared), known);
        }
        wrong
    }

    /// Where those lie that were read since they were settled last.
    pub(in crate::runtime) fn places(&self) -> impl Iterator<Item = u64> {
        self.unsettled.keys().copied()
    }
}

impl Reader<'_> {
    /// The script of a function. `lines`: whether these are needed.
    fn script(&mut self, shared: u64, lines: bool) -> Option<Script> {
        let script = script_of(self.heap.memory, shared)?;
        self.scripts.get(&self.heap, self.process, script, lines)
    }

    /// The same as [`function`](Self::function), but from before if it is the same, or as it was told.
    fn known(&mut self, shared: u64, told: Option<&RuntimeFunction>) -> FunctionAndScript {
        let check = V8::check(self.heap.memory, shared);
        let before =
            check.and_then(|check| self.functions.get(self.process, shared, check, self.number));
        if let Some(known) = before {
            return known;
        }
        let (function, script) = match told {
            Some(told) => (told.clone(), None),
            None => self.function(shared),
        };
        let known = (Arc::new(function), script.map(Arc::new));
        if let Some(check) = check {
            let unsettled = Unsettled {
                check,
                known: known.clone(),
                numbers: vec![self.number],
            };
            self.functions.unsettled.insert(shared, unsettled);
        }
        known
    }

    /// A function, by the address of its `SharedFunctionInfo`. Its positions are lines.
    fn function(&mut self, shared: u64) -> (RuntimeFunction, Option<Script>) {
        let name = name_of(self.heap.memory, shared);
        let name = name.and_then(|name| self.heap.string(name, MAX_NAME));
        let name = name.filter(|name| !name.is_empty());
        // Where a function without a name begins is shown in any case.
        let script = self.script(shared, self.lines || name.is_none());
        let start = start_of(self.heap.memory, shared);
        let function = RuntimeFunction {
            kind: RuntimeKind::V8,
            is_unnamed: name.is_none(),
            is_nameless: name.is_none(),
            is_in_part: false,
            name: name.unwrap_or_else(|| UNNAMED.to_owned()),
            file: script
                .as_ref()
                .map_or("", |script| plain(&script.name))
                .into(),
            first_line: script
                .as_ref()
                .zip(start)
                .map_or(0, |(script, start)| script.line(start)),
            lines: if self.lines {
                FunctionLines::Position
            } else {
                FunctionLines::None
            },
            inlined: Box::default(),
        };
        (function, script)
    }

    /// A call that was compiled into another function.
    fn inlined(&mut self, level: Level) -> InlinedCall {
        let (function, script) = self.known(level.shared, None);
        InlinedCall {
            function,
            position: line(script.as_deref(), level.offset),
        }
    }

    /// The calls and lines of a function in a stretch of code; of code of other functions there, nothing.
    fn read_stretch(
        &mut self,
        function: &mut RuntimeFunction,
        script: Option<&Script>,
        stretch: u64,
        shared: u64,
    ) {
        let (mut lines, mut inlined) = (Vec::new(), Vec::new());
        for code in self.heads.codes(&self.heap, self.process, stretch) {
            if code.function(&self.heap) != Some(shared) {
                continue;
            }
            self.heads.note(&self.heap, code, self.number);
            let mut last = None;
            for run in code.runs(&self.heap, stretch, shared, self.lines) {
                if last.as_ref() == Some(&run.levels)
                    && let (Some((end, _)), Some((also, _))) =
                        (lines.last_mut(), inlined.last_mut())
                {
                    (*end, *also) = (run.end, run.end);
                    continue;
                }
                let levels = last.insert(run.levels);
                let own = levels.last().and_then(|level| level.offset);
                lines.push((run.end, line(script, own)));
                let calls = levels.iter().rev().skip(1).rev();
                let calls: Box<[InlinedCall]> = calls.map(|level| self.inlined(*level)).collect();
                inlined.push((run.end, calls));
            }
        }
        if self.lines {
            function.lines = FunctionLines::Table(lines.into());
        }
        function.inlined = inlined.into();
    }

    /// The bytecode of a function.
    fn bytecode(&self, shared: u64) -> Option<u64> {
        let heap = &self.heap;
        let is_it = |object: u64| heap.type_of(object) == Some(heap.layout.bytecode_type);
        let mut data = heap.word(shared.checked_add(DATA)?)?;
        if heap.type_of(data)? == heap.layout.code {
            data = heap.field(data, heap.layout.deoptimization.into())?;
        }
        if !is_it(data) {
            data = heap.field(data, INTERPRETER_DATA)?;
        }
        is_it(data).then_some(data)
    }

    /// The lines of a function's bytecode. Positions count from the object's begin, as frames have them.
    fn bytecode_lines(&self, script: &Script, shared: u64) -> Option<Box<[(u32, u32)]>> {
        let heap = &self.heap;
        let bytecode = self.bytecode(shared)?;
        let table = heap.field(bytecode, heap.layout.bytecode_positions.into())?;
        let entries = entries(&heap.bytes(table, 1, MAX_BYTES)?, heap.version);
        // References are one more than addresses.
        let first = u32::from(heap.layout.bytecode).checked_sub(1)?;
        let mut lines = vec![(first, 0)];
        for (index, entry) in entries.iter().enumerate() {
            let next = entries.get(index + 1).map(|next| next.instruction);
            let end = next.map_or(u32::MAX, |next| next.saturating_add(first));
            lines.push((end, line(Some(script), entry.place.offset)));
        }
        Some(lines.into())
    }
}

/// The line of a place in a script; zero if it is not known.
fn line(script: Option<&Script>, offset: Option<u32>) -> u32 {
    let line = script
        .zip(offset)
        .map(|(script, offset)| script.line(offset));
    line.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn what_was_read_of_a_function_that_was_replaced_is_dropped() {
        let fake = Fake::default();
        let (memory, shared) = (fake.memory(), fake.shared(7));
        let process = ProcessKey {
            tgid: 1,
            incarnation: 2,
        };
        let check = V8::check(&memory, shared).unwrap();
        let mut functions = Functions::default();
        let heap = Heap::new(&memory);
        let (mut scripts, mut heads) = (Scripts::default(), Heads::default());
        let mut known = |functions: &mut Functions, number| {
            let mut reader = Reader {
                heap,
                process,
                number,
                lines: true,
                scripts: &mut scripts,
                heads: &mut heads,
                functions,
            };
            reader.known(shared, None).0
        };
        // Read for three, and another is there by now.
        known(&mut functions, 3);
        known(&mut functions, 4);
        known(&mut functions, 5);
        fake.shared(8);
        memory.forget();
        assert_eq!(functions.settle(process, &memory), [3, 4, 5]);
        assert_eq!(functions.get(process, shared, check, 0).map(drop), None);
        // That stays, and is known.
        let read = known(&mut functions, 6);
        memory.forget();
        assert!(functions.settle(process, &memory).is_empty());
        assert!(Arc::ptr_eq(&read, &known(&mut functions, 9)));
        assert!(functions.settle(process, &memory).is_empty());
    }

    #[test]
    fn paths_are_plain() {
        assert_eq!(plain("file:///srv/app.mjs"), "/srv/app.mjs");
        assert_eq!(plain("/srv/app.js"), "/srv/app.js");
        assert_eq!(plain("node:internal/timers"), "node:internal/timers");
    }
}
