//! Functions by where they are defined: where a name may be that of several, or there is none.
//!
//! In: a stack of a profile with `--annotate`. Out: an interpreter's functions as `NAME:LINE`, as workloads say them. Never: which
//! of several files a line is in.

use crate::Stack;

/// The functions in a stack, from the root, whose frames end with `suffix`. A whole file, `<main>`, is in no line.
pub fn defined_functions(stack: &Stack, suffix: &str) -> Vec<String> {
    let frames = stack.frames.iter();
    let functions = frames.filter_map(|frame| frame.strip_suffix(suffix));
    functions.map(defined).collect()
}

/// `NAME (FILE:LINE)` as `NAME:LINE`.
fn defined(frame: &str) -> String {
    let (name, place) = frame.split_once(" (").unwrap_or((frame, ""));
    match place.trim_end_matches(')').rsplit_once(':') {
        Some((_, line)) if name != "<main>" => format!("{name}:{line}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_lines_and_files_have_none() {
        let frames = [
            "lua",
            "<main> (a.lua:1)_[lua]",
            "step (a (b).lua:12)_[lua]",
            "lua_callk",
            "<anonymous> (a.lua:7)_[lua]",
        ];
        let stack = Stack {
            frames: frames.map(str::to_owned).to_vec(),
            weight: 1,
        };
        assert_eq!(
            defined_functions(&stack, "_[lua]"),
            ["<main>", "step:12", "<anonymous>:7"]
        );
    }
}
