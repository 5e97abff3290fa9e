//! Runtimes as they are compiled for x86-64: which registers and instructions their code uses, and where threads have values of
//! their own.
//!
//! Registers are numbered as in DWARF (System V ABI, AMD64 supplement, figure 3.36). One module for each runtime that keeps something
//! in a register; another machine has modules of the same names with the same functions.

pub(super) mod hotspot;
pub(super) mod lua;
pub(super) mod luajit;
pub(super) mod php;
pub(super) mod ruby;
pub(super) mod thread;
pub(super) mod v8;
