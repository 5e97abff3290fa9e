//! Functions of interpreters, as the kernel half reported them when they were first sampled.
//!
//! In: function events, and what runtimes make of them. Out: what a frame's two words stand for: a name, a file, a
//! line. A function's address may be used again by another; the check in the frame tells them apart.

use super::ProcessKey;
use foldhash::HashMap;
use profiler_common::abi::FrameWord;
use profiler_common::runtime::RuntimeKind;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The most functions that are kept of all processes; each takes a few hundred bytes.
const MAX: usize = 1 << 18;

/// A function, as the kernel half reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionEvent {
    /// The process.
    pub process_key: ProcessKey,
    /// The first word of its frames.
    pub function: FrameWord,
    /// Check that tells functions at one address apart.
    pub check: u32,
    /// The number of the descriptor of its runtime.
    pub descriptor: u32,
    /// Load bias: the address in the process, less the address in the runtime's file.
    pub bias: u64,
    /// Whatever else the runtime had to say.
    pub extra: u64,
    /// The line at which the definition begins; zero if it is not known.
    pub first_line: u32,
    /// Name of the class or package that it belongs to, if the runtime has any.
    pub owner: CopiedText,
    /// Its name.
    pub name: CopiedText,
    /// Its file.
    pub file: CopiedText,
    /// The function whose frame is behind this one's, if it is of the same runtime: told only where functions are called what
    /// their callers call them.
    pub caller: Option<FrameWord>,
    /// Where it is in that, and the check of that function.
    pub call: FrameWord,
    /// Where it is itself, and its check.
    pub position: FrameWord,
}

impl FunctionEvent {
    /// One of a function without strings.
    #[cfg(test)]
    pub(crate) fn of(process_key: ProcessKey, function: FrameWord, check: u32) -> Self {
        Self {
            process_key,
            function,
            check,
            descriptor: 1,
            bias: 0,
            extra: 0,
            first_line: 1,
            owner: CopiedText::default(),
            name: CopiedText::default(),
            file: CopiedText::default(),
            caller: None,
            call: FrameWord(0),
            position: FrameWord(0),
        }
    }
}

/// A string of the process's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedText {
    /// As it stood in memory.
    pub bytes: Box<[u8]>,
    /// The number of an [`Encoding`](profiler_common::runtime::Encoding).
    pub encoding: u8,
    /// It was longer, and this is the end of it.
    pub lacks_beginning: bool,
    /// It was longer, and this is the beginning.
    pub lacks_end: bool,
}

/// A function of an interpreter's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeFunction {
    /// Its runtime.
    pub kind: RuntimeKind,
    /// Its qualified name. Any characters at all.
    pub name: String,
    /// Whether it is a name that stands for none.
    pub is_unnamed: bool,
    /// Whether many functions have this name, so that readers want to see where it is defined.
    pub is_nameless: bool,
    /// Whether its runtime moved or replaced it before all of it was read: calls that were compiled into it, or its lines, may be
    /// missing.
    pub is_in_part: bool,
    /// Its file, with its directories.
    pub file: Arc<str>,
    /// The line at which the definition begins; zero if it is not known.
    pub first_line: u32,
    /// Meaning of positions in it.
    pub lines: FunctionLines,
    /// Calls that were compiled into it: ends of code, ascending, each with the calls within which what lies before it is, innermost
    /// first.
    pub inlined: Box<[(u32, Box<[InlinedCall]>)]>,
}

/// A call that was compiled into its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedCall {
    /// The function.
    pub function: Arc<RuntimeFunction>,
    /// Where in it.
    pub position: u32,
}

/// Meaning of positions in a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionLines {
    /// Nobody knows: the first line stands for all.
    None,
    /// Lines.
    Position,
    /// Places in code: ends, ascending, each with the line of what lies before it; zero is no line.
    Table(Box<[(u32, u32)]>),
}

impl FunctionLines {
    /// The line of a position; zero if nobody knows it.
    pub fn at(&self, position: u32) -> u32 {
        match self {
            Self::None => 0,
            Self::Position => position,
            Self::Table(table) => {
                let place = table.partition_point(|(end, _)| *end <= position);
                table.get(place).map_or(0, |(_, line)| *line)
            }
        }
    }

    /// The first line of a table that is one.
    pub fn first(&self) -> u32 {
        let Self::Table(table) = self else { return 0 };
        let mut lines = table.iter().map(|(_, line)| *line);
        lines.find(|line| *line != 0).unwrap_or(0)
    }
}

impl RuntimeFunction {
    /// The line of a position; zero if it is not known.
    pub fn line(&self, position: u32) -> u32 {
        let line = self.lines.at(position);
        if line == 0 { self.first_line } else { line }
    }

    /// The calls compiled into it that a position is within, innermost first.
    pub fn inlined_at(&self, position: u32) -> &[InlinedCall] {
        let index = self.inlined.partition_point(|(end, _)| *end <= position);
        self.inlined.get(index).map_or(&[], |(_, calls)| calls)
    }
}

/// The functions of all processes.
#[derive(Debug, Default)]
pub(super) struct Functions {
    of: HashMap<ProcessKey, HashMap<(u64, u32), RuntimeFunction>>,
    kept: usize,
    turned_away: usize,
}

