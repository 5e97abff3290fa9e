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

/// PHP.
#[derive(Clone, Copy, Debug)]
pub struct Php;

#[cfg(test)]
mod tests;
