//! Runtimes as they are compiled for x86-64: what their instructions say.
//!
//! In: an object's code. Out: what the files beside this one, which know no instruction, ask of it. One module for each runtime that has
//! something to ask; another machine has modules of the same names with the same functions.

pub(super) mod cpython;
pub(super) mod lua;
pub(super) mod luajit;
pub(super) mod perl;
pub(super) mod php;
pub(super) mod ruby;
