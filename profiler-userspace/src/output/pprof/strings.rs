//! The table of texts that all of a file refers to.
//!
//! In: texts, as they are come upon. Out: their numbers, and the table, each text once.

use super::signed;
use indexmap::IndexSet;
use std::borrow::Cow;

/// The longest text, in bytes: Pyroscope refuses files with longer ones.
const LONGEST: usize = 65_535;

/// Stands for the end of a text that is longer.
const CUT: char = '…';

/// Texts by number. The first is empty.
pub(super) struct Strings(IndexSet<String>);

impl Strings {
    /// No text but the empty one.
    pub(super) fn new() -> Self {
        Self(std::iter::once(String::new()).collect())
    }

    /// The number of a text, which is added when it is not there yet.
    pub(super) fn number(&mut self, text: &str) -> i64 {
        let text = cut(text);
        let known = self.0.get_index_of(&*text);
        signed(known.unwrap_or_else(|| self.0.insert_full(text.into_owned()).0) as u64)
    }

    /// All of them, by number.
    pub(super) fn into_table(self) -> Vec<Vec<u8>> {
        self.0.into_iter().map(String::into_bytes).collect()
    }
}

/// A text that is not too long.
fn cut(text: &str) -> Cow<'_, str> {
    match text.len() {
        0..=LONGEST => Cow::Borrowed(text),
        _ => {
            let end = text.floor_char_boundary(LONGEST - CUT.len_utf8());
            Cow::Owned(format!("{}{CUT}", &text[..end]))
        }
    }
}
