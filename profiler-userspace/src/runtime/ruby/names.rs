//! The names of methods with their classes, as Ruby 3.4 has them in its own backtraces.
//!
//! In: a function's label, which says `block in NAME` and the like, and what the kernel half found of its class. Out: its
//! name: `List#each`, `Pool.run`, `block in List#each`.

use super::super::text;
use crate::process::{FunctionEvent, RuntimeFunction};
use crate::runtime::TargetMemory;

/// Text between a part of a method and the method, in a label.
const WITHIN: &str = " in ";

/// Names a function with its class, if that is known. Of blocks there may be several in a method, so file and line tell which.
pub(in crate::runtime) fn complete(
    event: &FunctionEvent,
    _: &TargetMemory,
    function: &mut RuntimeFunction,
) {
    let owner = text(&event.owner);
    if owner.is_empty() || function.is_unnamed {
        return;
    }
    let (name, is_whole) = qualified(&owner, event.extra != 0, &text(&event.name));
    function.name = name;
    function.is_nameless = !is_whole;
}

/// The label with the class, and whether it is the method's own.
fn qualified(owner: &str, is_singleton: bool, label: &str) -> (String, bool) {
    let separator = if is_singleton { '.' } else { '#' };
    match label.rsplit_once(WITHIN) {
        Some((part, method)) => (format!("{part}{WITHIN}{owner}{separator}{method}"), false),
        None => (format!("{owner}{separator}{label}"), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_stand_in_front_of_methods() {
        for (is_singleton, label, name, is_whole) in [
            (false, "each", "List#each", true),
            (true, "run", "List.run", true),
            (false, "<=>", "List#<=>", true),
            (false, "block in each", "block in List#each", false),
            (
                true,
                "rescue in block (2 levels) in run",
                "rescue in block (2 levels) in List.run",
                false,
            ),
        ] {
            assert_eq!(
                qualified("List", is_singleton, label),
                (name.to_owned(), is_whole)
            );
        }
    }
}
