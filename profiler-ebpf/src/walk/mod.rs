//! From a task to its stacks: what is mapped at an address, which rule holds there, where the caller is.

pub(crate) mod code_cache;
pub(crate) mod code_index;
pub(crate) mod frame_pointers;
mod guess;
mod innermost;
pub(crate) mod kernel;
mod known_functions;
pub(crate) mod kstack_cache;
pub(crate) mod kstack_scratch;
pub(crate) mod mappings;
mod own_frames;
mod return_rules;
pub(crate) mod rules;
pub(crate) mod runtime;
pub(crate) mod scratch;
pub(crate) mod stack_memory;
pub(crate) mod user;
