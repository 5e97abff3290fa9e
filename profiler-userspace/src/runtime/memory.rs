//! The memory of a process that runs, as the code of a runtime sees it.
//!
//! In: a process ID. Out: words, as far as they can be read now. The process runs on meanwhile, so whatever is read here may be
//! torn: whoever reads asks for a function's check before and after.

use super::Words;
use profiler_common::runtime::{Described, FETCH_WORDS, FunctionInfo as _, Process, RuntimeKind};
use profiler_common::walk::Memory;
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// A process's memory, and the descriptor of a runtime in it.
#[derive(Debug)]
pub struct TargetMemory {
    /// None if it has ended, or we may not.
    file: Option<File>,
    words: Words,
    bias: u64,
    fetched: Cell<[u64; FETCH_WORDS]>,
}

impl TargetMemory {
    /// That of a process by its ID.
    pub fn new(tgid: u32, words: Words, bias: u64) -> Self {
        Self {
            file: File::open(format!("/proc/{tgid}/mem")).ok(),
            words,
            bias,
            fetched: Cell::default(),
        }
    }

    /// The check of the function at an address, if there is one.
    pub fn check(&self, kind: RuntimeKind, function: u64) -> Option<u32> {
        macro_rules! check {
            ($($kind:ident $strings:ident $(, $door:ident $type:ident $($subprog:ident)+)+;)+) => {
                match kind {
                    $(RuntimeKind::$kind => profiler_common::runtime::$kind::check(self, function),)+
                }
            };
        }
        profiler_common::runtimes!(check)
    }

    /// Copies bytes.
    pub fn copy(&self, address: u64, into: &mut [u8]) -> Option<()> {
        self.file.as_ref()?.read_exact_at(into, address).ok()
    }
}

impl Memory for TargetMemory {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        let mut place = address;
        for word in &mut words {
            let mut bytes = [0; 8];
            self.copy(place, &mut bytes)?;
            *word = u64::from_le_bytes(bytes);
            place = place.checked_add(8)?;
        }
        Some(words)
    }
}

impl Described for TargetMemory {
    fn descriptor(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }
}

impl Process for TargetMemory {
    fn bias(&self) -> u64 {
        self.bias
    }

    /// Not known from outside.
    fn thread_pointer(&self) -> u64 {
        0
    }

    /// Not known from outside.
    fn register(&self, _: u8) -> u64 {
        0
    }

    fn fetch(&self, address: u64, bytes: u64) -> bool {
        let mut buffer = [0; 8 * FETCH_WORDS];
        let copied = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| buffer.get_mut(..bytes))
            .and_then(|buffer| self.copy(address, buffer));
        let mut words = [0; FETCH_WORDS];
        for (word, bytes) in words.iter_mut().zip(buffer.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        self.fetched.set(words);
        copied.is_some()
    }

    fn fetched(&self, index: usize) -> u64 {
        self.fetched.get().get(index).copied().unwrap_or(0)
    }
}
