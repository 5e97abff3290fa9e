//! The frames of runtimes: how they are found, one file per runtime.
//!
//! In: a [`Process`], which is a process's memory and the descriptor of one of its files. Out: which frames belong in front
//! of which native frame, in numbers only: no strings, no lines. Never: loops (the kernel half's business), memory read in
//! any other way than through [`Process`], a panic. The same code runs in the kernel, in user space, and in tests over
//! recorded memory.
//!
//! There are three doors. A [`CodeOwner`] has frames on the native stack, in code that it made, and a runtime with
//! [`FrameFunction`]s has them in its file's code. An interpreter's frames lie in memory of its own and form a [`Chain`], from the innermost to the outermost. Its *levels* are the parts of it that one native
//! frame runs: the frame of the interpreter's loop. A walk begins the chain once, at the first native frame that lies in
//! the runtime's object, and asks of each such frame whether it is the next level. See `docs/internals/runtimes.md`.

pub mod cpython;
mod fields;
pub mod hotspot;
pub mod lua;
pub mod luajit;
#[cfg(any(test, feature = "recorded"))]
pub mod memory;
pub mod own_frames;
pub mod perl;
pub mod php;
pub mod ruby;
#[cfg(test)]
mod testing;
pub mod thread;
pub mod v8;
mod x86_64;

pub use crate::abi::{FUNCTION_BITS, RuntimeKind, RuntimeKinds};
pub use cpython::CPython;
pub use hotspot::HotSpot;
pub use lua::Lua;
pub use luajit::LuaJit;
pub use perl::Perl;
pub use php::Php;
pub use ruby::Ruby;
pub use v8::V8;

use x86_64 as arch;

use crate::walk::{
    Memory,
    native::{Frame, Kept},
};
use core::ops::ControlFlow;

/// Words of a descriptor: what user space says of a file with a runtime.
pub const DESCRIPTOR_WORDS: usize = 64;

/// The most descriptors at a time. Descriptor 0 means "no runtime": its first word is the [`RuntimeKinds`] that files have.
pub const DESCRIPTORS: usize = 64;

/// Words of a cursor: what a runtime keeps from one step along a chain to the next.
pub const CURSOR_WORDS: usize = 24;

/// Words of the longest structure that is copied at once: [`Process::fetch`].
pub const FETCH_WORDS: usize = 48;

/// In the key of a function, a bit that no address has: the key is of compiled code, and each runtime says how.
pub const COMPILED: u64 = 1 << 47;

const _: () = assert!(COMPILED & FUNCTION_BITS != 0);

/// Words that a runtime remembers: [`Process::remember`].
pub const REMEMBERED_WORDS: usize = 18;

/// The file that a runtime is in, as the runtime's code sees it.
pub trait Described {
    /// Word `index` of the file's descriptor; zero beyond [`DESCRIPTOR_WORDS`]. Word 0 is [`first_word`]; each runtime says
    /// what the others are.
    fn descriptor(&self, index: usize) -> u64;

    /// Whether an address of the file's own is in a function or its cold part, whose begin, end, begin and end are the words from
    /// `first` on.
    #[inline(always)]
    fn is_within(&self, first: usize, address: u64) -> bool {
        let within = |first: usize| {
            self.descriptor(first) <= address && address < self.descriptor(first + 1)
        };
        within(first) || within(first + 2)
    }
}

/// The process that is walked and the runtime's file in it, as the runtime's code sees them.
pub trait Process: Memory + Described {
    /// Load bias of the file: added to an address of its own, it gives the address in the process.
    fn bias(&self) -> u64;

    /// The thread pointer of the thread that is walked; zero if it is not known.
    fn thread_pointer(&self) -> u64;

    /// A register of the thread's innermost native frame, by its DWARF number.
    fn register(&self, number: u8) -> u64;

    /// Copies so many bytes, at most 8 × [`FETCH_WORDS`], to where [`fetched`](Self::fetched) has them, until the next call. One
    /// copy of a whole structure costs little more than that of a word, and takes no stack. False if any byte cannot be read.
    fn fetch(&self, address: u64, bytes: u64) -> bool;

    /// A word of what was fetched last, below [`FETCH_WORDS`]. What lies behind the bytes that were fetched may be anything.
    fn fetched(&self, index: usize) -> u64;

    /// A word that was [remembered](Self::remember), by its number below [`REMEMBERED_WORDS`]; or zero.
    #[inline(always)]
    fn remembered(&self, _index: usize) -> u64 {
        0
    }

    /// Remembers a word that saves reads later, in this process or another: to be believed only where a wrong one does no more harm
    /// than what a process may put into its memory itself.
    #[inline(always)]
    fn remember(&self, _index: usize, _value: u64) {}

