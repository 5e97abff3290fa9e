//! Events of the terminal.
//!
//! In: keys, clicks, another size. Out: the live view as it is then, and what is left to be done outside of it.

use super::top::{Action, Top};
use super::{keys, mouse};
pub use ratatui::crossterm::event::Event;

/// Obeys what came at a time in milliseconds.
pub fn obey(top: &mut Top, event: &Event, now: u64) -> Action {
    match event {
        Event::Key(key) if key.is_release() => Action::Draw,
        Event::Key(key) => keys::press(top, *key),
        Event::Mouse(event) => mouse::point(top, *event, now),
        Event::Resize(columns, rows) => {
            top.resize(*columns, *rows);
            Action::Redraw
        }
        Event::Paste(text) => keys::paste(top, text),
        Event::FocusGained | Event::FocusLost => Action::Draw,
    }
}
