//! The chain of contexts, and which level a native frame runs.

use super::{
    Perl,
    context::{Context, Stack, place},
    function,
    layout::{MULTICALL, OP, SORT, STATEMENT, at},
};
use crate::runtime::{
    Begin, Chain, ChainFrame, Cursor, Described, FUNCTION_BITS, NativeFrame, Process,
    thread::{self, Libc},
};

/// The words of the cursor.
mod word {
    /// The oldest context of the stack.
    pub(super) const CONTEXTS: usize = 0;
    /// How many contexts of it are left.
    pub(super) const LEFT: usize = 1;
    /// The next older stack; zero if there is none.
    pub(super) const PREVIOUS: usize = 2;
    /// The statement that the next function is at.
    pub(super) const STATEMENT: usize = 3;
    /// Where errors jump to in an eval of the level that was last; zero if there was none.
    pub(super) const TOP_ENV: usize = 4;
    /// The stack pointer of the last native frame of the loop; zero if there was none.
    pub(super) const LOOP_SP: usize = 5;
    /// The operation that runs.
    pub(super) const OP: usize = 6;
    /// Whether a function has been shown.
    pub(super) const SHOWN: usize = 7;
}

/// How many contexts without a function one step passes.
const PASSED: usize = 6;
/// How many stacks and guards may lie between two levels.
const BETWEEN: usize = 6;

impl Chain for Perl {
    #[inline(always)]
    fn begin(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> Begin {
        if process.descriptor(at::KEY) == 0 && native.is_any() {
            // Whether it is this thread that runs Perl is told by a native frame of perl's.
            return Begin::NotHere;
        }
        match try_begin(process, cursor) {
            Some(true) => Begin::Begun,
            _ => Begin::Nothing,
        }
    }

    #[inline(always)]
    fn may_run_level(file: &impl Described, address: u64) -> bool {
        // Where there is no key, any native frame of perl's tells that it is this thread that runs Perl.
        file.descriptor(at::KEY) == 0 || file.is_within(at::LOOP, address)
    }

    #[inline(always)]
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool {
        if !process.is_within(at::LOOP, native.address) {
            return false;
        }
        let last = cursor.get(word::LOOP_SP);
        let env = cursor.get(word::TOP_ENV);
        cursor.set(word::LOOP_SP, native.sp);
        cursor.set(word::TOP_ENV, 0);
        if native.is_first != 0 && cursor.get(word::OP) == 0 {
            // The loop is about to return: its contexts are gone.
            return false;
        }
        // An eval called the loop in the midst of the level that was last.
        !(last < env && env < native.sp)
    }

    /// The position is the line.
    #[inline(always)]
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
        let mut frame = next(process, cursor);
        // Looked at in one place, since the verifier goes through all of it at each.
        let ends = frame.flags & (ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS);
        if ends == ChainFrame::LEVEL_ENDS && !find_level(process, cursor) {
            frame.flags |= ChainFrame::CHAIN_ENDS;
        }
        frame
    }
}

#[inline(always)]
fn try_begin(process: &impl Process, cursor: &impl Cursor) -> Option<bool> {
    let running = Running::read(process)?;
    let runops = running.runops.wrapping_sub(process.bias());
    // An interpreter that has another loop, or none, is not one of the layout that is known.
    if runops != process.descriptor(at::LOOP) && runops != process.descriptor(at::LOOP + 2) {
        return None;
    }
    cursor.set(word::OP, running.op);
    cursor.set(word::STATEMENT, running.statement);
    let stack = Stack::read(process, running.newest)?;
    enter(cursor, &stack);
    // Between two calls of a sub by `sort` and the like, its context is there and does not run.
    if running.op == 0 && (stack.kind == SORT || stack.kind == MULTICALL) && stack.count != 0 {
        let oldest = Context::read(process, stack.contexts, 0)?;
        cursor.set(word::STATEMENT, oldest.statement);
        leave_stack(process, cursor)?;
    }
    Some(find_level(process, cursor))
}

/// Running state of an interpreter.
struct Running {
    /// The address of its loop.
    runops: u64,
    /// The operation.
    op: u64,
    statement: u64,
    /// The newest stack.
    newest: u64,
}