    /// The word of what was fetched last that begins `offset` bytes in, where it is aligned; otherwise what of it lies in the
    /// same eight bytes.
    #[inline(always)]
    fn fetched_at(&self, offset: u64) -> u64 {
        self.fetched((offset / 8) as usize) >> (offset % 8 * 8)
    }
}

/// Word 0 of a descriptor: bits 0–7 the [`RuntimeKind`], bits 8–39 the version, `major << 16 | minor << 8 | patch`.
pub const fn first_word(kind: RuntimeKind, version: u32) -> u64 {
    kind as u64 | (version as u64) << 8
}

/// The words that a runtime keeps between two steps. Zeros when a walk begins.
pub trait Cursor {
    /// A word, below [`CURSOR_WORDS`].
    fn get(&self, index: usize) -> u64;
    /// Sets a word.
    fn set(&self, index: usize, value: u64);
}

/// A native frame that lies in the runtime's object.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeFrame {
    /// The address that the frame is at, or inside the call that it has made: the object's own.
    pub address: u64,
    /// The stack pointer.
    pub sp: u64,
    /// Its caller's stack pointer: the frame lies below. `u64::MAX` if there is no caller.
    pub caller_sp: u64,
    /// 1 if it is the thread's innermost frame, else 0.
    pub is_first: u64,
    /// Its frame pointer.
    pub fp: Kept,
    /// Its [saved](crate::walk::arch::SAVED) register.
    pub saved: Kept,
}

impl NativeFrame {
    /// Stands for whichever frame runs the level.
    pub const ANY: Self = Self {
        address: 0,
        sp: 0,
        caller_sp: u64::MAX,
        is_first: 0,
        fp: Kept::LOST,
        saved: Kept::LOST,
    };

    /// Whether it is [`NativeFrame::ANY`]. Either pointer alone may be any number in a process that sets it.
    #[inline(always)]
    pub const fn is_any(&self) -> bool {
        self.sp == Self::ANY.sp && self.caller_sp == Self::ANY.caller_sp
    }

    /// The value of its saved register or its frame pointer, as far as it is known.
    #[inline(always)]
    pub fn register(&self, memory: &impl Memory, is_saved: bool) -> Option<u64> {
        let kept = if is_saved { self.saved } else { self.fp };
        kept.read(memory).ok()
    }
}

/// Result of [`Chain::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Begin {
    /// There is a chain, and the cursor is at its head.
    Begun,
    /// It cannot be told from this native frame: to be asked again at the next.
    NotHere,
    /// The thread runs nothing of the runtime's now.
    Nothing,
}

/// Result of a step along the chain. Numbers only: the verifier rejects moves of undefined values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainFrame {
    /// The address of the function's object: the bits of [`FUNCTION_BITS`]. Of a frame without [`ChainFrame::FRAME`], anything.
    pub function: u64,
    /// Check of the function: distinguishes functions at one address.
    pub check: u32,
    /// Where in the function: names a line, in the runtime's own way.
    pub position: u32,
    /// Which of the constants hold.
    pub flags: u32,
}

impl ChainFrame {
    /// There is a frame to show. Without it, the step only went on.
    pub const FRAME: u32 = 1;
    /// The next frame belongs to another native frame.
    pub const LEVEL_ENDS: u32 = 2;
    /// Nothing comes next.
    pub const CHAIN_ENDS: u32 = 4;
    /// The frames shown since the level began are not those of this native frame, and are to be dropped. The cursor is where
    /// the runtime wants to go on: at the same level, of another native frame, or behind it. Goes with `LEVEL_ENDS`, and
    /// without `FRAME`.
    pub const RETRACT: u32 = 8;
    /// The next frame could not be read, or cannot be the runtime's: a mark is shown in its place.
    pub const BROKEN: u32 = 16;

    /// A step without a frame.
    #[inline(always)]
    pub const fn none(flags: u32) -> Self {
        Self {
            function: 0,
            check: 0,
            position: 0,
            flags,
        }
    }

    /// The end of a chain that cannot be followed.
    #[inline(always)]
    pub const fn broken() -> Self {
        Self::none(Self::BROKEN | Self::LEVEL_ENDS | Self::CHAIN_ENDS)
    }
}

/// How the characters of a [`RemoteString`] are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Bytes up to a NUL, UTF-8 or nearly so. `bytes` is not looked at.
    #[default]
    CString = 0,
    /// One byte each: ASCII, Latin-1.
    Latin1 = 1,
    /// Two bytes each: UCS-2.
    Ucs2 = 2,
    /// Four bytes each: UCS-4.
    Ucs4 = 4,
    /// Bytes, UTF-8 or nearly so.
    Bytes = 8,
}

