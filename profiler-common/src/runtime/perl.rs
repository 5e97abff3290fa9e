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

/// perl 5.
#[derive(Clone, Copy, Debug)]
pub struct Perl;

#[cfg(test)]
mod tests;
