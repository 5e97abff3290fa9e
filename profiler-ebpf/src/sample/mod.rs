//! Samples: the task, whether it is wanted, and the counters of each outcome.

pub(crate) mod cgroup;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod filter;
pub(crate) mod scratch;
