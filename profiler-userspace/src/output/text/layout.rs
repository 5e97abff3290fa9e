//! Numbers and names in columns.
//!
//! In: weights, names, and how many columns there are. Out: text of one line.

use crate::output::text_style::TextStyle;
use crate::text::label::{CUT, fit};
use crate::text::number::share;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns of a share: `100.0%`.
pub(super) const SHARE_COLUMNS: usize = 6;

/// A share in as many columns as 100 % has.
pub(super) fn percent(part: u64, all: u64) -> String {
    format!("{:>SHARE_COLUMNS$}", share(part as f64, all as f64))
}

/// A name in at most so many columns.
fn shortened(name: &str, columns: usize) -> String {
    fit(name, columns, CUT).unwrap_or_default()
}

impl TextStyle {
    /// A name in so many columns, or whole.
    pub(in crate::output) fn name(&self, name: &str, columns: usize) -> String {
        match self.cuts_names {
            true => shortened(name, columns),
            false => name.to_owned(),
        }
    }

    /// A name in exactly so many columns, or whole and in no fewer.
    pub(super) fn padded(&self, name: &str, columns: usize) -> String {
        let name = self.name(name, columns);
        let fill = columns.saturating_sub(name.width());
        name + &" ".repeat(fill)
    }
}

/// Beginning of further lines of a wrapped text.
const INDENT: &str = "    ";

/// A text in lines of at most so many columns. Further lines are indented, and words that fit in none are divided.
pub(in crate::output) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
                continue;
            }
            Some(_) => lines.push(INDENT.to_owned()),
            None => lines.push(String::new()),
        }
        for c in word.chars() {
            let line = lines.last_mut().expect("one was added");
            if line.width() + c.width().unwrap_or(0) <= columns {
                line.push(c);
            } else {
                lines.push(format!("{INDENT}{c}"));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_wrapped_text_is_too_wide() {
        assert_eq!(wrapped("one two three", 9), ["one two", "    three"]);
        assert_eq!(wrapped("", 8), Vec::<String>::new());
        assert_eq!(
            wrapped("a /usr/lib/漢字/x", 8),
            ["a", "    /usr", "    /lib", "    /漢", "    字/x"]
        );
    }
}
