//! A name, as much of it as there is room for.
//!
//! In: a name of any language, and a number of columns. Out: the whole name; or without its arguments; or without the
//! packages, types and folders before its last part; or both ends of that part; or nothing. Never: a name that looks
//! whole and is not. `…` stands where something is left out. `output/web/label.js` does the same.

use unicode_width::UnicodeWidthChar as _;

/// Stands for what is left out.
pub(crate) const CUT: &str = "…";
/// With less room than this a name keeps its beginning alone.
const MIN_FOR_MIDDLE: usize = 8;
/// Fewer columns say nothing.
const MIN_COLUMNS: usize = 3;
/// Characters that the names of operators consist of.
const OPERATOR: &str = "<>=-+*/%&|^!~,[]";
/// Parts that compilers add behind a function's name.
const ADDED: [&str; 8] = [
    "isra",
    "constprop",
    "part",
    "cold",
    "lto_priv",
    "llvm",
    "abi0",
    "abiinternal",
];
/// Beginnings of parts, each with a number, that compilers name the functions within a function.
const NUMBERED: [&str; 2] = ["func", "__lambda"];

/// A name in at most so many columns, if that says anything. `cut` stands where something is left out.
pub(crate) fn fit(name: &str, columns: usize, cut: &str) -> Option<String> {
    if width(name) <= columns {
        return Some(name.to_owned());
    }
    if columns < MIN_COLUMNS {
        return None;
    }
    let parts = Parts::of(name, cut);
    if width(&parts.text) <= columns {
        return Some(parts.text);
    }
    let mut shorter = parts.begins.iter().map(|&begin| &parts.text[begin..]);
    let room = columns - width(cut);
    if let Some(end) = shorter.find(|end| width(end) <= room) {
        return Some(format!("{cut}{end}"));
    }
    let last = parts.begins.last().copied().unwrap_or(0);
    Some(ends(&parts.text[last..], columns, cut))
}

/// A text in at most so many columns, without its middle if it is longer.
pub(crate) fn without_middle(text: &str, columns: usize, cut: &str) -> String {
    match width(text) <= columns {
        true => text.to_owned(),
        false => ends(text, columns, cut),
    }
}

/// Both ends of a text, or its beginning in few columns.
fn ends(text: &str, columns: usize, cut: &str) -> String {
    let room = columns.saturating_sub(width(cut));
    if columns < MIN_FOR_MIDDLE {
        return take(text.chars(), room) + cut;
    }
    let mut label = take(text.chars(), room / 3);
    label.push_str(cut);
    let tail = take(text.chars().rev(), columns - width(&label));
    label.extend(tail.chars().rev());
    label
}

/// As many of the characters as fit into so many columns.
pub(crate) fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    chars
        .map_while(|c| {
            left = left.checked_sub(c.width().unwrap_or(0))?;
            Some(c)
        })
        .collect()
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// A name without its arguments, and where parts of it begin behind the first.
struct Parts {
    text: String,
    begins: Vec<usize>,
}

impl Parts {
    /// Those of a name. One whose brackets do not match is one part.
    fn of(name: &str, cut: &str) -> Self {
        let reader = Reader {
            cut,
            ..Reader::default()
        };
        reader.read(name).unwrap_or_else(|| Self {
            text: name.to_owned(),
            begins: Vec::new(),
        })
    }
}

/// Reads a name from its beginning to its end.
#[derive(Default)]
struct Reader<'a> {
    cut: &'a str,
    text: String,
    begins: Vec<usize>,
    /// Closing brackets of those that are open and belong to the name.
    kept: Vec<char>,
    /// Closing brackets of those that are open and left out.
    left_out: Vec<char>,
    /// How many square and curly brackets are open.
    nested: usize,
    /// Whether it is within the type of what a function returns, behind ` -> `, whose parts are no names.
    in_type: bool,
}

