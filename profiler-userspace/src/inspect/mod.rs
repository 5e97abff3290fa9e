//! Sub-commands that show what flame-bpf makes of one object file.
//!
//! In: a file. Out: text. Never touches the kernel half.

mod names;
mod unwind;

pub use names::names;
pub use unwind::unwind;
