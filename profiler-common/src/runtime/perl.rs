//! perl 5: context stacks.
//!
//! Each interpreter, one for each thread that runs Perl, or without ithreads one for the process, has stacks of contexts (`PERL_CONTEXT`) in a list (`PERL_SI`), newest
//! first: of subs, evals, loops and blocks. The statement (`COP`) that runs now is the interpreter's, and each context holds
//! the one that ran when it was entered. Each call of the loop, `Perl_runops_standard`, is one level. It ends with a sub that
//! C code called, or with the oldest context of a stack. An `eval` may call the loop again in the midst of a level
//! (`S_docatch`): then what jumps there, a `JMPENV`, lies on the native stack between the two calls.
//!
//! Sources: `cop.h`, `intrpvar.h`, `cv.h`, `gv.h`, `hv.h`, `pp_ctl.c`, `pp_sort.c` and `perl.c` of each version.

mod chain;
mod context;
mod function;
mod layout;

pub use function::OF_FILE;
pub use layout::at;

use super::{Begin, ChainFrame, Cursor, Described, NativeFrame, Process, Runtime, Strings};

/// perl 5.
#[derive(Clone, Copy, Debug)]
pub struct Perl;

impl Runtime for Perl {
    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> Begin {
        chain::begin(process, cursor, native)
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        // Where there is no key, any native frame of perl's tells that it is this thread that runs Perl.
        file.descriptor(at::KEY) == 0 || file.is_within(at::LOOP, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        chain::is_level(process, cursor, native)
    }

    /// The position is the line.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        chain::step(process, cursor)
    }

    #[inline(always)]
    fn check(process: &impl Process, function: u64) -> Option<u32> {
        function::check(process, function)
    }

    /// `extra` is not used.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        function::strings(process, function)
    }
}

#[cfg(test)]
mod tests;
