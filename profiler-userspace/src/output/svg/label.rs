//! A frame's name, as much of it as there is room for.
//!
//! In: a name and a number of columns. Out: the name; or without the arguments of its templates and its functions; or
//! without its middle; or the beginning of its last part; or nothing. The script's `label.js` does the same.

/// With less room than this only the last part of a path is shown: the first ones are the same everywhere.
const LEAST_FOR_MIDDLE: usize = 8;
/// Fewer columns say nothing.
const LEAST: usize = 3;
/// Stands for what is left out.
const CUT: &str = "…";
/// A name that looks like arguments and is none.
const ANONYMOUS: &str = "(anonymous namespace)";

/// The label that fits into so many columns, if any does.
pub(super) fn fit(name: &str, columns: usize) -> Option<String> {
    if columns < LEAST {
        return None;
    }
    if width(name) <= columns {
        return Some(name.to_owned());
    }
    let short = without_arguments(name);
    if width(&short) <= columns {
        return Some(short);
    }
    let room = columns - 1;
    if columns < LEAST_FOR_MIDDLE {
        let own = short.rsplit("::").next().unwrap_or(&short);
        return Some(match width(own) <= columns {
            true => own.to_owned(),
            false => take(own.chars(), room) + CUT,
        });
    }
    let head = room / 3;
    let mut label = take(short.chars(), head);
    label.push_str(CUT);
    let tail = take(short.chars().rev(), room - head);
    label.extend(tail.chars().rev());
    Some(label)
}

/// As many of the characters as fit into so many columns.
fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    chars
        .map_while(|c| {
            left = left.checked_sub(columns_of(c))?;
            Some(c)
        })
        .collect()
}

fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Fixed-width fonts draw scripts of wide characters twice as wide.
fn columns_of(c: char) -> usize {
    if u32::from(c) >= 0x2e80 { 2 } else { 1 }
}

/// A name without what stands in `<>` and `()`, except where that is what it begins with. One whose brackets are not
/// balanced stays as it is.
fn without_arguments(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut depth = 0_usize;
    // The bracket that the name begins with, until it is closed.
    let mut first = None;
    let mut rest = name;
    let mut last = ' ';
    while let Some(c) = rest.chars().next() {
        let is_operator = depth == 0 && short.ends_with("operator");
        let length = if depth == 0 && rest.starts_with(ANONYMOUS) {
            ANONYMOUS.len()
        } else if is_operator && rest.starts_with("()") {
            2
        } else if is_operator {
            let end = rest.find(|c| !matches!(c, '<' | '>' | '=' | '-'));
            end.unwrap_or(rest.len()).max(c.len_utf8())
        } else {
            c.len_utf8()
        };
        let (piece, behind) = rest.split_at(length);
        let is_bracket = length == c.len_utf8() && !is_operator;
        match c {
            '<' | '(' if is_bracket && short.is_empty() && depth == 0 => {
                first = Some(if c == '<' { '>' } else { ')' });
                short.push(c);
            }
            '<' | '(' if is_bracket => {
                if depth == 0 && short.ends_with("::") {
                    short.truncate(short.len() - 2);
                }
                depth += 1;
            }
            '>' if is_bracket && last == '-' && depth > 0 => {}
            '>' if is_bracket && last == '-' => short.push(c),
            '>' | ')' if is_bracket && depth > 0 => depth -= 1,
            '>' | ')' if is_bracket && first == Some(c) => {
                first = None;
                short.push(c);
            }
            '>' | ')' if is_bracket => return name.to_owned(),
            _ if depth == 0 => short.push_str(piece),
            _ => {}
        }
        last = piece.chars().next_back().unwrap_or(last);
        rest = behind;
    }
    if depth > 0 || first.is_some() {
        return name.to_owned();
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_the_first_to_go() {
        for (name, short) in [
            (
                "std::map<int, std::vector<int>>::find(int const&)",
                "std::map::find",
            ),
            (
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                "<alloc::vec::Vec as core::ops::Drop>::drop",
            ),
            ("a::operator<<(std::ostream&)", "a::operator<<"),
            ("a::operator()(int)", "a::operator()"),
            ("a::operator->()", "a::operator->"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            (
                "n::(anonymous namespace)::f()",
                "n::(anonymous namespace)::f",
            ),
            ("fn(A) -> B", "fn -> B"),
            ("work (file.c:12)", "work "),
            ("a > b", "a > b"),
            ("a < b", "a < b"),
            ("größe", "größe"),
            ("run::<A, B>::{closure#1}", "run::{closure#1}"),
            ("begin::<()>", "begin"),
        ] {
            assert_eq!(without_arguments(name), short, "{name}");
        }
    }

    #[test]
    fn labels_fit_their_room() {
        let name = "entry_SYSCALL_64_after_hwframe";
        for (columns, label) in [
            (30, Some(name)),
            (20, Some("entry_…after_hwframe")),
            (8, Some("en…frame")),
            (7, Some("entry_…")),
            (3, Some("en…")),
            (2, None),
        ] {
            assert_eq!(fit(name, columns).as_deref(), label, "{columns}");
        }
        assert_eq!(
            fit("core::ptr::drop_in_place", 7).as_deref(),
            Some("drop_i…")
        );
        assert_eq!(fit("core::ptr::drop", 7).as_deref(), Some("drop"));
        assert_eq!(fit("日本語日本語", 7).as_deref(), Some("日本語…"));
        assert_eq!(fit("f<T>", 3).as_deref(), Some("f"));
    }

    #[test]
    fn no_label_is_wider_than_its_room() {
        for name in [
            "日本語<日本>語日本語::日本語",
            "a<b>::c(d)::{closure#0}",
            "]]>\"--><!--",
        ] {
            for columns in 0..40 {
                if let Some(label) = fit(name, columns) {
                    assert!(width(&label) <= columns, "{label} in {columns}");
                }
            }
        }
    }
}
