//! Numbers as people read them, in few columns.

use crate::profile::Unit;
use crate::text::number::{amount, share};

/// A weight with its unit: `1,234 samples`, `12.3 s`.
pub(super) fn weight(unit: &Unit, weight: f64) -> String {
    amount(unit.shown(weight.round() as u64), unit.noun())
}

/// A share in six columns; what was not counted is blank.
pub(super) fn percent(part: f64, all: f64) -> String {
    match part > 0.0 {
        true => format!("{:>6}", share(part, all)),
        false => " ".repeat(6),
    }
}
