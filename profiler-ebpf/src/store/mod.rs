//! Where stacks, tallies and thread entries are kept between a firing and the drain.

pub(crate) mod index;
pub(crate) mod stacks;
pub(crate) mod tallies;
pub(crate) mod threads;
