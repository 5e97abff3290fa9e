//! Contents of a descriptor of CPython, and the shapes of levels.

use crate::runtime::{DESCRIPTOR_WORDS, Described};

/// The words of a descriptor. Addresses are the object's own, offsets are in bytes.
pub mod at {
    /// The address of `_PyRuntime.autoTSSkey`: `int is_initialized, key`.
    pub const KEY: usize = 1;
    /// A [`Libc`](crate::runtime::thread::Libc).
    pub const LIBC: usize = 2;
    /// The address of `PyCode_Type`.
    pub const CODE_TYPE: usize = 3;
    /// A [`Shape`](super::Shape).
    pub const SHAPE: usize = 4;
    /// In a thread state: the innermost frame, or the innermost `_PyCFrame` if the shape has these.
    pub const HEAD: usize = 5;
    /// In a thread state of [`Shape::FrameAtAddress`](super::Shape::FrameAtAddress): the innermost `CFrame`.
    pub const BOUNDARY: usize = 6;
    /// In a `_PyCFrame`: its innermost frame.
    pub const CFRAME_FRAME: usize = 7;
    /// In a `_PyCFrame` or `CFrame`: that of the next level.
    pub const CFRAME_PREVIOUS: usize = 8;
    /// In a frame: where what is read of it begins, which is two or three words with the links; which they are, the shape says.
    pub const FRAME_LINKS: usize = 9;
    /// In a frame, from `FRAME_LINKS`: where it is in its code.
    pub const FRAME_POSITION: usize = 10;
    /// In a frame, from `FRAME_LINKS`: the byte that tells entry frames.
    pub const FRAME_OWNER: usize = 11;
    /// In a code object: its bytecode, where positions are addresses.
    pub const CODE_BYTES: usize = 12;
    /// By how much a position that is a number is shifted left to count bytes.
    pub const POSITION_SHIFT: usize = 13;
    /// In a code object: `co_filename`, followed by `co_name`, `co_qualname` (since 3.11) and the line table.
    pub const CODE_STRINGS: usize = 14;
    /// In a code object: `co_firstlineno`.
    pub const CODE_FIRST_LINE: usize = 15;
    /// In a code object: `co_version`, which no two of them share (since 3.12); else zero.
    pub const CODE_VERSION: usize = 16;
    /// In a code object: `_co_firsttraceable` (since 3.12); else zero.
    pub const CODE_FIRST_TRACEABLE: usize = 17;
    /// In a string: where ASCII characters begin.
    pub const STRING_ASCII: usize = 18;
    /// In a string: where other characters begin.
    pub const STRING_OTHER: usize = 19;
    /// The addresses of the loop and of its cold part: begin, end, begin, end. Needed by
    /// [`Shape::FrameInLoop`](super::Shape::FrameInLoop), a hint for [`Shape::EntryFrame`](super::Shape::EntryFrame).
    pub const LOOP: usize = 20;
    /// How many bytes are read of a frame, from `FRAME_LINKS`.
    pub const FRAME_BYTES: usize = 24;
    /// How many bytes are read of a code object, from its type: see [`CODE_BEGIN`](super::CODE_BEGIN).
    pub const CODE_READ: usize = 25;
    /// How much longer an object's head is than with the GIL: `ob_type` ends it. Zero, or [`FREE_THREADED_HEAD`](super::FREE_THREADED_HEAD).
    pub const HEAD_MORE: usize = 26;
    /// In a thread state: `thread_id`.
    pub const THREAD_ID: usize = 27;
    /// How many bytes before the key the state of the thread that runs stands (`gilstate.tstate_current`, up to 3.11); else zero.
    pub const RUNNING_BEFORE_KEY: usize = 28;
    /// The address of `_PyRuntime`, in which the first interpreter lies (since 3.12).
    pub const RUNTIME: usize = 29;
    /// How many bytes it has.
    pub const RUNTIME_BYTES: usize = 30;
    /// In an interpreter: the next older one (since 3.12).
    pub const INTERPRETER_NEXT: usize = 31;
    /// In an interpreter: its newest thread state (since 3.12).
    pub const INTERPRETER_THREADS: usize = 32;
    /// The address of the word that holds the address of `PyCode_Type`, in a library; otherwise zero. A program that uses the
    /// type itself has the library's in its own memory.
    pub const CODE_TYPE_SLOT: usize = 33;
    /// The highest word in use.
    pub const LAST: usize = CODE_TYPE_SLOT;
}

/// In a code object: its type (`PyObject.ob_type`), with which what is read of it begins. [`at::HEAD_MORE`] comes on top.
pub const CODE_BEGIN: u64 = 8;

/// How much longer an object's head is in free-threaded builds (`ob_tid`, `ob_flags`, `ob_mutex`, `ob_gc_bits`, `ob_ref_local`
/// and `ob_ref_shared` in place of `ob_refcnt`, `Include/object.h` of 3.13).
pub const FREE_THREADED_HEAD: u64 = 16;

/// Shape of a level: how far it reaches, and how its native frame is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Shape {
    /// 3.8, 3.9: each frame is a level; the native frame is one in the loop's code.
    FrameInLoop = 0,
    /// 3.10: each frame is a level; a `CFrame` lies in the native frame.
    FrameAtAddress = 1,
    /// 3.11: a `_PyCFrame` lies in the native frame; the last frame of a level says so.
    EntryFlag = 2,
    /// 3.12: a `_PyCFrame` lies in the native frame; behind the last frame of a level is one that is no function's.
    EntryAndAddress = 3,
    /// 3.13, 3.14: behind the last frame of a level is one that is no function's, and lies in the native frame.
    EntryFrame = 4,
}

impl Shape {
    #[inline(always)]
    const fn from_word(word: u64) -> Self {
        match word {
            0 => Self::FrameInLoop,
            1 => Self::FrameAtAddress,
            2 => Self::EntryFlag,
            3 => Self::EntryAndAddress,
            _ => Self::EntryFrame,
        }
    }
}

#[inline(always)]
pub(super) fn shape(file: &impl Described) -> Shape {
    Shape::from_word(file.descriptor(at::SHAPE))
}

const _: () = assert!(at::LAST < DESCRIPTOR_WORDS);