impl Functions {
    /// Keeps a function, unless there are too many.
    pub(super) fn add(&mut self, event: &FunctionEvent, function: RuntimeFunction) {
        if self.kept >= MAX {
            self.turned_away += 1;
            return;
        }
        let functions = self.of.entry(event.process_key).or_default();
        match functions.entry((event.function.0, event.check)) {
            Entry::Vacant(place) => {
                place.insert(function);
                self.kept += 1;
            }
            // One caller may have a name for it, another none; and it may be read whole the next time.
            Entry::Occupied(mut place) if place.get().is_unnamed || place.get().is_in_part => {
                place.insert(function);
            }
            Entry::Occupied(_) => {}
        }
    }

    /// Whether a report of a function tells nothing that is not kept already: the kernel half forgets what it has reported.
    pub(super) fn knows(&self, event: &FunctionEvent) -> bool {
        let functions = self.of.get(&event.process_key);
        let known = functions.and_then(|all| all.get(&(event.function.0, event.check)));
        known.is_some_and(|function| !function.is_unnamed && !function.is_in_part)
    }

    /// The function that the words of a frame stand for.
    pub(super) fn get(
        &self,
        process_key: ProcessKey,
        function: FrameWord,
        position: FrameWord,
    ) -> Option<&RuntimeFunction> {
        let functions = self.of.get(&process_key)?;
        functions.get(&(function.0, position.check_of(function)))
    }

    /// Forgets those of a process.
    pub(super) fn remove(&mut self, process_key: ProcessKey) {
        let gone = self.of.remove(&process_key);
        self.kept -= gone.map_or(0, |functions| functions.len());
    }

    /// How many were not kept.
    pub(super) fn turned_away(&self) -> usize {
        self.turned_away
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: FunctionLines) -> RuntimeFunction {
        RuntimeFunction {
            kind: RuntimeKind::CPython,
            name: "f".to_owned(),
            is_unnamed: false,
            is_nameless: false,
            is_in_part: false,
            file: Arc::from("f.py"),
            first_line: 7,
            lines,
            inlined: Box::default(),
        }
    }

    #[test]
    fn positions_within_inlined_calls_are_found() {
        let call = |position| InlinedCall {
            function: Arc::new(function(FunctionLines::Position)),
            position,
        };
        let function = RuntimeFunction {
            inlined: [
                (4, Box::default()),
                (6, [call(2), call(1)].into()),
                (9, [call(1)].into()),
            ]
            .into(),
            ..function(FunctionLines::None)
        };
        let depths = [0, 3, 4, 5, 6, 8, 9, u32::MAX].map(|position| {
            let calls = function.inlined_at(position).iter();
            calls.map(|call| call.position).collect::<Vec<u32>>()
        });
        let expected: [&[u32]; 8] = [&[], &[], &[2, 1], &[2, 1], &[1], &[1], &[], &[]];
        assert_eq!(depths, expected);
    }

    #[test]
    fn positions_become_lines() {
        assert_eq!(function(FunctionLines::None).line(20), 7);
        assert_eq!(function(FunctionLines::Position).line(20), 20);
        assert_eq!(function(FunctionLines::Position).line(0), 7);
        let table = FunctionLines::Table([(4, 8), (6, 0), (10, 9)].into());
        let function = function(table);
        for (position, line) in [(0, 8), (3, 8), (4, 7), (6, 9), (9, 9), (10, 7)] {
            assert_eq!(function.line(position), line, "{position}");
        }
    }

    #[test]
    fn functions_at_one_address_are_told_apart_and_forgotten() {
        let mut functions = Functions::default();
        let process_key = ProcessKey::new(1, 2);
        let word = |check| FrameWord::function(RuntimeKind::CPython, 0x1000, check);
        for (check, name) in [(1, "one"), (2, "two"), (0x0100_0001, "three")] {
            let event = FunctionEvent::of(process_key, word(check), check);
            let function = RuntimeFunction {
                name: name.to_owned(),
                ..function(FunctionLines::None)
            };
            functions.add(&event, function);
        }
        let name = |functions: &Functions, check| {
            let found = functions.get(process_key, word(check), FrameWord::position(check, 5));
            found.map(|function| function.name.clone())
        };
        let known = [1, 2, 3]
            .map(|check| functions.knows(&FunctionEvent::of(process_key, word(check), check)));
        assert_eq!(known, [true, true, false]);
        assert_eq!(name(&functions, 1).as_deref(), Some("one"));
        assert_eq!(name(&functions, 2).as_deref(), Some("two"));
        assert_eq!(name(&functions, 0x0100_0001).as_deref(), Some("three"));
        assert_eq!(name(&functions, 3), None);
        // A caller may have a name for what has none.
        let event = FunctionEvent::of(process_key, word(4), 4);
        let unnamed = RuntimeFunction {
            is_unnamed: true,
            ..function(FunctionLines::None)
        };
        functions.add(&event, unnamed);
        assert!(!functions.knows(&event));
        // One that was read in part may be read whole when it is reported again.
        let event = FunctionEvent::of(process_key, word(5), 5);
        for is_in_part in [true, false] {
            assert!(!functions.knows(&event));
            let function = RuntimeFunction {
                is_in_part,
                ..function(FunctionLines::None)
            };
            functions.add(&event, function);
        }
        assert!(functions.knows(&event));
        functions.remove(process_key);
        assert_eq!((name(&functions, 1), functions.kept), (None, 0));
    }
}
