//! Numbers and names in columns.
//!
//! In: weights, names, and how many columns there are. Out: text of one line. A name that is too long loses its template
//! arguments first, then its middle: what it begins with says whose it is, and what it ends with says what it does.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns of a share: `100.0%`.
pub(super) const SHARE_COLUMNS: usize = 6;

/// A share in as many columns as 100 % has. What was sampled at all is never `0.0%`.
pub(super) fn percent(part: u64, all: u64) -> String {
    let share = part as f64 * 100.0 / all.max(1) as f64;
    match part > 0 && share < 0.05 {
        true => format!("{:>SHARE_COLUMNS$}", "<0.1%"),
        false => format!("{:>SHARE_COLUMNS$}", format!("{share:.1}%")),
    }
}

/// A name in at most so many columns.
pub(in crate::output) fn shortened(name: &str, columns: usize) -> String {
    if name.width() <= columns {
        return name.to_owned();
    }
    let name = without_arguments(name);
    if name.width() <= columns {
        return name;
    }
    let room = columns.saturating_sub(1);
    let (front, back) = (room.div_ceil(2), room / 2);
    let take = |chars: &mut dyn Iterator<Item = char>, room: usize| {
        let mut used = 0;
        let mut taken: Vec<char> = Vec::new();
        for c in chars {
            used += c.width().unwrap_or(0);
            if used > room {
                break;
            }
            taken.push(c);
        }
        taken
    };
    let front: String = take(&mut name.chars(), front).into_iter().collect();
    let back: String = take(&mut name.chars().rev(), back)
        .into_iter()
        .rev()
        .collect();
    format!("{front}…{back}")
}

/// The name with what stands between its outermost angle brackets as `<…>`, if they are in pairs.
fn without_arguments(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut depth = 0_usize;
    let mut before = ' ';
    for c in name.chars() {
        match c {
            // Neither `->` nor `operator<` opens or closes anything.
            '<' if !short.ends_with("operator") => {
                if depth == 0 {
                    short.push_str("<…");
                }
                depth += 1;
            }
            '>' if depth > 0 && before != '-' => {
                depth -= 1;
                if depth == 0 {
                    short.push('>');
                }
            }
            c if depth == 0 => short.push(c),
            _ => {}
        }
        before = c;
    }
    match depth {
        // A name that begins so is of an implementation; without it, nothing would be left.
        0 if !short.starts_with("<…") => short,
        _ => name.to_owned(),
    }
}

/// A name in exactly so many columns.
pub(super) fn padded(name: &str, columns: usize) -> String {
    let name = shortened(name, columns);
    let fill = columns.saturating_sub(name.width());
    name + &" ".repeat(fill)
}

/// What further lines of a wrapped text begin with.
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
    fn a_long_name_loses_its_arguments_and_then_its_middle() {
        let name = "std::vector<int, std::allocator<int>>::push_back";
        assert_eq!(shortened(name, 60), name);
        assert_eq!(shortened(name, 30), "std::vector<…>::push_back");
        assert_eq!(shortened(name, 11), "std::…_back");
        assert_eq!(shortened("a->b<c", 5), "a-…<c");
        assert_eq!(shortened("<T as Trait<U>>::call", 9), "<T a…call");
        assert_eq!(shortened("漢字漢字", 5), "漢…字");
    }

    #[test]
    fn what_was_sampled_is_never_nothing() {
        assert_eq!(percent(1, 1_000_000), " <0.1%");
        assert_eq!(percent(0, 10), "  0.0%");
        assert_eq!(percent(10, 10), "100.0%");
        assert_eq!(percent(0, 0), "  0.0%");
    }

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
