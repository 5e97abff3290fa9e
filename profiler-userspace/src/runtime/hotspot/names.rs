//! Names of methods, and the calls that HotSpot compiled into them.
//!
//! In: a method that the kernel half has reported, and the memory of its process. Out: its name as Java writes it, and what was
//! compiled into its code.

use super::lines::{self, lines};
use super::scopes::{Description, Tables, descriptions};
use crate::process::{FunctionEvent, FunctionLines, InlinedCall, ProcessKey, RuntimeFunction};
use crate::runtime::{Caches, TargetMemory};
use foldhash::HashMap;
use profiler_common::runtime::hotspot::{CALL_STUB, Offsets};
use profiler_common::runtime::{COMPILED, FunctionInfo as _, HotSpot, RemoteString, RuntimeKind};
use profiler_common::walk::Memory as _;
use std::sync::Arc;

/// Stands for a name that could not be read.
pub(in crate::runtime) const UNNAMED: &str = "<method>";

/// The longest name, in bytes.
const MAX_NAME: u32 = 512;

/// Completes a method by what was told.
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    _: &TargetMemory,
    function: &mut RuntimeFunction,
) {
    function.name = plain(&function.name);
    function.lines = FunctionLines::None;
    if event.function.function_address() == CALL_STUB {
        "call_stub".clone_into(&mut function.name);
        (function.is_unnamed, function.is_nameless) = (false, false);
    }
}

/// Whether anything is to be read: of the interpreter's, lines alone; of stubs, which are no method's, nothing.
pub(in crate::runtime) fn is_worth(
    event: &FunctionEvent,
    _: &RuntimeFunction,
    lines: bool,
) -> bool {
    let is_compiled = event.function.function_address() & COMPILED != 0;
    event.extra != 0 && (lines || is_compiled)
}

/// Whether a method is still the one that was reported.
pub(in crate::runtime) fn is_same(
    event: &FunctionEvent,
    memory: &TargetMemory,
    _: &mut Caches,
) -> bool {
    let check = memory.check(RuntimeKind::HotSpot, event.function.function_address());
    check == Some(event.check)
}

/// Where a method lies, and then what leads from there: to its tables, to its lines, and to the methods that were compiled into it.
pub(in crate::runtime) fn places(
    event: &FunctionEvent,
    memory: &TargetMemory,
    caches: &mut Caches,
    step: usize,
    places: &mut Vec<u64>,
) {
    let key = event.function.function_address();
    let (is_compiled, blob) = (key & COMPILED != 0, key & !COMPILED);
    let offsets = Offsets::of(memory);
    match step {
        0 if is_compiled => {
            places.push(blob.wrapping_sub(offsets.heap_block.into()));
            places.push(blob.wrapping_add(u64::from(offsets.compile_id) + 7));
        }
        0 => places.push(event.extra),
        1 => {
            places.extend(caches.lines.then_some(event.extra));
            let tables = is_compiled.then(|| Tables::of(memory, blob)).flatten();
            places.extend(tables.iter().flat_map(Tables::places));
        }
        2 => {
            if caches.lines {
                places.extend(lines::places(memory, event.extra));
            }
            if is_compiled {
                places.extend(caches.methods.describe(memory, blob, caches.lines));
            }
        }
        3 => {
            let constant =
                |method: u64| memory.read(method.wrapping_add(offsets.const_method.into()));
            let methods = caches.methods.described(blob).filter_map(constant);
            places.extend(methods.map(|[constant]| constant));
        }
        _ => {}
    }
}

/// Reads what more there is of a method.
pub(in crate::runtime) fn read(
    event: &FunctionEvent,
    number: usize,
    memory: &TargetMemory,
    caches: &mut Caches,
    told: &RuntimeFunction,
) -> RuntimeFunction {
    let key = event.function.function_address();
    let of_bytecodes = if caches.lines {
        lines(memory, event.extra)
    } else {
        FunctionLines::None
    };
    let first_line = of_bytecodes.first();
    let (mut of_code, mut inlined) = (Vec::<(u32, u32)>::new(), Vec::new());
    if key & COMPILED != 0 {
        let descriptions = caches.methods.take(memory, key & !COMPILED, caches.lines);
        for Description { end, bytecode, .. } in &descriptions {
            let line = of_bytecodes.at(*bytecode);
            match of_code.last_mut() {
                Some(last) if last.1 == line => last.0 = *end,
                _ => of_code.push((*end, line)),
            }
        }
        if descriptions.iter().any(|one| !one.calls.is_empty()) {
            for one in descriptions {
                let calls = one.calls.into_iter().map(|(method, position)| InlinedCall {
                    function: caches.methods.get(
                        memory,
                        event.process_key,
                        method,
                        caches.lines,
                        number,
                    ),
                    position,
                });
                inlined.push((one.end, calls.collect()));
            }
        }
    }
    RuntimeFunction {
        first_line,
        inlined: inlined.into(),
        lines: if key & COMPILED == 0 || !caches.lines {
            of_bytecodes
        } else {
            FunctionLines::Table(of_code.into())
        },
        ..told.clone()
    }
}

/// A class and a method as Java writes them: dots between packages, and no address where the class is a hidden one.
fn plain(name: &str) -> String {
    let dotted = name.replace('/', ".");
    // `Work$$Lambda.0x00007f…` of 21, `Work$$Lambda$14.0x00000008…` of 17, `Work$1+0x…`: since an address tells nothing.
    let Some(at) = dotted.find(".0x").or_else(|| dotted.find("+0x")) else {
        return dotted;
    };
    let digits = dotted[at + 3..].bytes();
    let digits = digits.take_while(u8::is_ascii_hexdigit).count();
    format!("{}{}", &dotted[..at], &dotted[at + 3 + digits..])
}

