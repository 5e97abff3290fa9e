//! Code of x86-64: what its instructions and their conventions say.
//!
//! In: bytes of code. Out: what the files beside this one, which know no instruction, ask of them. Each module here answers the file
//! of its name; another machine has modules of the same names with the same functions.

pub(super) mod context;
pub(super) mod jumps;
pub(super) mod linkage;
pub(super) mod listing;
pub(super) mod padding;
pub(super) mod references;
pub(super) mod signs;
pub(super) mod start;
