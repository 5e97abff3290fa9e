//! Chains on the host, for tests: over memory that was made or recorded, and walked as the kernel half does.
//!
//! In: a process, and the native frames in the runtime's object. Out: what is shown of them. Never: more frames or steps than the
//! kernel half would take.

use super::{
    Begin, CURSOR_WORDS, Chain, ChainFrame, CodeOwner, Cursor, DESCRIPTOR_WORDS, Described,
    FETCH_WORDS, NativeFrame, Process, REMEMBERED_WORDS,
};
use crate::{
    abi::MAX_USER_FRAMES,
    walk::{Memory, arch::REGISTERS, native::Frame},
};
use core::ops::ControlFlow;
use std::{cell::Cell, collections::BTreeMap, vec::Vec};

extern crate std;

/// A process of whose memory only what was put can be read.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Bytes by their addresses.
    pub memory: BTreeMap<u64, u8>,
    /// See [`Process::descriptor`].
    pub descriptor: [u64; DESCRIPTOR_WORDS],
    /// See [`Process::bias`].
    pub bias: u64,
    /// See [`Process::thread_pointer`].
    pub thread_pointer: u64,
    /// Registers by their DWARF numbers.
    pub registers: [u64; REGISTERS],
    /// The words that were fetched last.
    pub fetched: Cell<[u64; FETCH_WORDS]>,
    /// The words that were remembered.
    pub remembered: [Cell<u64>; REMEMBERED_WORDS],
    /// How often memory was read.
    pub reads: Cell<usize>,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            memory: BTreeMap::new(),
            descriptor: [0; DESCRIPTOR_WORDS],
            bias: 0,
            thread_pointer: 0,
            registers: [0; 16],
            fetched: Cell::new([0; FETCH_WORDS]),
            remembered: Default::default(),
            reads: Cell::default(),
        }
    }
}

impl Recorded {
    /// Puts words into the descriptor.
    pub fn describe(&mut self, words: &[(usize, u64)]) {
        for &(place, word) in words {
            self.descriptor[place] = word;
        }
    }

    /// Puts bytes at an address.
    pub fn bytes(&mut self, address: u64, bytes: &[u8]) {
        self.memory.extend((address..).zip(bytes.iter().copied()));
    }

    /// Puts words at an address.
    pub fn words(&mut self, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes(address, &bytes);
    }
}

impl Memory for Recorded {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        self.reads.update(|reads| reads + 1);
        let mut words = [0; N];
        for (word, at) in words
            .iter_mut()
            .zip((0..).map(|index| address.wrapping_add(8 * index)))
        {
            for place in 0..8 {
                let byte = *self.memory.get(&at.wrapping_add(place))?;
                *word |= u64::from(byte) << (8 * place);
            }
        }
        Some(words)
    }
}

impl Described for Recorded {
    fn descriptor(&self, index: usize) -> u64 {
        self.descriptor.get(index).copied().unwrap_or(0)
    }
}

impl Process for Recorded {
    fn bias(&self) -> u64 {
        self.bias
    }

    fn thread_pointer(&self) -> u64 {
        self.thread_pointer
    }

    fn register(&self, number: u8) -> u64 {
        self.registers[usize::from(number) & (REGISTERS - 1)]
    }

    fn fetch(&self, address: u64, bytes: u64) -> bool {
        self.reads.update(|reads| reads + 1);
        let mut words = [0; FETCH_WORDS];
        if bytes > 8 * FETCH_WORDS as u64 {
            return false;
        }
        for place in 0..bytes {
            let Some(byte) = self.memory.get(&address.wrapping_add(place)) else {
                return false;
            };
            words[(place / 8) as usize] |= u64::from(*byte) << (place % 8 * 8);
        }
        self.fetched.set(words);
        true
    }

    fn remembered(&self, index: usize) -> u64 {
        self.remembered.get(index).map_or(0, Cell::get)
    }

    fn remember(&self, index: usize, value: u64) {
        if let Some(word) = self.remembered.get(index) {
            word.set(value);
        }
    }

    fn fetched(&self, index: usize) -> u64 {
        self.fetched.get().get(index).copied().unwrap_or(0)
    }
}

/// A cursor on the host.
#[derive(Debug, Default)]
struct HostCursor([Cell<u64>; CURSOR_WORDS]);

impl Cursor for HostCursor {
    fn get(&self, index: usize) -> u64 {
        self.0[index].get()
    }

    fn set(&self, index: usize, value: u64) {
        self.0[index].set(value);
    }
}