/// The most methods that are kept; then all are read anew.
const MAX_METHODS: usize = 1 << 16;

/// Methods that are compiled into others: most are compiled into many.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Methods {
    known: HashMap<(ProcessKey, u64), (Stamp, Arc<RuntimeFunction>)>,
    /// Those that were asked for since it was settled last.
    unsettled: HashMap<u64, (Arc<RuntimeFunction>, Option<New>)>,
    /// Descriptions of blobs that are read now.
    descriptions: HashMap<u64, Vec<Description>>,
}

/// Of larger blobs, descriptions are read again when they are needed.
const MAX_DESCRIPTIONS: usize = 1 << 8;
/// So many of the methods that are compiled into one are read ahead.
const MAX_AHEAD: usize = 16;

/// The address of a `ConstMethod`, and what it begins with: its constants, its sizes, and the numbers of its names. A method that
/// takes another's place differs in one of them.
type Stamp = (u64, [u64; 4]);

/// The stamp of a method that was not known, and the number of the function that it was read for.
type New = (Stamp, usize);

impl Methods {
    /// Reads the descriptions of a blob, in advance. Returns the first of the methods in it.
    fn describe(
        &mut self,
        memory: &TargetMemory,
        blob: u64,
        lines: bool,
    ) -> impl Iterator<Item = u64> {
        let read = descriptions(memory, blob, lines).unwrap_or_default();
        if read.len() <= MAX_DESCRIPTIONS {
            self.descriptions.insert(blob, read);
        }
        self.described(blob)
    }

    /// The first of the methods in a blob whose descriptions were read.
    fn described(&self, blob: u64) -> impl Iterator<Item = u64> {
        let all = self.descriptions.get(&blob).into_iter().flatten();
        let calls = all.flat_map(|one| &one.calls);
        calls.map(|(method, _)| *method).take(MAX_AHEAD)
    }

    /// The descriptions of a blob.
    fn take(&mut self, memory: &TargetMemory, blob: u64, lines: bool) -> Vec<Description> {
        let known = self.descriptions.remove(&blob);
        known.unwrap_or_else(|| descriptions(memory, blob, lines).unwrap_or_default())
    }

    /// A method that is compiled into the function of this number, of those that are read together. As long as that is the same, so
    /// is the method; and so it is for all others that have it compiled into them.
    fn get(
        &mut self,
        memory: &TargetMemory,
        process: ProcessKey,
        method: u64,
        lines: bool,
        number: usize,
    ) -> Arc<RuntimeFunction> {
        if let Some((function, _)) = self.unsettled.get(&method) {
            return Arc::clone(function);
        }
        let stamp = stamp(memory, method);
        let known = self.known.get(&(process, method));
        let known = known.filter(|(known, _)| Some(*known) == stamp);
        let (function, new) = match known {
            Some((_, function)) => (Arc::clone(function), None),
            None => {
                let read = Arc::new(read_method(memory, method, lines));
                (read, stamp.map(|stamp| (stamp, number)))
            }
        };
        let unsettled = (Arc::clone(&function), new);
        self.unsettled.insert(method, unsettled);
        function
    }

    /// Keeps what was read since the last time of a process for functions that are right, by their numbers.
    pub(in crate::runtime) fn settle(
        &mut self,
        process: ProcessKey,
        is_right: impl Fn(usize) -> bool,
    ) {
        self.descriptions.clear();
        for (method, (function, new)) in self.unsettled.drain() {
            if let Some((stamp, _)) = new.filter(|(_, number)| is_right(*number)) {
                if self.known.len() >= MAX_METHODS {
                    self.known.clear();
                }
                self.known.insert((process, method), (stamp, function));
            }
        }
    }
}

/// See [`Stamp`].
fn stamp(memory: &TargetMemory, method: u64) -> Option<Stamp> {
    let offsets = Offsets::of(memory);
    let [constant] = memory.read(method.checked_add(offsets.const_method.into())?)?;
    let words = memory.read(constant.checked_add(offsets.constants.into())?)?;
    Some((constant, words))
}

fn read_method(memory: &TargetMemory, method: u64, wants_lines: bool) -> RuntimeFunction {
    let strings = HotSpot::strings(memory, method).unwrap_or_default();
    let (owner, name) = (text(memory, strings.owner), text(memory, strings.name));
    let lines = if wants_lines {
        lines(memory, method)
    } else {
        FunctionLines::None
    };
    RuntimeFunction {
        kind: RuntimeKind::HotSpot,
        is_unnamed: name.is_empty(),
        is_nameless: false,
        is_in_part: false,
        name: if name.is_empty() {
            UNNAMED.to_owned()
        } else {
            plain(&format!("{owner}.{name}"))
        },
        file: text(memory, strings.file).into(),
        first_line: lines.first(),
        lines,
        inlined: Box::default(),
    }
}

fn text(memory: &TargetMemory, piece: RemoteString) -> String {
    let mut bytes = vec![0; piece.bytes.min(MAX_NAME) as usize];
    if piece.address == 0 || memory.copy(piece.address, &mut bytes).is_none() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_java_writes_them() {
        for (name, shown) in [
            ("java/util/TimSort.sort", "java.util.TimSort.sort"),
            (
                "Mix$$Lambda$14/0x0000000800c03000.apply",
                "Mix$$Lambda$14.apply",
            ),
            ("Mix$$Lambda+0x00007f12.apply", "Mix$$Lambda.apply"),
            ("Mix.<init>", "Mix.<init>"),
        ] {
            assert_eq!(plain(name), shown);
        }
    }
}
