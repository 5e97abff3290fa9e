//! Destinations of a recording's windows, each a [`WindowSink`](super::window::WindowSink).

pub(crate) mod files;
pub(crate) mod growing;
pub(crate) mod screen;
pub(crate) mod sent;
mod shared;
mod stored;

use crate::report;

/// Tells the user something while recording goes on.
fn say(sentence: &str) {
    report::print(&format!("flame-bpf: {sentence}\n"));
}
