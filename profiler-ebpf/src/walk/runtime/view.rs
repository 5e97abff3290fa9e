//! View of a runtime's code while its chain is followed: the file's descriptor, the process's
//! memory, the thread's registers and the cursor.
//!
//! In: a CPU slot's scratch memory. Out: words of it, and of the running process. Never: decides anything.

use crate::{
    platform::{
        maps::{Descriptor, RUNTIMES, Scratch},
        memory::{self, UserMemory},
    },
    walk::{runtime::scratch::Chain, stack_memory::StackMemory},
};
use core::hint::black_box;
use profiler_common::{
    runtime::{self, Cursor, Described, FunctionInfo, NativeFrame, Process, RuntimeKind},
    walk::{Memory, native::Frame},
};

/// Makes of the table of runtimes the set of those whose frames are native ones.
macro_rules! have_native_frames {
    ($($kind:ident $strings:ident $(, $door:ident $type:ident $($subprog:ident)+)+;)+) => {
        /// See [`FunctionInfo::FRAMES_ARE_NATIVE`].
        const HAVE_NATIVE_FRAMES: u64 =
            0 $(| (<runtime::$kind as FunctionInfo>::FRAMES_ARE_NATIVE as u64) << RuntimeKind::$kind as u64)+;
    };
}

profiler_common::runtimes!(have_native_frames);

/// The runtime's file, as the runtime's code sees it.
pub(super) struct File(pub(super) &'static Descriptor);

impl Described for File {
    #[inline(always)]
    fn descriptor(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |word| word.load())
    }
}

/// The running process, as a runtime's code sees it.
#[derive(Clone, Copy)]
pub(super) struct View {
    scratch: &'static Scratch,
    chain: &'static Chain,
    descriptor: &'static Descriptor,
    is_on_native_stack: bool,
}

impl View {
    /// As a runtime of this kind sees it, whose chain was prepared.
    #[inline(always)]
    pub(super) fn of(scratch: &'static Scratch, kind: RuntimeKind) -> Option<Self> {
        let chain = scratch.chains.of.get(kind as usize)?;
        let descriptor = RUNTIMES.get(chain.descriptor.load() as u32)?;
        Some(Self {
            scratch,
            chain,
            descriptor,
            is_on_native_stack: HAVE_NATIVE_FRAMES >> kind as u64 & 1 != 0,
        })
    }

    /// The scratch memory that it is seen from.
    #[inline(always)]
    pub(super) fn scratch(&self) -> &'static Scratch {
        self.scratch
    }

    /// The native frame that is looked at.
    #[inline(always)]
    pub(super) fn native(&self) -> NativeFrame {
        let chains = &self.scratch.chains;
        let [fp, saved, kinds] = [0, 1, 2].map(|place: usize| chains.registers[place].load());
        // As `Frame::words` has it.
        let frame = Frame::from_words([0, 0, fp, saved, kinds]);
        NativeFrame {
            address: chains.address.load(),
            sp: chains.sp.load(),
            caller_sp: chains.caller_sp.load(),
            is_first: chains.is_first.load(),
            fp: frame.fp,
            saved: frame.saved,
        }
    }
}

impl Memory for View {
    #[inline(always)]
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        UserMemory.read(address)
    }

    /// From the copy of the stack if it is there. Otherwise nothing is copied, because the native walk would have to do so again,
    /// unless the runtime's frames are the native ones.
    #[inline(always)]
    fn read_upward<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let stack = StackMemory(&self.scratch.walk.stack);
        if self.is_on_native_stack {
            stack.read_upward(address)
        } else {
            stack.read_copied(address)
        }
    }
}

impl Described for View {
    #[inline(always)]
    fn descriptor(&self, index: usize) -> u64 {
        File(self.descriptor).descriptor(index)
    }
}

impl Process for View {
    #[inline(always)]
    fn bias(&self) -> u64 {
        self.chain.bias.load()
    }

    #[inline(always)]
    fn thread_pointer(&self) -> u64 {
        self.scratch.chains.thread_pointer.load()
    }

    #[inline(always)]
    fn register(&self, number: u8) -> u64 {
        let registers = &self.scratch.walk.registers;
        registers[usize::from(number) & (registers.len() - 1)].load()
    }

    #[inline(always)]
    fn fetch(&self, address: u64, bytes: u64) -> bool {
        memory::fetch(&self.scratch.chains.fetched, address, bytes)
    }

    #[inline(always)]
    fn remembered(&self, index: usize) -> u64 {
        let word = self.scratch.chains.remembered.get(index);
        word.map_or(0, |word| word.load())
    }

    #[inline(always)]
    fn remember(&self, index: usize, value: u64) {
        if let Some(word) = self.scratch.chains.remembered.get(index) {
            word.store(value);
        }
    }

    #[inline(always)]
    fn fetched(&self, index: usize) -> u64 {
        let fetched = &self.scratch.chains.fetched;
        fetched[index & (fetched.len() - 1)].load()
    }
}

impl Cursor for View {
    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        // Hidden from the compiler, which would bound another number than the one that is used.
        let word = self.chain.cursor.get(black_box(index));
        word.map_or(0, |word| word.load())
    }

    #[inline(always)]
    fn set(&self, index: usize, value: u64) {
        if let Some(word) = self.chain.cursor.get(black_box(index)) {
            word.store(value);
        }
    }
}
