//! Objects of a heap of V8's, for tests: in this program's own memory.
//!
//! In: what changes. Out: references to objects.

use super::heap::Layout;
use crate::runtime::{Descriptor, TargetMemory};
use profiler_common::runtime::v8::{Offsets, Types, at};
use profiler_common::runtime::{DESCRIPTOR_WORDS, RuntimeKind, first_word};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// The words of all objects.
#[derive(Default)]
pub(super) struct Fake([[AtomicU64; 16]; 8]);

/// The type of a `SharedFunctionInfo`.
const SHARED: u16 = 7;

impl Fake {
    /// A reference to an object that has these words from its beginning on.
    fn object<const N: usize>(&self, number: usize, words: [u64; N]) -> u64 {
        let object = &self.0[number];
        for (place, word) in object.iter().zip(words) {
            place.store(word, SeqCst);
        }
        object.as_ptr() as u64 | 1
    }

    /// The address of a function, which has a number.
    pub(super) fn shared(&self, number: u64) -> u64 {
        let map = self.object(0, [0, u64::from(SHARED) << 32]);
        let script = self.object(1, [0; 9]);
        self.object(2, [map, 0, 0, script, 3, number]) & !1
    }

    /// A reference to a `Code`; deoptimization needs these words.
    pub(super) fn code(&self, words: [u64; 3]) -> u64 {
        let [function, inlined, literals] = words;
        let data = self.object(4, [0, 3 << 32, function, inlined, literals]);
        let positions = self.object(5, [0; 2]);
        self.object(3, [0, data, positions, 1])
    }

    /// The memory that they are in.
    pub(super) fn memory(&self) -> TargetMemory {
        let mut words: Descriptor = [0; DESCRIPTOR_WORDS];
        words[0] = first_word(RuntimeKind::V8, 13 << 16);
        let types = Types {
            shared: SHARED,
            ..Types::default()
        };
        words[at::TYPES..at::OFFSETS].copy_from_slice(&types.words());
        let offsets = Offsets {
            name: 16,
            script: 24,
            literal: 32,
            unique: 40,
            ..Offsets::default()
        };
        words[at::OFFSETS..at::OTHERS].copy_from_slice(&offsets.words());
        let layout = Layout {
            deoptimization: 8,
            positions: 16,
            flags: 24,
            function: 0,
            inlined: 1,
            literals: 2,
            ..Layout::default()
        };
        words[at::OTHERS..at::OTHERS + Layout::WORDS].copy_from_slice(&layout.words());
        TargetMemory::new(std::process::id(), words, 0)
    }
}
