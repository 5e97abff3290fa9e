//! Names of methods, and the calls that HotSpot compiled into them.
//!
//! In: a method that the kernel half has reported, and the memory of its process. Out: its name as Java writes it, and what was
//! compiled into its code.

use super::lines::lines;
use super::scopes::{Description, descriptions};
use crate::process::{FunctionEvent, FunctionLines, InlinedCall, ProcessKey, RuntimeFunction};
use crate::runtime::{Namer, TargetMemory};
use foldhash::HashMap;
use profiler_common::runtime::hotspot::{CALL_STUB, Offsets};
use profiler_common::runtime::{COMPILED, FunctionInfo as _, HotSpot, Piece, RuntimeKind};
use profiler_common::walk::Memory as _;
use std::sync::Arc;

/// Stands for a name that could not be read.
pub(in crate::runtime) const UNNAMED: &str = "<method>";

/// The longest name, in bytes.
const MOST_NAME: u32 = 512;

/// Completes a method.
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    memory: &TargetMemory,
    namer: &mut Namer,
    function: &mut RuntimeFunction,
) {
    function.name = plain(&function.name);
    function.lines = FunctionLines::None;
    let key = event.function.function_address();
    if key == CALL_STUB {
        "call_stub".clone_into(&mut function.name);
        (function.is_unnamed, function.is_nameless) = (false, false);
    }
    // A stub is no method's.
    if event.extra == 0 {
        return;
    }
    let is_same = || memory.check(RuntimeKind::HotSpot, key) == Some(event.check);
    if !is_same() {
        return;
    }
    let of_bytecodes = lines(memory, event.extra);
    let first_line = of_bytecodes.first();
    let (mut of_code, mut inlined) = (Vec::<(u32, u32)>::new(), Vec::new());
    if key & COMPILED != 0 {
        let descriptions = descriptions(memory, key & !COMPILED).unwrap_or_default();
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
                    function: namer.methods.get(memory, event.process_key, method),
                    position,
                });
                inlined.push((one.end, calls.collect()));
            }
        }
    }
    let is_same = is_same();
    namer.methods.settle(event.process_key, is_same);
    if is_same {
        function.first_line = first_line;
        function.inlined = inlined.into();
        function.lines = if key & COMPILED == 0 {
            of_bytecodes
        } else {
            FunctionLines::Table(of_code.into())
        };
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
const MOST_METHODS: usize = 1 << 16;

/// Methods that are compiled into others: most are compiled into many.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Methods {
    known: HashMap<(ProcessKey, u64), (Stamp, Arc<RuntimeFunction>)>,
    /// Those that were asked for since it was settled last, and whether they are new.
    unsettled: HashMap<u64, (Arc<RuntimeFunction>, Option<Stamp>)>,
}

/// The address of a `ConstMethod`, and what it begins with: its constants, its sizes, and the numbers of its names. A method that
/// takes another's place differs in one of them.
type Stamp = (u64, [u64; 4]);

impl Methods {
    fn get(
        &mut self,
        memory: &TargetMemory,
        process: ProcessKey,
        method: u64,
    ) -> Arc<RuntimeFunction> {
        if let Some((function, _)) = self.unsettled.get(&method) {
            return Arc::clone(function);
        }
        let stamp = stamp(memory, method);
        let known = self.known.get(&(process, method));
        let known = known.filter(|(known, _)| Some(*known) == stamp);
        let (function, new) = match known {
            Some((_, function)) => (Arc::clone(function), None),
            None => (Arc::new(read(memory, method)), stamp),
        };
        let unsettled = (Arc::clone(&function), new);
        self.unsettled.insert(method, unsettled);
        function
    }

    /// Keeps what was read since the last time of a process, if it belongs together.
    fn settle(&mut self, process: ProcessKey, is_right: bool) {
        for (method, (function, new)) in self.unsettled.drain() {
            if let Some(stamp) = new.filter(|_| is_right) {
                if self.known.len() >= MOST_METHODS {
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

fn read(memory: &TargetMemory, method: u64) -> RuntimeFunction {
    let strings = HotSpot::strings(memory, method).unwrap_or_default();
    let (owner, name) = (text(memory, strings.owner), text(memory, strings.name));
    let lines = lines(memory, method);
    RuntimeFunction {
        kind: RuntimeKind::HotSpot,
        is_unnamed: name.is_empty(),
        is_nameless: false,
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

fn text(memory: &TargetMemory, piece: Piece) -> String {
    let mut bytes = vec![0; piece.bytes.min(MOST_NAME) as usize];
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
