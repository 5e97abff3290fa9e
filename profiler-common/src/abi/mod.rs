//! The types that cross the boundary between kernel and user space.

mod stack;

pub use stack::{MAX_KERNEL_FRAMES, MAX_USER_FRAMES, StackEnd};
