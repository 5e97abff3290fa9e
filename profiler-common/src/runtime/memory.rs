//! A process made of words, for the tests of runtimes.

use super::{
    Begin, CURSOR_WORDS, ChainFrame, Cursor, DESCRIPTOR_WORDS, FETCH_WORDS, NativeFrame, Process,
    Runtime,
};
use crate::walk::Memory;
use std::{cell::Cell, collections::BTreeMap, vec::Vec};

extern crate std;

/// Memory in which only what was put can be read.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) memory: BTreeMap<u64, u8>,
    pub(crate) descriptor: [u64; DESCRIPTOR_WORDS],
    pub(crate) bias: u64,
    pub(crate) thread_pointer: u64,
    pub(crate) registers: [u64; 16],
    pub(crate) fetched: Cell<[u64; FETCH_WORDS]>,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            memory: BTreeMap::new(),
            descriptor: [0; DESCRIPTOR_WORDS],
            bias: 0,
            thread_pointer: 0,
            registers: [0; 16],
            fetched: Cell::default(),
        }
    }
}

impl Recorded {
    /// Puts bytes at an address.
    pub(crate) fn bytes(&mut self, address: u64, bytes: &[u8]) {
        self.memory.extend((address..).zip(bytes.iter().copied()));
    }

    /// Puts words at an address.
    pub(crate) fn words(&mut self, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes(address, &bytes);
    }
}

impl Memory for Recorded {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
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

impl Process for Recorded {
    fn descriptor(&self, index: usize) -> u64 {
        self.descriptor.get(index).copied().unwrap_or(0)
    }

    fn bias(&self) -> u64 {
        self.bias
    }

    fn thread_pointer(&self) -> u64 {
        self.thread_pointer
    }

    fn register(&self, number: u8) -> u64 {
        self.registers[usize::from(number & 15)]
    }

    fn fetch(&self, address: u64, bytes: u64) -> bool {
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

    fn fetched(&self, index: usize) -> u64 {
        self.fetched.get().get(index).copied().unwrap_or(0)
    }
}

/// A cursor on the host.
#[derive(Debug, Default)]
pub(crate) struct Place([Cell<u64>; CURSOR_WORDS]);

impl Cursor for Place {
    fn get(&self, index: usize) -> u64 {
        self.0[index].get()
    }

    fn set(&self, index: usize, value: u64) {
        self.0[index].set(value);
    }
}

/// What a walk over native frames shows: an index of `natives`, a frame of the chain, or a mark where that broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Native(usize),
    Function { function: u64, position: u32 },
    Broken,
}

/// The most frames that a chain may have in tests: the kernel half has a limit too.
const MOST: usize = 1024;

/// Walks native frames, all in the runtime's object, as the kernel half does. If the walk `breaks` behind the last, the rest
/// of the chain follows.
pub(crate) fn walk<R: Runtime>(
    process: &Recorded,
    natives: &[NativeFrame],
    breaks: bool,
) -> Vec<Shown> {
    let cursor = Place::default();
    let mut shown = Vec::new();
    let (mut begun, mut over) = (false, false);
    for (index, native) in natives.iter().enumerate() {
        if !begun && !over {
            match R::begin(process, &cursor, native) {
                Begin::Begun => begun = true,
                Begin::NotHere => {}
                Begin::Nothing => over = true,
            }
        }
        if begun && !over && R::is_level(process, &cursor, native) {
            over = level::<R>(process, &cursor, &mut shown);
        }
        shown.push(Shown::Native(index));
    }
    if breaks && !begun && !over {
        match R::begin(process, &cursor, &NativeFrame::ANY) {
            Begin::Begun => {}
            _ => over = true,
        }
    }
    while breaks && !over {
        R::is_level(process, &cursor, &NativeFrame::ANY);
        over = level::<R>(process, &cursor, &mut shown);
    }
    shown
}

/// The frames of a level; whether the chain is over.
fn level<R: Runtime>(process: &Recorded, cursor: &Place, shown: &mut Vec<Shown>) -> bool {
    let before = shown.len();
    loop {
        let frame = R::step(process, cursor);
        if frame.flags & ChainFrame::RETRACT != 0 {
            shown.truncate(before);
        }
        if frame.flags & ChainFrame::FRAME != 0 {
            shown.push(Shown::Function {
                function: frame.function,
                position: frame.position,
            });
        }
        if frame.flags & ChainFrame::BROKEN != 0 {
            shown.push(Shown::Broken);
        }
        if shown.len() >= MOST || frame.flags & ChainFrame::CHAIN_ENDS != 0 {
            return true;
        }
        if frame.flags & ChainFrame::LEVEL_ENDS != 0 {
            return false;
        }
    }
}
