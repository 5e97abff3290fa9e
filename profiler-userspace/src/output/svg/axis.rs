//! Axis below the frames of a flame chart: how much was counted when, and times.
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
    let _ = write!(
        body,
        r#"<g font-family="monospace" font-size="12" text-anchor="middle" {INK}>"#
    );
    for time in times(chart, inner / end as f64) {
        let x = place(time as f64);
        let x = Pixels(x.clamp(f64::from(MARGIN) + 20.0, width - f64::from(MARGIN) - 20.0));
        let y = Pixels(top + BARS + 13.0);
        let _ = write!(body, r#"<text x="{x}" y="{y}">{}</text>"#, seconds(time));
    }
    body.push_str("</g>");
    HEIGHT
}

/// The times that are written: where windows begin and end, such that each has room. Within a window nothing has a time.
fn times(chart: &Chart, scale: f64) -> Vec<u64> {
    let borders = chart.windows.iter().flat_map(|span| [span.start, span.end]);
    let mut times: Vec<u64> = Vec::new();
    for time in borders {
        let has_room = |last: &u64| (time - last) as f64 * scale >= ROOM;
        if times.last().is_none_or(has_room) {
            times.push(time);
        }
    }
    times
}

fn seconds(ns: u64) -> String {
    format!("{:.2} s", ns as f64 / 1e9)
}

/// A time since the first window began.
pub(super) fn clock(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_borders_of_windows_with_room_for_each() {
        let span = |number: u64| Span {
            start: number * 300_000_000,
            end: (number + 1) * 300_000_000,
            weight: 1,
        };
        let chart = Chart {
            own: Vec::new(),
            weights: Vec::new(),
            windows: (0..8).map(span).collect(),
            lanes: Vec::new(),
            resolution: std::time::Duration::from_millis(300),
        };
        let texts = |inner: f64| -> Vec<String> {
            let all = times(&chart, inner / 2_400_000_000.0);
            all.into_iter().map(seconds).collect()
        };
        assert_eq!(
            texts(400.0),
            ["0.00 s", "0.60 s", "1.20 s", "1.80 s", "2.40 s"]
        );
        assert_eq!(texts(240.0), ["0.00 s", "0.90 s", "1.80 s"]);
        assert_eq!(clock(1_234_567_890), "1.235 s");
    }
}
