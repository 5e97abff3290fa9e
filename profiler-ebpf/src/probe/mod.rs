//! One file per probe: what triggers a sample, and what its weight is.

pub(crate) mod on_cpu;
