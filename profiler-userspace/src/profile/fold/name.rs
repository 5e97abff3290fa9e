//! How a name is made fit for one line of text.
//!
//! In: any characters, chosen by whoever wrote the program that is sampled.
//! Out: one printable frame name that no reader of folded text takes for anything else. What is fit
//! already stays as it is, so that doing this twice is doing it once.
//! Never: an empty name.

use super::split_suffix;
use crate::profile::marks;
use crate::text::visible::visible;
use std::borrow::Cow;

/// A frame's name as folded text can hold it.
pub(super) fn frame(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed(marks::UNKNOWN);
    }
    // Readers take the one for the border between user and kernel, and a lone other for a comment.
    match name {
        marks::DELIMITER => return Cow::Borrowed("[-]"),
        "#" => return Cow::Borrowed("[#]"),
        _ => {}
    }
    let mut name = visible(name);
    if name.contains(';') {
        name = Cow::Owned(name.replace(';', ":"));
    }
    if let Some(spaces) = misleading_spaces(&name) {
        let mut text = name.into_owned();
        for at in spaces {
            text.replace_range(at..=at, "_");
        }
        name = Cow::Owned(text);
    }
    // Only the kernel's frames may say that they are the kernel's, and so on.
    if let Some((stem, kind)) = split_suffix(&name) {
        let short = kind.short().unwrap_or_default();
        return Cow::Owned(format!("{stem}_({short})"));
    }
    name
}

/// Where the spaces are that a reader would trim, or take for the one before a weight, or for that
/// of a comment: `# name`, ` name`, `name `, `name 12`.
fn misleading_spaces(name: &str) -> Option<Vec<usize>> {
    if !name.contains(' ') {
        return None;
    }
    let start = name.len() - name.trim_start_matches(' ').len();
    let end = name.trim_end_matches(' ').len();
    let mut spaces: Vec<usize> = (0..start).chain(end.max(start)..name.len()).collect();
    if name.starts_with("# ") {
        spaces.push(1);
    }
    if let Some(space) = name.rfind(' ')
        && reads_as_number(&name[space + 1..])
    {
        spaces.push(space);
    }
    (!spaces.is_empty()).then_some(spaces)
}

/// Whether another column of digits would be a weight to those who allow two, and fractions.
pub(super) fn reads_as_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}
