//! Names functions: what was reported of them, and what is read beside that from their processes.
//!
//! In: reports of functions, and the memory of the process that they are of. Out: names, files, lines, and what was compiled into
//! them. The process runs on while it is read, so what was read of a function holds if its check is the same before and after.
//! Functions that were reported together are read together, between two looks at all their checks: they share blocks of memory, which
//! are read as many at a time.

use super::{Caches, Descriptor, Lines, RuntimeSpec, TargetMemory, hotspot, row, text};
use crate::process::{FunctionEvent, FunctionLines, ProcessKey, RuntimeFunction};
use foldhash::HashMap;
use profiler_common::runtime::RuntimeKind;
use std::sync::Arc;

/// So many functions are read together, at most: what they need fits in the blocks of memory that are kept.
pub const MAX_TOGETHER: usize = 64;

/// Names functions. Keeps what many functions share.
#[derive(Debug)]
pub struct Namer {
    caches: Caches,
    /// The memory of the process that was read last.
    memory: Option<(ProcessKey, TargetMemory)>,
    /// The virtual machines that keep names of threads: their descriptors and load biases.
    machines: HashMap<ProcessKey, (Box<Descriptor>, u64)>,
}

/// The most processes whose machines are kept.
const MAX_MACHINES: usize = 1 << 10;

/// So often a function is read, at most, until nothing that belongs to it changes meanwhile.
const MAX_TRIES: usize = 4;

/// Outcome of reading a function.
enum Read {
    /// It was the same function all the time.
    Whole(RuntimeFunction),
    /// It still is, but its runtime moved something that belongs to it, and the function may be read in part.
    Changed,
    /// It is not there any more.
    Gone,
}

/// So many steps lead from a function to most of what is read of it.
const STEPS: usize = 7;

impl Namer {
    /// One that has named nothing yet. `lines`: whether lines of functions are wanted.
    pub fn new(lines: bool) -> Self {
        Self {
            caches: Caches {
                lines,
                ..Caches::default()
            },
            memory: None,
            machines: HashMap::default(),
        }
    }

    /// The functions that reports are about, in their order. All are of one process and one runtime in it, and there are at most
    /// [`MAX_TOGETHER`].
    pub fn functions(
        &mut self,
        events: &[FunctionEvent],
        descriptor: &Descriptor,
    ) -> Vec<RuntimeFunction> {
        let Some(kind) = events.first().and_then(|first| first.function.runtime()) else {
            return Vec::new();
        };
        let (process_key, bias) = (events[0].process_key, events[0].bias);
        if kind == RuntimeKind::HotSpot {
            self.note_machine(process_key, descriptor, bias);
        }
        let memory = self.memory(process_key, descriptor, bias);
        let told = events.iter().map(|event| told(row(kind), event, &memory));
        let mut functions: Vec<RuntimeFunction> = told.collect();
        let row = row(kind);
        let lines = self.caches.lines;
        let is_worth = |event: &FunctionEvent, told: &RuntimeFunction| match row.reading {
            Some(reading) => (reading.is_worth)(event, told, lines),
            None => lines && matches!(row.lines, Lines::Read(_)),
        };
        let mut left: Vec<(usize, &FunctionEvent)> = events
            .iter()
            .enumerate()
            .filter(|(number, event)| is_worth(event, &functions[*number]))
            .collect();
        for _ in 0..MAX_TRIES {
            if left.is_empty() {
                break;
            }
            let read = self.read(row, &left, &functions, &memory);
            let mut changed = Vec::new();
            for ((number, event), read) in left.into_iter().zip(read) {
                match read {
                    Read::Whole(read) => functions[number] = read,
                    Read::Changed => changed.push((number, event)),
                    Read::Gone => functions[number].is_in_part = true,
                }
            }
            left = changed;
        }
        for (number, _) in left {
            functions[number].is_in_part = true;
        }
        self.memory = Some((process_key, memory));
        functions
    }

