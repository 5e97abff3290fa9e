//! What debug information did not tell, though it was asked.
//!
//! In: what the limit on memory did to naming. Out: sentences for the balance, each with a number, a cause and a
//! remedy.

use super::health::{counted, grouped, mebibytes};
use crate::symbolize::Pressed;
use std::cmp::Reverse;

/// So many objects are named, those with the most places first.
const MOST_OBJECTS: usize = 3;

/// What to say of debug information that took more memory than naming may hold, which is so many bytes.
pub(super) fn on_memory(pressed: &Pressed, limit: u64) -> Option<String> {
    let limit = mebibytes(limit);
    if pressed.left.is_empty() {
        let whose = match pressed.again {
            0 => return None,
            1 => "1 object".to_owned(),
            many => format!("{} objects", grouped(many as u64)),
        };
        return Some(format!(
            "Debug information of {whose} did not fit into {limit} at once and was read in several rounds; with a larger \
             --max-symbol-memory it is read once."
        ));
    }
    let mut modules: Vec<(&String, &usize)> = pressed.left.iter().collect();
    modules.sort_by_key(|(_, places)| Reverse(**places));
    let all: usize = pressed.left.values().sum();
    let named: Vec<&str> = modules
        .iter()
        .take(MOST_OBJECTS)
        .map(|(module, _)| module.as_str())
        .collect();
    let more = match modules.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "Note: {} in {}{more} got no lines, inlined functions or names from debug information, which takes more than {limit} \
         or very long to read there; a larger --max-symbol-memory allows more.",
        counted(all as u64, "place"),
        named.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(again: usize, left: &[(&str, usize)]) -> Option<String> {
        let left = left
            .iter()
            .map(|(module, places)| ((*module).to_owned(), *places));
        let pressed = Pressed {
            again,
            left: left.collect(),
        };
        on_memory(&pressed, 64 << 20)
    }

    #[test]
    fn what_fits_needs_no_word() {
        assert_eq!(said(0, &[]), None);
    }

    #[test]
    fn what_was_read_again_is_counted() {
        let one = said(1, &[]).unwrap();
        assert!(
            one.starts_with("Debug information of 1 object did not fit into 64.0 MiB"),
            "{one}"
        );
        let many = said(1234, &[]).unwrap();
        assert!(
            many.contains("1,234 objects") && many.contains("--max-symbol-memory"),
            "{many}"
        );
    }

    #[test]
    fn what_was_left_is_counted_and_named() {
        let left = [("a", 1), ("b", 2000), ("c", 3), ("d", 4), ("e", 5)];
        let text = said(2, &left).unwrap();
        assert!(
            text.starts_with("Note: 2,013 places in b, e, d and 2 more got no lines"),
            "{text}"
        );
        assert!(
            text.contains("64.0 MiB") && text.contains("--max-symbol-memory"),
            "{text}"
        );
        assert!(
            said(0, &[("a", 1)])
                .unwrap()
                .starts_with("Note: 1 place in a got no lines")
        );
    }
}
