//! Where stacks, tallies and what is kept of threads lie between a firing and the drain.

pub(crate) mod index;
pub(crate) mod stacks;
pub(crate) mod tallies;
pub(crate) mod threads;