    /// Reads what more there is of functions, which have their places among `told`.
    fn read(
        &mut self,
        row: &RuntimeSpec,
        events: &[(usize, &FunctionEvent)],
        told: &[RuntimeFunction],
        memory: &TargetMemory,
    ) -> Vec<Read> {
        let process_key = events[0].1.process_key;
        memory.forget();
        for step in 0..STEPS {
            self.read_ahead(row, events, memory, step);
        }
        let mut read: Vec<Read> = Vec::with_capacity(events.len());
        for (number, (place, event)) in events.iter().enumerate() {
            if !self.is_same(row, event, memory) {
                read.push(Read::Gone);
                continue;
            }
            let told = &told[*place];
            read.push(Read::Whole(match (row.reading, row.lines) {
                (Some(reading), _) => (reading.read)(event, number, memory, &mut self.caches, told),
                (None, Lines::Read(lines)) => RuntimeFunction {
                    lines: lines(memory, event.function.function_address()),
                    ..told.clone()
                },
                (None, Lines::Position) => told.clone(),
            }));
        }
        memory.forget();
        memory.read_ahead(
            self.caches
                .functions
                .places()
                .chain(self.caches.heads.places(memory, 0)),
        );
        self.read_ahead(row, events, memory, 0);
        memory.read_ahead(self.caches.heads.places(memory, 1).into_iter());
        memory.forget_if_gone();
        let moved = self.caches.heads.settle(memory);
        for number in moved
            .into_iter()
            .chain(self.caches.functions.settle(process_key, memory))
        {
            read[number] = Read::Changed;
        }
        for ((_, event), read) in events.iter().zip(&mut read) {
            if !self.is_same(row, event, memory) {
                *read = Read::Gone;
            }
        }
        self.caches
            .methods
            .settle(process_key, |number| matches!(read[number], Read::Whole(_)));
        read
    }

    /// Whether a function is still the one that was reported.
    fn is_same(&mut self, row: &RuntimeSpec, event: &FunctionEvent, memory: &TargetMemory) -> bool {
        match row.reading {
            Some(reading) => (reading.is_same)(event, memory, &mut self.caches),
            None => {
                let check = memory.check(row.kind, event.function.function_address());
                check == Some(event.check)
            }
        }
    }

    /// Reads together what one step leads to.
    fn read_ahead(
        &mut self,
        row: &RuntimeSpec,
        events: &[(usize, &FunctionEvent)],
        memory: &TargetMemory,
        step: usize,
    ) {
        let mut places = Vec::new();
        for (_, event) in events {
            match row.reading {
                Some(reading) => {
                    (reading.places)(event, memory, &mut self.caches, step, &mut places)
                }
                None if step == 0 => places.push(event.function.function_address()),
                None => {}
            }
        }
        memory.read_ahead(places.into_iter());
    }

    fn note_machine(&mut self, process_key: ProcessKey, descriptor: &Descriptor, bias: u64) {
        if self.machines.contains_key(&process_key) {
            return;
        }
        if self.machines.len() >= MAX_MACHINES {
            self.machines.clear();
        }
        let machine = (Box::new(*descriptor), bias);
        self.machines.insert(process_key, machine);
    }

    /// Whether a runtime is known in a process that keeps whole names of threads.
    pub fn keeps_thread_names(&self, process_key: ProcessKey) -> bool {
        self.machines.contains_key(&process_key)
    }

    /// Whole names of threads of a process, which begin with those that the kernel has. Threads are told by the numbers that they
    /// have in the process's own namespace. None if no runtime that keeps them is known in the process.
    pub fn threads(
        &mut self,
        process_key: ProcessKey,
        threads: &[(u32, &[u8])],
    ) -> Option<Vec<Option<String>>> {
        let (words, bias) = self.machines.get(&process_key)?;
        let (words, bias) = (**words, *bias);
        let memory = self.memory(process_key, &words, bias);
        let known = hotspot::Threads::read(&memory);
        let known = known.as_ref();
        let names = threads.iter();
        let names = names.map(|(number, beginning)| known?.name(*number, beginning));
        let names = names.collect();
        self.memory = Some((process_key, memory));
        Some(names)
    }

    /// The memory of a process, which is put back after use. Events come in runs of one process: it is opened once for a run.
    fn memory(&mut self, process_key: ProcessKey, words: &Descriptor, bias: u64) -> TargetMemory {
        match self.memory.take() {
            Some((last, memory)) if last == process_key => memory.again(words, bias),
            _ => TargetMemory::new(process_key.tgid, *words, bias),
        }
    }
}

/// A function as it was told.
fn told(row: &RuntimeSpec, event: &FunctionEvent, memory: &TargetMemory) -> RuntimeFunction {
    let name = text(&event.name);
    let owner = text(&event.owner);
    let name = match (owner.is_empty(), name.is_empty()) {
        (_, true) => row.unnamed.to_owned(),
        (true, false) => name,
        (false, false) => format!("{owner}{}{name}", row.separator),
    };
    let is_nameless = name == row.unnamed || (row.is_nameless)(&name);
    let mut function = RuntimeFunction {
        kind: row.kind,
        is_unnamed: name == row.unnamed,
        name,
        is_nameless,
        is_in_part: false,
        file: Arc::from(text(&event.file)),
        first_line: event.first_line,
        lines: match row.lines {
            Lines::Position => FunctionLines::Position,
            Lines::Read(_) => FunctionLines::None,
        },
        inlined: Box::default(),
    };
    if let Some(complete) = row.complete {
        complete(event, memory, &mut function);
    }
    function
}
