//! Text that a terminal or a reader of XML shows as it is.
//!
//! In: any characters, chosen by whoever wrote the program that is sampled. Out: printable ones. Doing this twice is doing it once.

use std::borrow::Cow;

/// The same text with everything that a terminal or an XML parser would not show as a character
/// of this line written out, as in `\n` and `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unprintable(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters, white space other than the plain one, marks that turn the direction of
/// writing, and the characters that XML 1.0 forbids.
fn is_unprintable(c: char) -> bool {
    match c {
        ' '..='~' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => c.is_control() || c.is_whitespace(),
    }
}
