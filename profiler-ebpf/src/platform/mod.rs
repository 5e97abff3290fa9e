//! Services of the kernel to a program: maps, memory, loops, constants.

pub(crate) mod config;
pub(crate) mod log;
pub(crate) mod loops;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod replacement;
pub(crate) mod subprog;
pub(crate) mod word;