impl Reader<'_> {
    fn read(mut self, name: &str) -> Option<Parts> {
        let mut rest = name;
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let length = match self.left_out.is_empty() {
                true => self.take(rest, c)?,
                false => {
                    self.skip(c, before)?;
                    c.len_utf8()
                }
            };
            before = rest[..length].chars().next_back().unwrap_or(c);
            rest = &rest[length..];
        }
        let is_closed = self.kept.is_empty() && self.left_out.is_empty();
        let Self { text, begins, .. } = self;
        let mut parts = Parts { text, begins };
        let text = &parts.text;
        parts.begins.retain(|&begin| is_name(&text[begin..]));
        is_closed.then_some(parts)
    }

    /// Reads on within what is left out.
    fn skip(&mut self, c: char, before: char) -> Option<()> {
        match c {
            '<' => self.left_out.push('>'),
            '(' => self.left_out.push(')'),
            '>' if before != '-' && self.left_out.last() == Some(&'>') => {
                self.left_out.pop();
            }
            ')' => {
                // A `<` before it opened nothing.
                let open = self.left_out.iter().rposition(|&close| close == ')')?;
                self.left_out.truncate(open);
            }
            _ => return Some(()),
        }
        if self.left_out.is_empty() {
            self.text.push(c);
        }
        Some(())
    }

    /// Takes what the rest of the name begins with; how many bytes that is.
    fn take(&mut self, rest: &str, c: char) -> Option<usize> {
        let length = self.token(rest, c);
        let token = &rest[..length];
        match token {
            "<" | "(" => {
                let close = if c == '<' { '>' } else { ')' };
                self.text.push(c);
                if self.is_of_name(c) {
                    self.kept.push(close);
                } else {
                    self.text.push_str(self.cut);
                    self.left_out.push(close);
                }
                return Some(length);
            }
            ">" | ")" if self.kept.pop() != Some(c) => return None,
            "[" | "{" => self.nested += 1,
            "]" | "}" => self.nested = self.nested.saturating_sub(1),
            _ => {}
        }
        let ends_part = matches!(token, "::" | "." | "/" | "\\")
            || token == "->" && !self.text.ends_with(' ') && !self.text.ends_with("operator");
        self.in_type |= token == "->" && self.text.ends_with(' ') && self.kept.is_empty();
        self.text.push_str(token);
        // Swift's closures: `closure #1 (A) -> B in f`.
        self.in_type &= !self.text.ends_with(" in ");
        if ends_part && self.kept.is_empty() && self.nested == 0 && !self.in_type {
            self.begins.push(self.text.len());
        }
        Some(length)
    }

    /// How long the token is that the rest of a name begins with: an operator's name, an arrow, a pair of brackets, a
    /// separator or a character.
    fn token(&self, rest: &str, c: char) -> usize {
        if self.text.ends_with("operator") {
            if rest.starts_with("()") {
                return 2;
            }
            let end = rest.find(|c| !OPERATOR.contains(c)).unwrap_or(rest.len());
            return end.max(c.len_utf8());
        }
        let pairs = ["()", "<>", "::", "->"];
        match pairs.iter().any(|pair| rest.starts_with(pair)) {
            true => 2,
            false => c.len_utf8(),
        }
    }

    /// Whether a bracket belongs to the name: `<T as Trait>::f`, `(*T).f`, `f.<locals>`, `(anonymous namespace)::f`.
    fn is_of_name(&self, c: char) -> bool {
        let before = &self.text.as_bytes()[..self.text.len() - 1];
        match before.last() {
            None | Some(b'.' | b'/') => true,
            Some(b'<') => !self.kept.is_empty(),
            Some(b':') => c == '(',
            _ => false,
        }
    }
}

/// Whether a part can stand alone: not what compilers and languages add to the function before it.
fn is_name(part: &str) -> bool {
    let end = part.find(['.', ':', '/', '\\', '-']).unwrap_or(part.len());
    let word = &part[..end];
    let is_numbered = |begin: &&str| {
        let end = word.find('(').unwrap_or(word.len());
        let number = word[..end].strip_prefix(begin);
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_added = ADDED.contains(&word) || NUMBERED.iter().any(is_numbered);
    let begins_name = |c: char| c.is_alphabetic() || "_(~$@*".contains(c);
    !is_added && part.starts_with(begins_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Names, columns, and how they read: those of `label.js` as well.
    const NAMES: &str = include_str!("labels.tsv");

    #[test]
    fn names_of_all_languages_keep_what_tells_them_apart() {
        for line in NAMES.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let [name, columns, label] = columns[..] else {
                panic!("three columns: {line}");
            };
            let columns = columns.parse().expect("a number");
            assert_eq!(fit(name, columns, CUT).unwrap_or_default(), label, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_label_is_wider_than_its_room_or_hides_that_something_is_left_out(
            name in r"([a-z<>():.*,& 日\[\]{}/-]|::|operator|->){0,40}",
            columns in 0..40_usize,
        ) {
            match fit(&name, columns, CUT) {
                Some(label) => {
                    prop_assert!(width(&label) <= columns, "{label:?}");
                    prop_assert!(label == name || label.contains(CUT), "{label:?}");
                }
                None => prop_assert!(columns < MIN_COLUMNS),
            }
        }
    }
}
