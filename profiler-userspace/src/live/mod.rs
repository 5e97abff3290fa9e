//! The live view: where time goes, on a terminal, while a recording goes on.
//!
//! In: profiles of windows as other outputs would show them; keys. Out: a screen of cells, and what is seen as a profile.
//! [`Top`] is all of it but the terminal: what was counted is in `calls`, what of it is wanted in `shape`, and where frames
//! stand in `flame`. [`Terminal`] is the other half.

mod accumulated;
mod calls;
mod canvas;
mod cells;
mod flame;
mod functions;
mod help;
mod input;
mod keys;
mod label;
#[cfg(test)]
mod laws;
mod mouse;
mod numbers;
mod processes;
mod save;
mod screen;
mod search;
mod shape;
mod state;
mod tables;
mod terminal;
mod theme;
mod top;
mod tree;

pub use input::{Event, obey};
pub use screen::draw;
pub use terminal::{Input, NAMING_THREAD, Terminal};
pub use theme::{Colors, Theme};
pub use top::{Action, Channel, Status, Top, Update};
