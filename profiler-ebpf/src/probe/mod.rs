//! One file per probe: what triggers a sample, and what its weight is. Two more have what several probes share: a firing that
//! is [`instant`], and one that is [`timed`].

pub(crate) mod alloc;
pub(crate) mod instant;
pub(crate) mod lock;
pub(crate) mod off_cpu;
pub(crate) mod on_cpu;
pub(crate) mod page_in;
pub(crate) mod syscall;
pub(crate) mod task_iter;
pub(crate) mod timed;
pub(crate) mod tracepoint;
pub(crate) mod uprobe;
pub(crate) mod wait_sampling;
pub(crate) mod waker;
pub(crate) mod wall;
