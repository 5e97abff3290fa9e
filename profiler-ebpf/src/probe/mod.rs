//! One file per probe: what triggers a sample, and what its weight is.

pub(crate) mod allocation;
pub(crate) mod asleep;
pub(crate) mod call;
pub(crate) mod fault;
pub(crate) mod lock;
pub(crate) mod off_cpu;
pub(crate) mod on_cpu;
pub(crate) mod passing;
pub(crate) mod wake;
pub(crate) mod wall;