impl Running {
    #[inline(always)]
    fn read(process: &impl Process) -> Option<Self> {
        if process.descriptor(at::KEY) == 0 {
            return Some(Self {
                runops: global(process, at::RUNOPS)?,
                op: global(process, at::OP)?,
                statement: global(process, at::STATEMENT)?,
                newest: global(process, at::STACK)?,
            });
        }
        let key = global(process, at::KEY)?;
        let libc = Libc::from_word(process.descriptor(at::LIBC));
        let interpreter = thread::specific(process, libc, key & 0xffff_ffff)?;
        let [runops] = process.read(interpreter.wrapping_add(process.descriptor(at::RUNOPS)))?;
        let [op] = process.read(interpreter.wrapping_add(OP))?;
        let [statement, _, newest] = process.read(interpreter.wrapping_add(STATEMENT))?;
        Some(Self {
            runops,
            op,
            statement,
            newest,
        })
    }
}

/// A variable of the object's, whose address a word of the descriptor is.
#[inline(always)]
fn global(process: &impl Process, word: usize) -> Option<u64> {
    let [value] = process.read(process.bias().wrapping_add(process.descriptor(word)))?;
    Some(value)
}

/// Sets the cursor to the newest context of a stack.
#[inline(always)]
fn enter(cursor: &impl Cursor, stack: &Stack) {
    cursor.set(word::CONTEXTS, stack.contexts);
    cursor.set(word::LEFT, stack.count);
    cursor.set(word::PREVIOUS, stack.previous);
}

/// Sets the cursor to the next older stack; none if there is none.
#[inline(always)]
fn leave_stack(process: &impl Process, cursor: &impl Cursor) -> Option<()> {
    let previous = cursor.get(word::PREVIOUS);
    if previous == 0 {
        return None;
    }
    enter(cursor, &Stack::read(process, previous)?);
    Some(())
}

/// Whether a level comes next. Passes what lies between two levels. The main program of a thread, or of what runs before and
/// after the main program, is none.
#[inline(always)]
fn find_level(process: &impl Process, cursor: &impl Cursor) -> bool {
    for _ in 0..BETWEEN {
        let left = cursor.get(word::LEFT);
        if left == 0 {
            if leave_stack(process, cursor).is_none() {
                return false;
            }
            continue;
        }
        let contexts = cursor.get(word::CONTEXTS);
        match Context::read(process, contexts, left.wrapping_sub(1)) {
            Some(context) if context.is_guard() => {
                // Errors in the sub jump to the guard's caller, so no eval in it has called the loop.
                cursor.set(word::TOP_ENV, 0);
                cursor.set(word::LEFT, left.wrapping_sub(1));
            }
            _ => return true,
        }
    }
    true
}

/// The next frame. At the end of a level, whether another comes next is not looked at.
#[inline(always)]
fn next(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
    let mut found = NextContext::Nothing;
    // The result is handled behind the loop: the verifier goes through a loop's body at each turn.
    for _ in 0..PASSED {
        found = pass(process, cursor);
        if found != NextContext::Nothing {
            break;
        }
    }
    match found {
        NextContext::Nothing => ChainFrame::none(0),
        NextContext::EndOfStack => end_of_stack(process, cursor),
        NextContext::Broken => ChainFrame::broken(),
        NextContext::Function => {
            let context = Context::fetched(process);
            if context.is_sub() {
                sub(process, cursor, &context)
            } else {
                code(process, cursor, &context)
            }
        }
        NextContext::EndOfLevel => ChainFrame::none(ChainFrame::LEVEL_ENDS),
    }
}

/// Kind of the next context.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum NextContext {
    /// One without a function.
    Nothing,
    /// There is none: the stack ends.
    EndOfStack,
    /// It cannot be read.
    Broken,
    /// That of a function, which was fetched.
    Function,
    /// That of a block for which the loop was called.
    EndOfLevel,
}

