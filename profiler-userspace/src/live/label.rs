//! Names in cells.
//!
//! In: a name and a number of columns. Out: text that is never wider than that.

use crate::text::label;
use unicode_width::UnicodeWidthStr as _;

/// How a name reads in so many columns, with `cut` where something is left out; nothing where there is no room.
pub(super) fn fit(name: &str, columns: usize, cut: &str) -> String {
    label::fit(name, columns, cut).unwrap_or_default()
}

/// How the name of a module reads in so many columns: dots within one are no borders of packages.
pub(super) fn without_middle(module: &str, columns: usize, cut: &str) -> String {
    label::without_middle(module, columns, cut)
}

/// A text in exactly so many columns, its beginning if it is too long.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let mut padded = label::take(text.chars(), columns);
    padded.extend(std::iter::repeat_n(' ', columns - padded.width()));
    padded
}
