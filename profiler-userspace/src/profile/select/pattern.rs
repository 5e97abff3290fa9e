//! Patterns for names, and owners by number or name.
//!
//! In: regular expressions as people type them. Out: whether a name meets one. The door to the regular expressions' crate.

use regex::Regex;

/// Before a pattern that a whole name must meet.
const START: &str = "^(?:";

/// Behind such a pattern.
const END: &str = ")$";

/// A regular expression, which a part of a name meets, too. Equal if it reads the same.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// A pattern as it is typed.
    ///
    /// # Errors
    /// When it is no regular expression, or one that is too large.
    pub fn parse(text: &str) -> Result<Self, String> {
        Regex::new(text)
            .map(Self)
            .map_err(|error| described(&error))
    }

    /// One that a whole name must meet.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn whole(text: &str) -> Result<Self, String> {
        // Alone first, so that what is wrong is said of what was typed.
        Self::parse(text)?;
        Self::parse(&format!("{START}{text}{END}"))
    }

    /// Whether a name meets it.
    pub fn is_met_by(&self, name: &str) -> bool {
        self.0.is_match(name)
    }

    /// The pattern, as it was typed unless it is for whole names.
    pub fn text(&self) -> &str {
        self.0.as_str()
    }

    /// A pattern for whole names, as it was typed.
    pub fn name(&self) -> &str {
        let text = self.text();
        let typed = text
            .strip_prefix(START)
            .and_then(|text| text.strip_suffix(END));
        typed.unwrap_or(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

/// An error on one line. The last of several lines says what is wrong.
fn described(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let problem = last.strip_prefix("error: ").unwrap_or(last);
    format!(
        "not a regular expression: {problem}; put \\ before characters that are meant as they stand"
    )
}

/// A process or a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Who {
    /// By its ID.
    Id(u32),
    /// By its name, all of which meets this.
    Name(Pattern),
}

impl Who {
    /// One of several IDs between commas, or a name.
    ///
    /// # Errors
    /// When a name is no regular expression.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        let ids: Option<Vec<Self>> = text
            .split(',')
            .map(|word| word.trim().parse().ok().map(Self::Id))
            .collect();
        match ids {
            Some(ids) => Ok(ids),
            None => Ok(vec![Self::Name(Pattern::whole(text)?)]),
        }
    }

    /// Whether it is who has this ID, or any of these names.
    pub(super) fn is(&self, id: Option<u32>, names: &[&str]) -> bool {
        match self {
            Self::Id(wanted) => id == Some(*wanted),
            Self::Name(_) => self.is_name(names),
        }
    }

    /// Whether it has any of these names.
    pub(super) fn is_name(&self, names: &[&str]) -> bool {
        match self {
            Self::Id(_) => false,
            Self::Name(pattern) => names.iter().any(|name| pattern.is_met_by(name)),
        }
    }
}
