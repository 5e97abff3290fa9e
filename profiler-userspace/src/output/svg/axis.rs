//! What stands below the frames of a flame chart: how much was counted when, and times.
//!
//! In: windows. Out: markup. `script/axis.js` draws the same for a zoom.

use super::chart::{Chart, Span};
use super::pixels::Pixels;
use crate::output::style::MARGIN;
use std::fmt::Write as _;

/// The height of the highest bar, and of everything.
const BARS: f64 = 20.0;
const HEIGHT: f64 = 38.0;
/// So much room a time has.
const ROOM: f64 = 90.0;
const BAR: &str = r##"fill="#8a8f98""##;
const INK: &str = r##"fill="#1b1b1b" style="fill:light-dark(#1b1b1b,#e8e8e8)""##;

/// Draws them from `top` on, and returns how high that is.
pub(super) fn draw(chart: &Chart, width: f64, top: f64, body: &mut String) -> f64 {
    let inner = width - 2.0 * f64::from(MARGIN);
    let end = chart.windows.last().map_or(1, |span| span.end);
    let place = |time: f64| f64::from(MARGIN) + time * inner / end as f64;
    let rate = |span: &Span| span.weight as f64 / (span.end - span.start) as f64;
    let most = chart.windows.iter().map(rate).fold(0.0, f64::max);
    let _ = write!(body, r#"<path {BAR} d=""#);
    for span in chart.windows.iter().filter(|span| span.weight > 0) {
        let (left, right) = (place(span.start as f64), place(span.end as f64));
        let high = rate(span) / most * BARS;
        let _ = write!(
            body,
            "M{} {}h{}v{}h-{}z",
            Pixels(left),
            Pixels(top + BARS - high),
            Pixels(right - left),
            Pixels(high),
            Pixels(right - left),
        );
    }
    body.push_str(r#""/>"#);
    let step = step(end, inner);
    let _ = write!(
        body,
        r#"<g font-family="monospace" font-size="12" text-anchor="middle" {INK}>"#
    );
    let mut time = 0.0;
    while time <= end as f64 {
        let x =
            Pixels(place(time).clamp(f64::from(MARGIN) + 20.0, width - f64::from(MARGIN) - 20.0));
        let seconds = (time / 1e3).round() / 1e6;
        let _ = write!(
            body,
            r#"<text x="{x}" y="{}">{seconds} s</text>"#,
            Pixels(top + BARS + 13.0)
        );
        time += step;
    }
    body.push_str("</g>");
    HEIGHT
}

/// The step between times that are written, in nanoseconds: 1, 2 or 5 of some power of ten, such that there is room.
fn step(end: u64, inner: f64) -> f64 {
    let least = end as f64 * ROOM / inner;
    let power = 10_f64.powf(least.log10().floor());
    let digit = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|digit| digit * power >= least);
    (digit.unwrap_or(10.0) * power).max(1.0)
}

/// A time since the first window began.
pub(super) fn clock(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_round_steps_with_room_for_each() {
        for (end, inner, expected) in [
            (10_000_000_000, 1180.0, 1e9),
            (10_000_000_000, 370.0, 5e9),
            (2_340_000_000, 1180.0, 2e8),
            (1, 1180.0, 1.0),
        ] {
            assert_eq!(step(end, inner), expected, "{end}");
        }
        assert_eq!(clock(1_234_567_890), "1.235 s");
    }
}
