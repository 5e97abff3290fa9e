//! Contexts, one by one.

use super::layout::{BLOCK, CONTEXT_BYTES, COP_LINE, FAKE, MAIN, MAX_STACK_TYPE, context};
use crate::runtime::Process;

/// A stack of contexts, a `PERL_SI`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    /// The oldest context.
    pub(super) contexts: u64,
    /// How many there are.
    pub(super) count: u64,
    /// The next older stack; zero if there is none.
    pub(super) previous: u64,
    pub(super) kind: u64,
}

impl Stack {
    /// The stack at an address; none if there is none that makes sense.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, address: u64) -> Option<Self> {
        let [_, contexts, previous, _, indexes, kind] = process.read(address)?;
        // `si_cxix` is -1 of an empty stack.
        let count = (indexes as u32).wrapping_add(1);
        let most = (indexes >> 32) as u32;
        let kind = kind >> 32;
        let is_sane = most < 1 << 24 && count <= most.wrapping_add(1) && kind <= MAX_STACK_TYPE;
        is_sane.then_some(Self {
            contexts,
            count: u64::from(count),
            previous: if kind == MAIN { 0 } else { previous },
            kind,
        })
    }
}

/// A context (`PERL_CONTEXT`), as far as it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    kind: u64,
    /// The statement that ran when it was entered.
    pub(super) statement: u64,
    /// The operation to go on with behind it; zero if C code called it.
    returns_to: u64,
    /// Of a sub: a `CV`.
    pub(super) sub: u64,
    /// Of an eval: where errors jumped to when it was entered, or to the eval itself if it called the loop, a `JMPENV`.
    pub(super) top_env: u64,
}

impl Context {
    /// One of a stack.
    #[inline(always)]
    pub(super) fn read(process: &impl Process, contexts: u64, index: u64) -> Option<Self> {
        let address = contexts.wrapping_add(index.wrapping_mul(CONTEXT_BYTES));
        if !process.fetch(address, CONTEXT_BYTES) {
            return None;
        }
        Some(Self::fetched(process))
    }

    /// The one that was fetched last.
    #[inline(always)]
    pub(super) fn fetched(process: &impl Process) -> Self {
        Self {
            kind: process.fetched(context::KIND) & 0xff,
            statement: process.fetched(context::STATEMENT),
            returns_to: process.fetched(context::RETURNS_TO),
            sub: process.fetched(context::SUB),
            top_env: process.fetched(context::TOP_ENV),
        }
    }

    #[inline(always)]
    const fn is(&self, kind: u64) -> bool {
        self.kind & 15 == kind
    }

    /// Of a sub, or a format.
    #[inline(always)]
    pub(super) const fn is_sub(&self) -> bool {
        self.is(9) || self.is(10)
    }

    /// Of the code of a pattern, in the sub that runs already.
    #[inline(always)]
    pub(super) const fn is_fake(&self) -> bool {
        self.kind & FAKE != 0
    }

    /// Of `eval`, in either way, or of `require` and the like.
    #[inline(always)]
    pub(super) const fn is_eval(&self) -> bool {
        self.is(11)
    }

    /// Of a block in the function that runs already, rather than of code of its own.
    #[inline(always)]
    pub(super) const fn is_block(&self) -> bool {
        self.kind & BLOCK != 0
    }

    /// Of a `defer` block, for which the loop is called.
    #[inline(always)]
    pub(super) const fn is_deferred(&self) -> bool {
        self.is(13)
    }

    /// Whether it is that of a substitution, which has other fields and holds no statement.
    #[inline(always)]
    pub(super) const fn is_substitution(&self) -> bool {
        self.is(12)
    }

    /// Whether C code called it.
    #[inline(always)]
    pub(super) const fn is_called_from_c(&self) -> bool {
        self.returns_to == 0
    }

    /// Whether it is of a block that C code runs: of `sort`, which is the `oldest` of a stack, of a pattern, or a `defer` block.
    #[inline(always)]
    pub(super) const fn is_base(&self, oldest: bool) -> bool {
        (self.is(0) && oldest) || (self.is_sub() && self.is_fake()) || self.is_deferred()
    }

    /// Whether it is the guard that `call_sv` puts around a sub that may die (`G_EVAL`).
    #[inline(always)]
    pub(super) const fn is_guard(&self) -> bool {
        self.is_eval() && self.is_block() && self.is_called_from_c()
    }
}

/// Line and file of a statement, as it has them; none if there is no statement.
#[inline(always)]
pub(super) fn place(process: &impl Process, statement: u64) -> Option<(u32, u64)> {
    if statement == 0 {
        return None;
    }
    let [line, _, file] = process.read(statement.wrapping_add(COP_LINE))?;
    Some(((line >> 32) as u32, file))
}
