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

use super::{Begin, ChainFrame, Cursor, Described, NativeFrame, Piece, Process, Runtime, Strings};

/// Ruby.
#[derive(Clone, Copy, Debug)]
pub struct Ruby;

impl Runtime for Ruby {
    const MAKES_CODE: bool = true;
    const OWN_FRAME: Option<usize> = Some(chain::word::SHOWN);

    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, _: &NativeFrame) -> Begin {
        chain::begin(process, cursor)
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        file.is_within(at::LOOP, address) || file.is_within(at::EXECUTE, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        level::is_level(process, cursor, native)
    }

    /// The function is an `rb_iseq_constant_body`, the position the number of a word of its code.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        chain::step(process, cursor)
    }

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        iseq::check(process, function)
    }

    /// `extra` is zero.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        iseq::strings(process, function)
    }

    /// The path of a method's class or module, and 1 if the method is one of the class itself.
    #[inline(always)]
    fn owner(process: &impl Process, function: u64, own_frame: u64) -> Option<(Piece, u64)> {
        owner::owner(process, function, own_frame)
    }
}

#[cfg(test)]
mod tests;
