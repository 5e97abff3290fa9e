//! Name and file of a function of Lua's, and the line of each of its instructions.
//!
//! In: a `Proto` in the process (`lobject.h`, `ldebug.c` of 5.3 and 5.4). Out: pairs of an end in instructions and a line, for
//! positions with and without [`NOT_CALLED_BY_NEXT`].

use super::{names, proto::Proto};
use crate::process::{FunctionEvent, FunctionLines, RuntimeFunction};
use crate::runtime::TargetMemory;
use profiler_common::runtime::RuntimeKind;
use profiler_common::runtime::lua::NOT_CALLED_BY_NEXT;
use std::sync::Arc;

/// The lines of a function.
pub(in crate::runtime) fn lines(memory: &TargetMemory, function: u64) -> FunctionLines {
    read(&Proto::new(memory, function)).map_or(FunctionLines::None, |lines| {
        FunctionLines::Table(twice(&lines))
    })
}

/// The line of each instruction.
fn read(proto: &Proto<'_>) -> Option<Vec<u32>> {
    if proto.is_5_3 {
        return Some(numbers(&proto.array(72, 28, 4)?).collect());
    }
    let steps = proto.array(88, 28, 1)?;
    let absolute: Vec<u32> = numbers(&proto.array(96, 40, 8)?).collect();
    Some(steps_to_lines(&steps, &absolute, proto.number(44)?))
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (all, _) = bytes.as_chunks::<4>();
    all.iter().map(|bytes| u32::from_le_bytes(*bytes))
}

/// 5.4: by how much each instruction's line is larger than the one before; -128 where that does not fit, and the next of the
/// pairs of an instruction and a line says it.
fn steps_to_lines(steps: &[u8], absolute: &[u32], first: u32) -> Vec<u32> {
    let (pairs, _) = absolute.as_chunks::<2>();
    let mut pairs = pairs.iter();
    let mut line = first;
    let lines = steps.iter().map(|step| {
        line = match *step as i8 {
            i8::MIN => pairs.next().map_or(line, |[_, line]| *line),
            step => line.wrapping_add_signed(i32::from(step)),
        };
        line
    });
    lines.collect()
}

/// Ends and lines, for positions without the mark and for those with it.
pub(in crate::runtime) fn twice(lines: &[u32]) -> Box<[(u32, u32)]> {
    let mut table: Vec<(u32, u32)> = Vec::new();
    for mark in [0, NOT_CALLED_BY_NEXT] {
        for (place, line) in lines.iter().enumerate() {
            let end = (place as u32 + 1) | mark;
            match table.last_mut() {
                Some((last, same)) if *same == *line && place > 0 => *last = end,
                _ => table.push((end, *line)),
            }
        }
    }
    table.into()
}

/// See [`complete_with`].
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    memory: &TargetMemory,
    function: &mut RuntimeFunction,
) {
    let name =
        |memory: &TargetMemory, caller, call| names::of_called(&Proto::new(memory, caller), call);
    complete_with(event, memory, function, RuntimeKind::Lua, name);
}

/// Completes what the event says: the file has the compiler's mark in front, and the name is what the caller's code calls the
/// function. `name_of` reads that, given the caller and the number of the instruction that calls.
pub(in crate::runtime) fn complete_with(
    event: &FunctionEvent,
    memory: &TargetMemory,
    function: &mut RuntimeFunction,
    kind: RuntimeKind,
    name_of: impl Fn(&TargetMemory, u64, u32) -> Option<String>,
) {
    function.file = file(&function.file);
    if function.first_line == 0 {
        function.first_line = 1;
        "<main>".clone_into(&mut function.name);
        function.is_unnamed = false;
        return;
    }
    if event.position.number() & NOT_CALLED_BY_NEXT != 0 {
        return;
    }
    let Some(word) = event.caller else {
        return;
    };
    let caller = word.function_address();
    let is_same = || {
        memory.forget();
        memory.check(kind, caller) == Some(event.call.check_of(word))
    };
    let call = event.call.number() & !NOT_CALLED_BY_NEXT;
    // A name counts only if the caller was there before and after it was read.
    let name = is_same().then(|| name_of(memory, caller, call)).flatten();
    if let Some(name) = name.filter(|_| is_same()) {
        function.name = name;
        function.is_unnamed = false;
    }
}

/// `@` and a path, `=` and a name, or the program's text, of which the first line is shown.
fn file(source: &str) -> Arc<str> {
    let source = match source.strip_prefix(['@', '=']) {
        Some(rest) => rest.to_owned(),
        None => {
            let line = source.lines().next().unwrap_or_default();
            format!("[string \"{}\"]", line.trim_end_matches('…'))
        }
    };
    Arc::from(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_5_4_are_counted() {
        let steps = [1, 0, 2, 0xff, 0x80, 1];
        let lines = steps_to_lines(&steps, &[4, 300], 10);
        assert_eq!(lines, [11, 11, 13, 12, 300, 301]);
        // Fewer pairs than there are marks.
        assert_eq!(steps_to_lines(&[0x80, 1], &[], 5), [5, 6]);
    }

    #[test]
    fn lines_hold_for_positions_with_the_mark_too() {
        let table = twice(&[4, 4, 5]);
        let mark = NOT_CALLED_BY_NEXT;
        assert_eq!(*table, [(2, 4), (3, 5), (2 | mark, 4), (3 | mark, 5)]);
        assert_eq!(*twice(&[7]), [(1, 7), (1 | mark, 7)]);
    }

    #[test]
    fn sources_become_files() {
        assert_eq!(&*file("@/srv/app.lua"), "/srv/app.lua");
        assert_eq!(&*file("=stdin"), "stdin");
        assert_eq!(&*file("return 1\nreturn 2"), "[string \"return 1\"]");
        assert_eq!(&*file(""), "[string \"\"]");
    }
}
