//! Values and changes as people read them.

use crate::diff::{Comparison, Quantity};

/// A value: a share in percent, milliseconds for each second, or a number for each second.
pub(super) fn value(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Share => format!("{:.1}%", value * 100.0),
        Quantity::Time => format!("{:.1}", value / 1e6),
        Quantity::Rate => compact(value),
    }
}

/// A change of such a value, in points where that is a share.
pub(super) fn change(quantity: Quantity, value: f64) -> String {
    let text = match quantity {
        Quantity::Share => format!("{:+.1}", value * 100.0),
        Quantity::Time => format!("{:+.1}", value / 1e6),
        Quantity::Rate => format!(
            "{}{}",
            if value < 0.0 { "-" } else { "+" },
            compact(value.abs())
        ),
    };
    // Nothing has no sign.
    match text.trim_start_matches(['+', '-', '0', '.']).is_empty() {
        true => text.trim_start_matches(['+', '-']).to_owned(),
        false => text,
    }
}

/// Unit of changes.
pub(super) fn unit(comparison: &Comparison) -> String {
    match comparison.quantity {
        Quantity::Share => "points".to_owned(),
        Quantity::Time => "ms/s".to_owned(),
        Quantity::Rate => format!("{}/s", comparison.unit.noun()),
    }
}

/// A number in a few digits.
fn compact(value: f64) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let step = steps.into_iter().find(|(step, _)| value >= *step);
    match step {
        Some((step, name)) => format!("{:.1}{name}", value / step),
        None => format!("{value:.1}"),
    }
}

/// A time in nanoseconds, in a unit that suits it.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.1} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} µs", ns / 1e3),
    }
}