/// Passes the next context.
#[inline(always)]
fn pass(process: &impl Process, cursor: &impl Cursor) -> NextContext {
    let left = cursor.get(word::LEFT);
    if left == 0 {
        return NextContext::EndOfStack;
    }
    let left = left.wrapping_sub(1);
    cursor.set(word::LEFT, left);
    let Some(context) = Context::read(process, cursor.get(word::CONTEXTS), left) else {
        return NextContext::Broken;
    };
    if context.is_sub() {
        return NextContext::Function;
    }
    if context.is_eval() {
        if !context.is_called_from_c() {
            cursor.set(word::TOP_ENV, context.top_env);
        }
        if !context.is_block() {
            return NextContext::Function;
        }
    }
    if left == 0 && cursor.get(word::PREVIOUS) != 0 && !context.is_substitution() {
        cursor.set(word::STATEMENT, context.statement);
    }
    if context.is_deferred() {
        return NextContext::EndOfLevel;
    }
    NextContext::Nothing
}

/// The code of the main program's file, at the end of the oldest stack; otherwise the level only ends.
#[inline(always)]
fn end_of_stack(process: &impl Process, cursor: &impl Cursor) -> ChainFrame {
    if cursor.get(word::PREVIOUS) != 0 {
        return match leave_stack(process, cursor) {
            Some(()) => ChainFrame::none(ChainFrame::LEVEL_ENDS),
            None => ChainFrame::broken(),
        };
    }
    let statement = cursor.get(word::STATEMENT);
    file(
        process,
        statement,
        ChainFrame::LEVEL_ENDS | ChainFrame::CHAIN_ENDS,
    )
}

/// A sub.
#[inline(always)]
fn sub(process: &impl Process, cursor: &impl Cursor, context: &Context) -> ChainFrame {
    let statement = cursor.get(word::STATEMENT);
    let is_newest = cursor.get(word::SHOWN) == 0;
    cursor.set(word::SHOWN, 1);
    cursor.set(word::STATEMENT, context.statement);
    let address = context.sub & FUNCTION_BITS;
    let check = function::check_of_sub(process, address);
    let is_shown = check.is_some() && !context.is_fake();
    if check.is_none() && !is_newest {
        return ChainFrame::broken();
    }
    // The newest context may have been counted before it was filled.
    let ends = if check.is_some() && ends_level(process, cursor, context) {
        ChainFrame::LEVEL_ENDS
    } else {
        0
    };
    if !is_shown {
        return ChainFrame::none(ends);
    }
    ChainFrame {
        function: address,
        check: check.unwrap_or(0),
        position: place(process, statement).map_or(0, |(line, _)| line),
        flags: ends | ChainFrame::FRAME,
    }
}

/// Whether a sub's context, behind which the cursor is, is the last of its level: C code called it. So it also looks where the
/// call is the last operation of a block that C code runs, whose own context is the next then.
#[inline(always)]
fn ends_level(process: &impl Process, cursor: &impl Cursor, context: &Context) -> bool {
    let left = cursor.get(word::LEFT);
    if !context.is_called_from_c() {
        return false;
    }
    if context.is_fake() || left == 0 {
        return true;
    }
    match Context::read(process, cursor.get(word::CONTEXTS), left.wrapping_sub(1)) {
        Some(next) => !next.is_base(left == 1),
        None => true,
    }
}

/// The code of a file that was required, or of a string.
#[inline(always)]
fn code(process: &impl Process, cursor: &impl Cursor, context: &Context) -> ChainFrame {
    let statement = cursor.get(word::STATEMENT);
    cursor.set(word::STATEMENT, context.statement);
    cursor.set(word::SHOWN, 1);
    let ends = if context.is_called_from_c() {
        ChainFrame::LEVEL_ENDS
    } else {
        0
    };
    if statement == context.statement {
        // None of its statements runs yet, so its file cannot be told.
        return ChainFrame::none(ends);
    }
    file(process, statement, ends)
}

/// The code of the file that a statement is in.
#[inline(always)]
fn file(process: &impl Process, statement: u64, flags: u32) -> ChainFrame {
    let Some((line, file)) = place(process, statement) else {
        return ChainFrame::none(flags);
    };
    let file = function::name_of_file(process, file);
    match function::check_of_file(process, file) {
        Some(check) if file != 0 => ChainFrame {
            function: function::key_of_file(file),
            check,
            position: line,
            flags: flags | ChainFrame::FRAME,
        },
        _ => ChainFrame::none(flags),
    }
}
