//! Conditions that a change may meet: `self(parse_*) > +2%`.
//!
//! In: a comparison. Out: met, not met, or that these recordings cannot tell, each with the reason.
//! Undecided never counts as not met. Never: met by a change that may be noise.

use super::comparison::Comparison;
use super::model::{Change, Function, Quantity, Verdict};
use std::fmt;

/// A limit to the changes of some functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// None for all functions, by themselves and with what they called.
    subject: Option<Subject>,
    /// Not 0; below 0 for less than before.
    limit: f64,
    unit: Unit,
}

#[derive(Clone, Debug, PartialEq)]
struct Subject {
    part: Part,
    /// The whole name, `*` for any characters and `?` for one.
    pattern: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Itself,
    Total,
}

/// Unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Percent of what the function was before.
    Percent,
    /// Percent of everything.
    Points,
    /// Milliseconds for each second.
    Milliseconds,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a condition such as 'self(parse_*) > +2%', 'total(main) > +1 point', 'any > +1 point' or, with --absolute or of \
     waits, 'any > +5 ms'; {0}"
)]
pub struct ParseError(&'static str);

/// Result of checking a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Which.
    pub outcome: Outcome,
    /// Why, as a sentence without a full stop.
    pub reason: String,
}

/// Whether a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is not.
    NotMet,
    /// The recordings do not say.
    CannotTell,
    /// It is.
    Met,
}

impl Outcome {
    /// As readers see it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotMet => "not met",
            Self::CannotTell => "cannot tell",
            Self::Met => "met",
        }
    }

    /// The exit code of the process.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::NotMet => 0,
            Self::Met => 3,
            Self::CannotTell => 4,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        // A name may hold either sign.
        let at = text.rfind(") ").map_or(0, |at| at + 1);
        let is_sign = |c: char| c == '>' || c == '<';
        let at = text[at..].find(is_sign).map(|found| at + found);
        let at = at.or_else(|| text.rfind(is_sign));
        let at = at.ok_or(ParseError("there is no > or < in it"))?;
        let (subject, limit) = (text[..at].trim(), text[at + 1..].trim());
        let (number, unit) = unit(limit)?;
        let number: f64 = number
            .trim()
            .parse()
            .map_err(|_| ParseError("the limit is no number"))?;
        let is_more = text[at..].starts_with('>');
        if !number.is_finite() || number == 0.0 {
            return Err(ParseError(
                "give a limit other than 0: any change is larger than 0 or not seen",
            ));
        }
        if is_more != (number > 0.0) {
            return Err(ParseError(
                "what grows is above +limit, what shrinks is below -limit",
            ));
        }
        Ok(Self {
            text: text.trim().to_owned(),
            subject: self::subject(subject)?,
            limit: number,
            unit,
        })
    }

    /// Whether a comparison meets it.
    pub fn of(&self, comparison: &Comparison) -> Answer {
        let cannot_tell = |reason: String| Answer {
            outcome: Outcome::CannotTell,
            reason,
        };
        if !comparison.claims {
            return cannot_tell(
                "the inputs do not say how much they vary; record with -o NAME.fbpf for a second or more, or give \
                 --assume-independent, which takes samples for independent"
                    .to_owned(),
            );
        }
        let is_share = comparison.quantity == Quantity::Share;
        match self.unit {
            Unit::Points if !is_share => {
                return cannot_tell(
                    "times are compared here, not shares; give the limit in % or ms".to_owned(),
                );
            }
            Unit::Milliseconds if comparison.quantity != Quantity::Time => {
                return cannot_tell(
                    "no times are compared here; give the limit in % or points, or --absolute"
                        .to_owned(),
                );
            }
            _ => {}
        }
        let mut answers: Vec<Answer> = Vec::new();
        for function in &comparison.functions {
            for change in self.changes(function) {
                answers.push(self.answer(&function.name, change, comparison.quantity));
            }
        }
        let worst = answers.iter().map(|answer| answer.outcome).max();
        let Some(worst) = worst else {
            return cannot_tell("no function has such a name, before or after".to_owned());
        };
        let tested = answers.len();
        let mut reasons = answers.into_iter().filter(|answer| answer.outcome == worst);
        let first = reasons
            .next()
            .map_or_else(String::new, |answer| answer.reason);
        let others = reasons.count();
        let reason = match (worst, others) {
            (Outcome::NotMet, 0) | (_, 0) => first,
            (Outcome::NotMet, _) => format!("of {tested} changes none is beyond it"),
            (_, others) => format!("{first}; and {others} more"),
        };
        Answer {
            outcome: worst,
            reason,
        }
    }

    /// The changes of a function that it is about.
    fn changes<'a>(&self, function: &'a Function) -> Vec<&'a Change> {
        match &self.subject {
            None => vec![&function.itself, &function.total],
            Some(subject) if !glob(&subject.pattern, &function.name) => Vec::new(),
            Some(subject) => match subject.part {
                Part::Itself => vec![&function.itself],
                Part::Total => vec![&function.total],
            },
        }
    }

    fn answer(&self, name: &str, change: &Change, quantity: Quantity) -> Answer {
        let before = change.estimate.values[0];
        // In what the limit is in, and towards its side.
        let in_unit = |value: f64| match self.unit {
            Unit::Percent if before > 0.0 => value / before * 100.0,
            Unit::Percent => match value == 0.0 {
                true => 0.0,
                false => f64::INFINITY.copysign(value),
            },
            Unit::Points => value * 100.0,
            // Of nanoseconds for each second.
            Unit::Milliseconds => value / 1e6,
        };
        let side = self.limit.signum();
        let limit = self.limit.abs();
        let moved = in_unit(change.estimate.change()) * side;
        let is_sure = change.verdict.is_change()
            && change.interval().is_some_and(
                |[low, high]| {
                    if side > 0.0 { low > 0.0 } else { high < 0.0 }
                },
            );
        let visible = change.visible().map_or(f64::INFINITY, in_unit);
        let shown = |value: f64| self.shown(value * side);
        let verdict = |outcome, reason| Answer { outcome, reason };
        // Conditions on `any` are about changed costs, not about another name of the same cost.
        if self.subject.is_none() && change.verdict == Verdict::Shift {
            let partner = change.partner.as_deref().unwrap_or("another function");
            let reason = format!("the cost of {name} moved between it and {partner}");
            return verdict(Outcome::NotMet, reason);
        }
        debug_assert!(quantity == Quantity::Share || self.unit != Unit::Points);
        if moved > limit && is_sure {
            let reason = format!("{name} changed by {}, which is no noise", shown(moved));
            return verdict(Outcome::Met, reason);
        }
        if moved > limit {
            let reason = format!(
                "{name} seems to have changed by {}, which may be noise: below {} nothing is seen; record for longer",
                shown(moved),
                self.shown(visible).trim_start_matches(['+', '-'])
            );
            return verdict(Outcome::CannotTell, reason);
        }
        if visible > limit {
            let reason = format!(
                "a change of {name} by {} would not be seen in these recordings, only one beyond {}; record for longer",
                self.shown(self.limit),
                shown(visible)
            );
            return verdict(Outcome::CannotTell, reason);
        }
        verdict(
            Outcome::NotMet,
            format!("{name} changed by {}", shown(moved)),
        )
    }

    /// A change in what the limit is in.
    fn shown(&self, value: f64) -> String {
        if value.is_infinite() {
            return "something new".to_owned();
        }
        let value = format!("{value:+.2}");
        match self.unit {
            Unit::Percent => format!("{value}%"),
            Unit::Points => format!("{value} points"),
            Unit::Milliseconds => format!("{value} ms/s"),
        }
    }
}