/// An entry of the stack that a walk over native frames shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEntry {
    /// A native frame, by its place among those that were given.
    Native(usize),
    /// A frame of the chain.
    Function {
        /// See [`ChainFrame::function`].
        function: u64,
        /// See [`ChainFrame::position`].
        position: u32,
    },
    /// A mark, where the chain broke.
    Broken,
}

/// The most frames that are shown.
const MAX_FRAMES: usize = MAX_USER_FRAMES;
/// The most steps along a chain.
const MAX_STEPS: usize = 4 * MAX_FRAMES;

/// Walks native frames, all in the runtime's object, as the kernel half does: those that certainly run no level are passed. If
/// the walk `breaks` behind the last, the rest of the chain follows.
pub fn walk<R: Chain>(
    process: &impl Process,
    natives: &[NativeFrame],
    breaks: bool,
) -> Vec<StackEntry> {
    walk_all::<R>(process, natives, breaks, true)
}

/// As [`walk`], and asks about each native frame: what the kernel half does where it meets them for the first time.
pub fn walk_asking_each<R: Chain>(
    process: &impl Process,
    natives: &[NativeFrame],
    breaks: bool,
) -> Vec<StackEntry> {
    walk_all::<R>(process, natives, breaks, false)
}

fn walk_all<R: Chain>(
    process: &impl Process,
    natives: &[NativeFrame],
    breaks: bool,
    passes: bool,
) -> Vec<StackEntry> {
    let mut walk = Walk {
        process,
        cursor: HostCursor::default(),
        shown: Vec::new(),
        steps: 0,
        begun: false,
        over: false,
    };
    for (index, native) in natives.iter().enumerate() {
        let is_passed = passes && walk.runs_no_level::<R>(native);
        if !is_passed && walk.begin::<R>(native) && R::is_level(process, &walk.cursor, native) {
            walk.level::<R>();
        }
        walk.shown.push(StackEntry::Native(index));
    }
    while breaks && walk.begin::<R>(&NativeFrame::ANY) {
        R::is_level(process, &walk.cursor, &NativeFrame::ANY);
        walk.level::<R>();
    }
    walk.shown
}

/// The caller of a frame in a runtime's own code and its function, as the kernel half finds them; none if the code is not the
/// runtime's.
pub fn leave_code<R: CodeOwner>(
    process: &impl Process,
    frame: &Frame,
) -> Option<(Frame, Option<ChainFrame>)> {
    let mut place = R::search_from(process, frame);
    for _ in 0..R::TURNS {
        match R::search(process, place) {
            ControlFlow::Continue(next) => place = next,
            ControlFlow::Break(0) => return None,
            ControlFlow::Break(found) => return R::leave(process, frame, found),
        }
    }
    None
}

struct Walk<'p, P> {
    process: &'p P,
    cursor: HostCursor,
    shown: Vec<StackEntry>,
    steps: usize,
    begun: bool,
    over: bool,
}

impl<P: Process> Walk<'_, P> {
    /// Begins the chain, if it is not; whether more of it comes.
    fn begin<R: Chain>(&mut self, native: &NativeFrame) -> bool {
        if !self.begun && !self.over {
            match R::begin(self.process, &self.cursor, native) {
                Begin::Begun => self.begun = true,
                Begin::NotHere => self.over = native.is_any(),
                Begin::Nothing => self.over = true,
            }
        }
        self.begun && !self.over
    }

    /// Whether it is certain that a native frame runs no level.
    fn runs_no_level<R: Chain>(&self, native: &NativeFrame) -> bool {
        let boundary = R::BOUNDARY.map_or(0, |word| self.cursor.get(word));
        native.is_first == 0
            && (self.over
                || !R::may_run_level(self.process, native.address)
                || self.begun && boundary != 0 && native.caller_sp <= boundary)
    }

    /// The frames of a level.
    fn level<R: Chain>(&mut self) {
        let before = self.shown.len();
        loop {
            self.steps += 1;
            let frame = if self.steps <= MAX_STEPS {
                R::step(self.process, &self.cursor)
            } else {
                ChainFrame::broken()
            };
            if frame.flags & ChainFrame::RETRACT != 0 {
                self.shown.truncate(before);
            }
            if frame.flags & ChainFrame::FRAME != 0 {
                self.shown.push(StackEntry::Function {
                    function: frame.function,
                    position: frame.position,
                });
            }
            if frame.flags & ChainFrame::BROKEN != 0 {
                self.shown.push(StackEntry::Broken);
            }
            if self.shown.len() >= MAX_FRAMES || frame.flags & ChainFrame::CHAIN_ENDS != 0 {
                self.over = true;
            }
            if self.over || frame.flags & ChainFrame::LEVEL_ENDS != 0 {
                return;
            }
        }
    }
}
