//! Reports of recordings on themselves: facts in, sentences out.
//!
//! In: counters, what names were missing and why, what it cost. Out: text for stderr, and for outputs that can carry it.
//! Never records, symbolizes or writes a file.

pub(crate) mod balance;
pub(crate) mod busiest;
pub(crate) mod cost;
pub(crate) mod debug_info;
pub(crate) mod distro;
pub(crate) mod findings;
pub(crate) mod interference;
pub(crate) mod kernel_lines;
mod losses;
pub(crate) mod names;
pub(crate) mod nothing;
pub(crate) mod stack_counts;
pub(crate) mod stacks;
pub(crate) mod verbose;

use crate::profile::fold::visible;
use crate::text::color::painted;
use crate::text::terminal;
use std::io::Write as _;

/// Prints on stderr, whatever a name in the text does to terminals. A closed stderr is no error.
pub fn print(text: &str) {
    let mut text = printable(text);
    if terminal::has_colors(&std::io::stderr()) {
        text = painted(&text);
    }
    let _nobody_there = std::io::stderr().write_all(text.as_bytes());
}

/// Lines without characters that a terminal obeys.
fn printable(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(visible).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::findings::{Finding, Summary};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_name_reaches_a_terminal_but_as_a_part_of_its_line(name in any::<String>(), escape in any::<bool>()) {
            let name = if escape { format!("\u{1b}[31m\n{name}\u{202e}") } else { name };
            let title = format!("on-CPU: {name}");
            let findings = vec![Finding::new("names", name.clone())];
            let summary = Summary { title, findings };
            for text in [summary.shown(), summary.lines() + "\n"] {
                let text = printable(&text);
                prop_assert_eq!(text.lines().count(), 2, "{:?}", text);
                prop_assert!(!text.replace('\n', "").contains(char::is_control));
            }
            prop_assert!(!printable(&name).replace('\n', "").contains(char::is_control));
        }
    }
}
