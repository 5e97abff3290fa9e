//! Ruby 3.1 to 3.3: `rb_control_frame_t`s.
//!
//! Each thread has a variable `ruby_current_ec`, which leads to the stack of frames of the fiber that it runs. Functions
//! written in C have frames too, which are passed: they are native frames. Each call of `rb_vm_exec` is one level, whose
//! outermost frame is marked `VM_FRAME_FLAG_FINISH`. Mostly it runs the interpreter's loop, `vm_exec_core`, which then is the
//! native frame of the level, so that the level stands before both.
//!
//! Sources: `vm_core.h`, `vm.c`, `vm_exec.c`, `vm_insnhelper.c`, `iseq.c`, `include/ruby/internal/core/rstring.h`.

mod chain;
mod iseq;
mod layout;
mod level;
mod owner;

pub use layout::{Access, ClassPath, Length, at};

/// Ruby.
#[derive(Clone, Copy, Debug)]
pub struct Ruby;

#[cfg(test)]
mod tests;