impl Encoding {
    /// The encoding with this discriminant; none if there is no such.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::CString),
            1 => Some(Self::Latin1),
            2 => Some(Self::Ucs2),
            4 => Some(Self::Ucs4),
            8 => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// Where a string lies in the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteString {
    /// Its first byte; zero if there is no such string.
    pub address: u64,
    /// Its length.
    pub bytes: u32,
    /// An [`Encoding`], as a number.
    pub encoding: u32,
}

impl RemoteString {
    /// So many bytes from an address on.
    #[inline(always)]
    pub const fn new(address: u64, bytes: u32, encoding: Encoding) -> Self {
        Self {
            address,
            bytes,
            encoding: encoding as u32,
        }
    }
}

/// Names and place of a function: read in the kernel when the function is first seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    /// Owner of the function: a class, a package. None in runtimes whose names are qualified.
    pub owner: RemoteString,
    /// Its name.
    pub name: RemoteString,
    /// Its file.
    pub file: RemoteString,
    /// The line at which its definition begins; zero if that is not known.
    pub first_line: u32,
    /// Whatever else user space needs to name the function or its lines; each runtime says what.
    pub extra: u64,
}

/// Functions of a runtime: how they are told apart and named. Implemented by types without values.
///
/// Called inside an interrupt, on memory that may be torn, freed or forged. So: few reads, each checked; neighbouring words
/// in one read, of at most eight words; no loops but short fixed ones; no signed division; `#[inline(always)]` everywhere.
/// The same goes for [`Chain`] and [`CodeOwner`].
pub trait FunctionInfo {
    /// The word of a chain's cursor that has, behind a step that shows a function, the address of the runtime's own frame, for
    /// [`FunctionInfo::owner`]; none if that is not needed.
    const OWN_FRAME: Option<usize> = None;

    /// Whether the runtime's own frames are native frames: what [`CodeOwner::own_frame`] says is noted.
    const FRAMES_ARE_NATIVE: bool = false;

    /// Whether functions have no names of their own, but are called what their callers' code calls them.
    const NAMED_BY_CALLER: bool = false;

    /// The check of the function at an address, as [`ChainFrame::check`]; none if there is no function.
    fn check(process: &impl Process, function: u64) -> Option<u32>;

    /// Where the strings of a function lie.
    fn strings(process: &impl Process, function: u64) -> Option<Strings>;

    /// Owner of a function, if only a call of it tells: from the runtime's own frame, as
    /// [`FunctionInfo::OWN_FRAME`] says. Called once, when the function is first seen; becomes [`Strings::owner`] and
    /// [`Strings::extra`].
    #[inline(always)]
    fn owner(
        _process: &impl Process,
        _function: u64,
        _own_frame: u64,
    ) -> Option<(RemoteString, u64)> {
        None
    }

    /// As [`strings`](Self::strings), with what the runtime's own frame tells, if its address is not zero.
    #[inline(always)]
    fn strings_in_frame(process: &impl Process, function: u64, own_frame: u64) -> Option<Strings> {
        let mut strings = Self::strings(process, function)?;
        if let Some((owner, extra)) = Self::owner(process, function, own_frame) {
            (strings.owner, strings.extra) = (owner, extra);
        }
        Some(strings)
    }
}

/// A runtime with frames in memory of its own, beside the native stack: how its chains are followed.
pub trait Chain: FunctionInfo {
    /// Whether frames may be left at the root of a stack that no native frame runs: those of coroutines, which are resumed
    /// in another native frame than the one that they began in.
    const OUTLIVES_NATIVE_FRAMES: bool = false;

    /// Whether it compiles functions at run time to code that runs within levels of its loop. What stands in the stack above
    /// such code does not tell how many of its functions lie between: they are shown behind the mark that the native walk ends
    /// with, and no caller is [looked for](crate::walk::guess).
    const MAKES_CODE: bool = false;

    /// The word of the cursor that holds an address in the native frame of the next level, or zero while it is not known;
    /// none if there is no such word. Native frames that lie below such an address run no level.
    const BOUNDARY: Option<usize> = None;

    /// Whether a native frame at this address, the object's own, may run a level. Says no only where
    /// [`is_level`](Self::is_level) says no, and does nothing else, whatever the frame and the cursor.
    fn may_run_level(file: &impl Described, address: u64) -> bool;