fn unit(limit: &str) -> Result<(&str, Unit), ParseError> {
    let units = [
        ("%", Unit::Percent),
        ("points", Unit::Points),
        ("point", Unit::Points),
        ("ms/s", Unit::Milliseconds),
        ("ms", Unit::Milliseconds),
    ];
    let found = units
        .iter()
        .find_map(|(name, unit)| Some((limit.strip_suffix(name)?, *unit)));
    found.ok_or(ParseError(
        "end the limit in % (of what it was), point (percent of everything) or ms (for each second)",
    ))
}

fn subject(text: &str) -> Result<Option<Subject>, ParseError> {
    if text == "any" {
        return Ok(None);
    }
    let parts = [("self(", Part::Itself), ("total(", Part::Total)];
    let found = parts.iter().find_map(|(name, part)| {
        let pattern = text.strip_prefix(name)?.strip_suffix(')')?;
        (!pattern.is_empty()).then(|| Subject {
            part: *part,
            pattern: pattern.to_owned(),
        })
    });
    found
        .map(Some)
        .ok_or(ParseError("begin it with self(NAME), total(NAME) or any"))
}

/// Whether all of a name is as the pattern says.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    p = *at + 1;
                    n = *taken;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn conditions_are_read() {
        let read = |text: &str| Condition::parse(text).expect("a condition");
        let both = read("self(parse_*) > +2%");
        assert_eq!(both.limit, 2.0);
        assert_eq!(both.unit, Unit::Percent);
        assert_eq!(
            both.subject.map(|subject| subject.pattern).as_deref(),
            Some("parse_*")
        );
        let points = read("total(std::vector<int>::push_back(int const&)) < -1.5 points");
        assert_eq!((points.limit, points.unit), (-1.5, Unit::Points));
        let pattern = points.subject.map(|subject| subject.pattern);
        assert_eq!(
            pattern.as_deref(),
            Some("std::vector<int>::push_back(int const&)")
        );
        let arrow = read("self(a->b) > 1 point");
        assert_eq!(
            arrow.subject.map(|subject| subject.pattern).as_deref(),
            Some("a->b")
        );
        assert_eq!(read("any>+1point").subject, None);
        assert_eq!(read("any > +5 ms").unit, Unit::Milliseconds);
        for text in [
            "",
            "any",
            "any > 1",
            "any > 0%",
            "any > -1%",
            "any < 1%",
            "self() > 1%",
            "parse > 1%",
            "self(a > 1%",
            "any > x%",
            "any > inf%",
            "any > NaN%",
        ] {
            assert!(Condition::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_are_of_whole_names() {
        for (pattern, name, is_one) in [
            ("parse_*", "parse_value", true),
            ("parse_*", "reparse_value", false),
            ("*parse*", "reparse_value", true),
            ("p?rse", "parse", true),
            ("p?rse", "prse", false),
            ("*a*b*c", "xxaybzc", true),
            ("*a*b*c", "xxaybz", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(glob(pattern, name), is_one, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_condition_or_an_error(text in "(any|self|total|\\(|\\)|[a-z*<>?]|[-+]|[0-9]|%|point|ms| ){0,9}") {
            if let Ok(condition) = Condition::parse(&text) {
                prop_assert!(condition.limit != 0.0);
            }
        }
    }
}
