//! The progress line, on a terminal: elapsed time and samples so far; later, what is being fetched.

use super::health::{grouped, mebibytes};
use crate::debuginfod::Fetched;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;

/// One line on stderr; nothing at all where that is no terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    duration: Option<Duration>,
}

impl Progress {
    /// A line for a recording of the given duration, or of none that is known.
    pub(super) fn new(duration: Option<Duration>, quiet: bool) -> Self {
        let bar = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        };
        let style =
            ProgressStyle::with_template("{spinner} {msg}").expect("the template is well-formed");
        bar.set_style(style);
        Self { bar, duration }
    }

    /// Whether anybody sees it.
    pub(super) fn is_visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Draws the line anew.
    pub(super) fn sampling(&self, elapsed: Duration, samples: u64) {
        let of = match self.duration {
            Some(duration) => format!(" of {}", duration.as_secs_f64()),
            None => String::new(),
        };
        self.bar.set_message(format!(
            "{:.1}{of} s, {} samples; Ctrl-C stops and draws",
            elapsed.as_secs_f64(),
            grouped(samples)
        ));
        self.bar.tick();
    }

    /// Draws the line anew while debug files are fetched.
    pub(super) fn fetching(&self, fetched: &Fetched) {
        self.bar.set_message(format!(
            "fetching debug files: {} so far; a second Ctrl-C gives up",
            mebibytes(fetched.bytes)
        ));
        self.bar.tick();
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
