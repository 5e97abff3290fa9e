//! Names and lines of functions, and the calls that V8 compiled into them.
//!
//! In: a function that the kernel half has reported, and the memory of its process. Out: what the report leaves open. The kernel
//! half has read the name and the file; what changes meanwhile is left as it was reported.

use super::heap::{Heap, Layout};
use super::positions::entries;
use super::script::{Script, Scripts};
use super::stretch::{Heads, Level};
use crate::process::{FunctionEvent, FunctionLines, InlinedCall, ProcessKey, RuntimeFunction};
use crate::runtime::{Namer, TargetMemory};
use foldhash::HashMap;
use profiler_common::runtime::v8::{
    KINDS_OF_FRAMES, NAME_GOES_ON, check_in_stretch, name_of, script_of, start_of,
};
use profiler_common::runtime::{COMPILED, FunctionInfo as _, RuntimeKind, V8};
use std::sync::Arc;

/// The longest name, in characters.
const MOST_NAME: usize = 256;
/// The most bytes of a table of positions.
const MOST_BYTES: usize = 1 << 18;

/// Completes a function.
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    memory: &TargetMemory,
    namer: &mut Namer,
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
        return;
    }
    let shared = event.extra & !7;
    let stretch = (word & COMPILED != 0).then_some(word & !COMPILED);
    let check = || {
        memory.forget();
        match stretch {
            Some(stretch) => check_in_stretch(memory, shared, stretch),
            None => memory.check(RuntimeKind::V8, shared),
        }
    };
    let is_same = || check() == Some(event.check);
    if !is_same() {
        return;
    }
    let mut reader = Reader {
        heap: Heap::new(memory),
        process: event.process_key,
        scripts: &mut namer.scripts,
        heads: &mut namer.heads,
        functions: &mut namer.functions,
    };
    let (known, script) = reader.known(shared);
    let mut read = (*known).clone();
    if let Some(stretch) = stretch {
        reader.read_stretch(&mut read, script.as_deref(), stretch, shared);
    } else {
        let lines = script.and_then(|script| reader.bytecode_lines(&script, shared));
        read.lines = lines.map_or(FunctionLines::None, FunctionLines::Table);
    }
    if is_same() {
        *function = read;
    }
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
    scripts: &'r mut Scripts,
    heads: &'r mut Heads,
    functions: &'r mut Functions,
}

/// A function without what is compiled into it, and its script.
type Known = (Arc<RuntimeFunction>, Option<Arc<Script>>);

/// The most functions that are kept; then all are read anew.
const MOST_FUNCTIONS: usize = 1 << 16;

/// Functions that were read, with their checks, by the addresses of their `SharedFunctionInfo`s: most have code in many stretches, or
/// are compiled into many.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Functions {
    known: HashMap<(ProcessKey, u64), (u32, Known)>,
}

impl Reader<'_> {
    /// The script of a function.
    fn script(&mut self, shared: u64) -> Option<Script> {
        let script = script_of(self.heap.memory, shared)?;
        self.scripts.get(&self.heap, self.process, script)
    }

    /// The same as [`function`](Self::function), but from before if it is the same.
    fn known(&mut self, shared: u64) -> Known {
        let memory = self.heap.memory;
        let check = V8::check(memory, shared);
        let known = self.functions.known.get(&(self.process, shared));
        if let Some((_, known)) = known.filter(|(known, _)| Some(*known) == check) {
            return known.clone();
        }
        let (function, script) = self.function(shared);
        let read = (Arc::new(function), script.map(Arc::new));
        let known = &mut self.functions.known;
        // The collector may have put another there meanwhile.
        if let Some(check) = check
            && memory.check(RuntimeKind::V8, shared) == Some(check)
        {
            if known.len() >= MOST_FUNCTIONS {
                known.clear();
            }
            known.insert((self.process, shared), (check, read.clone()));
        }
        read
    }

    /// A function, by the address of its `SharedFunctionInfo`. Its positions are lines.
    fn function(&mut self, shared: u64) -> (RuntimeFunction, Option<Script>) {
        let name = name_of(self.heap.memory, shared);
        let name = name.and_then(|name| self.heap.string(name, MOST_NAME));
        let name = name.filter(|name| !name.is_empty());
        let script = self.script(shared);
        let start = start_of(self.heap.memory, shared);
        let function = RuntimeFunction {
            kind: RuntimeKind::V8,
            is_unnamed: name.is_none(),
            is_nameless: name.is_none(),
            name: name.unwrap_or_else(|| UNNAMED.to_owned()),
            file: script
                .as_ref()
                .map_or("", |script| plain(&script.name))
                .into(),
            first_line: script
                .as_ref()
                .zip(start)
                .map_or(0, |(script, start)| script.line(start)),
            lines: FunctionLines::Position,
            inlined: Box::default(),
        };
        (function, script)
    }

    /// A call that was compiled into another function.
    fn inlined(&mut self, level: Level) -> InlinedCall {
        let (function, script) = self.known(level.shared);
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
            for run in code.runs(&self.heap, stretch, shared).unwrap_or_default() {
                let own = run.levels.last().and_then(|level| level.offset);
                lines.push((run.end, line(script, own)));
                let calls = run.levels.iter().rev().skip(1).rev();
                let calls = calls.map(|level| self.inlined(*level)).collect();
                inlined.push((run.end, calls));
            }
        }
        function.lines = FunctionLines::Table(lines.into());
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
        let entries = entries(&heap.bytes(table, 1, MOST_BYTES)?, heap.version);
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
    use super::*;

    #[test]
    fn paths_are_plain() {
        assert_eq!(plain("file:///srv/app.mjs"), "/srv/app.mjs");
        assert_eq!(plain("/srv/app.js"), "/srv/app.js");
        assert_eq!(plain("node:internal/timers"), "node:internal/timers");
    }
}
