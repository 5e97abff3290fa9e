//! Destinations of a recording's windows, each a [`WindowSink`](super::window::WindowSink).

pub(crate) mod files;
pub(crate) mod growing;
pub(crate) mod screen;
pub(crate) mod sent;
mod shared;
mod stored;
