//! Names and numbers as people read them, wherever they do.
//!
//! In: names, numbers, columns. Out: text. Never knows what is printed, or where.

pub(crate) mod label;
pub(crate) mod lines;
pub(crate) mod number;
