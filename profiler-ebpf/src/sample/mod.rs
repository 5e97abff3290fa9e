//! Who is sampled, and whether; and the counters of what became of it.

pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod filter;
