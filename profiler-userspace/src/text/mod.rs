//! Names and numbers as people read them, wherever they do.
//!
//! In: names, numbers, columns. Out: text. Never prints.

pub(crate) mod color;
pub(crate) mod label;
pub(crate) mod lines;
pub(crate) mod number;
pub(crate) mod terminal;
pub(crate) mod visible;
