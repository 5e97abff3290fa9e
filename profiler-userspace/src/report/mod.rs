//! Reports of recordings on themselves: facts in, sentences out.
//!
//! In: counters, what names were missing and why, what it cost. Out: text for stderr, and for outputs that can carry it.
//! Never records, symbolizes or writes a file.

pub(crate) mod balance;
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

use std::io::Write as _;

/// Prints on stderr. A closed stderr is no error.
pub(crate) fn print(text: &str) {
    let _nobody_there = std::io::stderr().write_all(text.as_bytes());
}
