//! One file per probe: what triggers a sample, and what its weight is.

pub(crate) mod alloc;
pub(crate) mod lock;
pub(crate) mod off_cpu;
pub(crate) mod on_cpu;
pub(crate) mod page_in;
pub(crate) mod passing;
pub(crate) mod syscall;
pub(crate) mod task_iter;
pub(crate) mod timed;
pub(crate) mod waker;
pub(crate) mod wall;
