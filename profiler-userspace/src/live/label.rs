//! Names in cells.
//!
//! In: a name and a number of columns. Out: the name, or both of its ends, never wider than that.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Fewer columns say nothing of a name that does not fit.
const LEAST: usize = 3;

/// How a name reads in so many columns: whole; or without its middle, where `cut` stands; or not at all.
pub(super) fn fit(name: &str, columns: usize, cut: &str) -> String {
    if name.width() <= columns {
        return name.to_owned();
    }
    if columns < LEAST {
        return String::new();
    }
    let room = columns - cut.width();
    // The function's own name stands at the end, and readers mostly look for that.
    let front = room * 2 / 5;
    let mut label = take(name.chars(), front);
    label.push_str(cut);
    let back = take(name.chars().rev(), columns - label.width());
    label.extend(back.chars().rev());
    label
}

/// A text in exactly so many columns, its beginning if it is too long.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let mut padded = take(text.chars(), columns);
    padded.extend(std::iter::repeat_n(' ', columns - padded.width()));
    padded
}

/// As many of the characters as fit into so many columns.
fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    chars
        .map_while(|c| {
            left = left.checked_sub(c.width().unwrap_or(0))?;
            Some(c)
        })
        .collect()
}
