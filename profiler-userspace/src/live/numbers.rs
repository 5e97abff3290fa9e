//! Numbers as people read them, in few columns.

use crate::profile::Unit;

/// A weight with its unit: `1,234 samples`, `12.345 s`.
pub(super) fn weight(unit: &Unit, weight: f64) -> String {
    match unit {
        Unit::Nanoseconds => format!("{:.3} s", weight / 1e9),
        counted => format!("{} {}", grouped(weight.round() as u64), counted.noun()),
    }
}

/// A number with its thousands grouped.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A share in six columns. What was counted at all is never `0.0%`, and what was not is blank.
pub(super) fn percent(part: f64, all: f64) -> String {
    if part <= 0.0 {
        return " ".repeat(6);
    }
    let share = part * 100.0 / all.max(f64::MIN_POSITIVE);
    match share < 0.05 {
        true => " <0.1%".to_owned(),
        false => format!("{:>6}", format!("{share:.1}%")),
    }
}
