//! Names of methods, and the calls that HotSpot compiled into them.
//!
//! In: a method that the kernel half has reported, and the memory of its process. Out: its name as Java writes it, and what was
//! compiled into its code.

use super::lines::lines;
use super::scopes::{Description, descriptions};
use crate::process::{FunctionEvent, FunctionLines, InlinedCall, RuntimeFunction};
use crate::runtime::{Namer, TargetMemory};
use foldhash::HashMap;
use profiler_common::runtime::hotspot::CALL_STUB;
use profiler_common::runtime::{COMPILED, FunctionInfo as _, HotSpot, Piece, RuntimeKind};
use std::sync::Arc;

/// Stands for a name that could not be read.
pub(in crate::runtime) const UNNAMED: &str = "<method>";

/// The longest name, in bytes.
const MOST_NAME: u32 = 512;

/// Completes a method.
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    memory: &TargetMemory,
    _: &mut Namer,
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
    let mut methods = Methods {
        memory,
        known: HashMap::default(),
    };
    let of_bytecodes = lines(memory, event.extra);
    let first_line = of_bytecodes.first();
    let (mut of_code, mut inlined) = (Vec::new(), Vec::new());
    if key & COMPILED != 0 {
        let descriptions = descriptions(memory, key & !COMPILED).unwrap_or_default();
        for Description {
            end,
            calls,
            bytecode,
        } in descriptions
        {
            of_code.push((end, of_bytecodes.at(bytecode)));
            let calls = calls.into_iter().map(|(method, position)| InlinedCall {
                function: methods.get(method),
                position,
            });
            inlined.push((end, calls.collect()));
        }
    }
    if is_same() {
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

/// Methods that are compiled into others.
struct Methods<'m> {
    memory: &'m TargetMemory,
    known: HashMap<u64, Arc<RuntimeFunction>>,
}

impl Methods<'_> {
    fn get(&mut self, method: u64) -> Arc<RuntimeFunction> {
        if let Some(known) = self.known.get(&method) {
            return Arc::clone(known);
        }
        let strings = HotSpot::strings(self.memory, method).unwrap_or_default();
        let (owner, name) = (self.text(strings.owner), self.text(strings.name));
        let lines = lines(self.memory, method);
        let function = Arc::new(RuntimeFunction {
            kind: RuntimeKind::HotSpot,
            is_unnamed: name.is_empty(),
            is_nameless: false,
            name: if name.is_empty() {
                UNNAMED.to_owned()
            } else {
                plain(&format!("{owner}.{name}"))
            },
            file: self.text(strings.file).into(),
            first_line: lines.first(),
            lines,
            inlined: Box::default(),
        });
        self.known.insert(method, Arc::clone(&function));
        function
    }

    fn text(&self, piece: Piece) -> String {
        let mut bytes = vec![0; piece.bytes.min(MOST_NAME) as usize];
        if piece.address == 0 || self.memory.copy(piece.address, &mut bytes).is_none() {
            return String::new();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
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
