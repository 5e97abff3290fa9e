//! PHP 8.1 to 8.4 without thread safety: `zend_execute_data`s.
//!
//! `executor_globals` holds the innermost frame, and each frame its caller. Frames are those of functions written in PHP and
//! of functions written in C alike. Each call of the interpreter's loop, `execute_ex`, is one level, whose outermost frame is
//! marked `ZEND_CALL_TOP`. The loop may have unlinked its frame and still run, to free what the function leaves, so which
//! level a native frame runs is also checked by the registers in which the loop keeps its frame and its instruction.
//!
//! Sources: `Zend/zend_compile.h`, `Zend/zend_types.h`, `Zend/zend_globals.h`, `Zend/zend_vm_def.h` and
//! `Zend/zend_vm_gen.php` of each version.

mod chain;
mod function;
mod layout;
mod level;

pub use layout::{CURRENT_EXECUTE_DATA, at};

use super::{Begin, ChainFrame, Cursor, Described, NativeFrame, Process, Runtime, Strings};

/// PHP.
#[derive(Clone, Copy, Debug)]
pub struct Php;

impl Runtime for Php {
    const MAKES_CODE: bool = true;

    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, _: &NativeFrame) -> Begin {
        chain::begin(process, cursor)
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        file.is_within(at::LOOP, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        level::is_level(process, cursor, native)
    }

    /// The position is the line.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        chain::step(process, cursor)
    }

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        let function = function::Function::read(process, function)?;
        function.check(process, function::mark_of(process, function.file)?)
    }

    /// `extra` is 1 of a function written in C, which has no file, else zero.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        function::Function::read(process, function)?.strings(process)
    }
}

#[cfg(test)]
mod tests;