    /// Finds the head of the running thread's chain. Where a native walk broke before it came to the runtime's object, it is
    /// asked about [`NativeFrame::ANY`].
    fn begin(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> Begin;

    /// Whether this native frame runs the level whose frames come next. Asked once for each native frame in the runtime's
    /// object, from the innermost. Where the native walk broke, it is asked before each level about [`NativeFrame::ANY`], and
    /// whatever it says, the level's frames come next.
    fn is_level(process: &impl Process, cursor: &impl Cursor, native: &NativeFrame) -> bool;

    /// The next frame of the chain.
    fn step(process: &impl Process, cursor: &impl Cursor) -> ChainFrame;
}

/// A runtime with frames on the native stack in code of its own, which is in no file, or of which its file's rows are wrong: how
/// these frames are left.
pub trait CodeOwner: FunctionInfo {
    /// Turns of a search, at most. With one, where it begins is what it finds, unless [`search`](Self::search) says otherwise.
    const TURNS: u32 = 1;

    /// An address in the runtime's file, by the registers of a thread whose innermost frame is in the runtime's code, where no
    /// frame in that file was met before in the process.
    #[inline(always)]
    fn anchor(_memory: &impl Memory, _register: impl Fn(u8) -> u64) -> Option<u64> {
        None
    }

    /// Whether at an address of the file's own rows are wrong in a thread's innermost frame: its stack pointer is what the search
    /// finds.
    #[inline(always)]
    fn misplaces_stack_pointer(_file: &impl Described, _address: u64) -> bool {
        false
    }

    /// Where the search begins for what proves that a frame's code is the runtime's.
    fn search_from(process: &impl Process, frame: &Frame) -> u64;

    /// One turn of the search: breaks with what it looks for, or zero if there is none, or goes on from another place.
    #[inline(always)]
    fn search(_process: &impl Process, place: u64) -> ControlFlow<u64, u64> {
        ControlFlow::Break(place)
    }

    /// The address of the runtime's own frame, by what the search found, for
    /// [`FunctionInfo::strings_in_frame`]; zero if there is none.
    #[inline(always)]
    fn own_frame(_found: u64) -> u64 {
        0
    }

    /// The caller of a frame, by what the search found; and the frame's function, shown in place of its address, unless the frame's
    /// code says none. What was compiled into it, user space tells by the position.
    fn leave(
        process: &impl Process,
        frame: &Frame,
        found: u64,
    ) -> Option<(Frame, Option<ChainFrame>)>;

    /// As [`leave`](Self::leave) in less work, where that found this function at the same return address of this process before.
    /// `bytes`: from the frame's stack pointer to its caller's. Returns the caller and what a search would find; none if another
    /// function may be there now.
    #[inline(always)]
    fn leave_known(
        _process: &impl Process,
        _frame: &Frame,
        _function: &ChainFrame,
        _bytes: u64,
    ) -> Option<(Frame, u64)> {
        None
    }
}

/// A runtime that runs one function in each native frame of some code of its file: which, the frame says. It is shown in the place
/// of the native frame, or in front of it.
pub trait FrameFunction: FunctionInfo {
    /// Whether a native frame at this address, the object's own, may run a function. Says no only where
    /// [`function_in`](Self::function_in) has none, and does nothing else, whatever the frame.
    fn may_have_function(file: &impl Described, address: u64) -> bool;

    /// The function that a native frame runs.
    fn function_in(process: &impl Process, native: &NativeFrame) -> Option<ChainFrame>;
}

/// Hands the table of runtimes to a macro. For each kind: the kernel half's subprogram that finds its strings; if it is a
/// [`Chain`], the type that implements that, and the subprograms that enter a level and take a step; if it is a [`CodeOwner`], the
/// type, and the subprogram that leaves its code; if it has [`FrameFunction`]s, the type, and the subprogram that shows one.
#[macro_export]
macro_rules! runtimes {
    ($with:ident) => {
        $with! {
            CPython cpython_strings, chain CPython cpython_level cpython_step;
            Php php_strings, chain Php php_level php_step;
            Ruby ruby_strings, chain Ruby ruby_level ruby_step;
            Perl perl_strings, chain Perl perl_level perl_step;
            LuaJit luajit_strings, chain LuaJit luajit_level luajit_step, code LuaJit leave_luajit_code;
            Lua lua_strings, chain Lua lua_level lua_step;
            V8 v8_strings, code V8 leave_v8_code, frame V8 v8_function;
            HotSpot hotspot_strings, code HotSpot leave_hotspot_code;
        }
    };
}

/// The check made of a hash.
#[inline(always)]
pub const fn check_of(hash: crate::intern::Hash) -> u32 {
    (hash.0 >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found_by_their_codes() {
        use Encoding::*;
        for encoding in [CString, Latin1, Ucs2, Ucs4, Bytes] {
            assert_eq!(Encoding::from_code(encoding as u8), Some(encoding));
        }
        assert_eq!(Encoding::from_code(3), None);
    }
}
