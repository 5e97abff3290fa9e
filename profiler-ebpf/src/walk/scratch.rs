//! Scratch memory of a walk along a user stack, and what is kept from one to the next.
//!
//! In: nothing but words. Out: the frame that is looked at. Never: walks.

use super::runtime::scratch::SavedChains;
use crate::platform::{config, word::Word};
use profiler_common::{
    abi::{CodeState, Fallbacks, Rule, Switches},
    intern::Hash,
    walk::{
        ahead::AHEAD,
        arch::REGISTERS,
        native::{FRAME_WORDS, Frame},
    },
};

/// A user stack being walked.
#[repr(C)]
pub(crate) struct Walk {
    /// The first frame's registers by their DWARF numbers.
    pub(crate) registers: [Word; REGISTERS],
    frame: [Word; FRAME_WORDS],
    /// How many words are noted.
    pub(crate) words: Word,
    /// Why it ended; a [`profiler_common::abi::StackEnd`].
    pub(crate) end: Word,
    /// Fallbacks beside unwind instructions: the bits of a [`profiler_common::abi::Fallbacks`].
    pub(crate) fallbacks: Word,
    /// Which of `known` is the process's.
    pub(crate) place: Word,
    /// Recent findings in the memory of several processes.
    pub(crate) known: [ProcessCache; KNOWN],
    /// How often the index of code had changed when the walk began.
    pub(crate) code_changes: Word,
    /// Not zero where firings find programs at the first instruction of a function.
    pub(crate) at_entry: Word,
    /// Rules that were found lately, each at the place that its address has.
    pub(crate) rules: [Remembered; REMEMBERED],
    /// The number of what lies where in the process's memory; see [`ProcessCache::memory_state`].
    pub(crate) memory_state: Word,
    /// The last number given.
    pub(crate) memory_states: Word,
    /// Words read of the stack last.
    pub(crate) stack: StackCopy,
    /// The search for a return address.
    pub(crate) guess: Guess,
}

impl Walk {
    /// Whether the firing found the program at the first instruction of a function.
    #[inline(always)]
    pub(crate) fn is_at_entry(&self) -> bool {
        config::has(Switches::AT_ENTRY) && self.at_entry.load() != 0
    }

    /// Notes that something else than unwind instructions was used.
    #[inline(always)]
    pub(crate) fn add_fallback(&self, fallback: Fallbacks) {
        let used = self.fallbacks.load();
        self.fallbacks.store(used | u64::from(fallback.bits()));
    }

    /// The frame that is looked at.
    #[inline(always)]
    pub(crate) fn frame(&self) -> Frame {
        let mut words = [0; FRAME_WORDS];
        for (word, place) in words.iter_mut().zip(&self.frame) {
            *word = place.load();
        }
        Frame::from_words(words)
    }

    /// The stack pointer of the frame that is looked at.
    #[inline(always)]
    pub(crate) fn sp(&self) -> u64 {
        // As `Frame::words` has it.
        self.frame[1].load()
    }

    /// Saves frame pointer and saved register of the frame that is looked at, as far as known; see [`kept_registers`].
    #[inline(always)]
    pub(crate) fn save_registers(&self, into: &[Word; 3]) {
        // As `Frame::words` has it.
        for (place, word) in into.iter().zip(&self.frame[2..]) {
            place.store(word.load());
        }
    }

    /// Sets the stack pointer of the frame that is looked at.
    #[inline(always)]
    pub(crate) fn set_sp(&self, sp: u64) {
        // As `Frame::words` has it.
        self.frame[1].store(sp);
    }

    /// Sets the frame to look at next.
    #[inline(always)]
    pub(crate) fn put(&self, frame: Frame) {
        for (place, word) in self.frame.iter().zip(frame.words()) {
            place.store(word);
        }
    }
}

/// A search for a return address; see [`crate::walk::guess`].
#[repr(C)]
pub(crate) struct Guess {
    /// The stack pointer of the last frame in code that nothing explains.
    pub(crate) sp: Word,
    /// In how many words above it a return address may be.
    pub(crate) most: Word,
    /// How many words there were when that was noted; zero if there is none.
    pub(crate) noted: Word,
    /// How many words there were when the walk's first search began; zero if none did.
    pub(crate) first_words: Word,
    /// How the walk ends if nothing is found; a [`profiler_common::abi::StackEnd`].
    pub(crate) end: Word,
    /// [`Walk::fallbacks`] when the first search began.
    pub(crate) fallbacks: Word,
    /// As `first_words`, when the last search began.
    pub(crate) words: Word,
    /// The chains' state when the first search began, and when the last did.
    pub(crate) chains: [SavedChains; 2],
    /// The address of the next word to look at.
    pub(crate) place: Word,
    /// Where the words end that are looked at.
    pub(crate) last: Word,
    /// Not zero if the last row that was not followed is a root's.
    pub(crate) is_root_row: Word,
    /// Not zero while the frame that is looked at is no more than such a word.
    pub(crate) is_trying: Word,
}

/// A copy of words of a user stack; see [`profiler_common::walk::ahead`].
#[repr(C)]
pub(crate) struct StackCopy {
    /// The address of the first, in bytes.
    pub(crate) start: Word,
    /// How many there are.
    pub(crate) count: Word,
    pub(crate) words: [Word; AHEAD],
}

/// For how many addresses rules are kept from one firing to the next. A power of two. Finding a rule
/// touches a dozen lines of memory, which the program has pushed out of the caches since the last firing;
/// this touches one. 4 KiB.
pub(crate) const REMEMBERED: usize = 128;

/// A rule that was found.
#[repr(C, align(32))]
pub(crate) struct Remembered {
    /// The address of the object's own that it holds for.
    pub(crate) address: Word,
    /// Which table, in which state of the index of code; zero if there is no rule here yet.
    pub(crate) table: Word,
    /// The [`profiler_common::abi::Rule`].
    pub(crate) rule: Word,
}

/// In how many sets rules of return addresses are kept: a power of two. 8 KiB.
pub(crate) const RETURN_SETS: usize = 128;

/// A set of rules of return addresses: a line of memory. The first is the latest.
#[repr(C, align(64))]
pub(crate) struct ReturnRules(pub(crate) [ReturnRule; 2]);

/// The rule of a return address of one process, in one state of its memory.
#[repr(C, align(32))]
pub(crate) struct ReturnRule {
    pub(crate) address: Word,
    /// See [`ProcessCache::memory_state`]; zero if there is no rule here yet.
    pub(crate) memory_state: Word,
    /// A [plain](profiler_common::abi::Rule::is_plain) one, or [`KNOWN_FUNCTION`](Self::KNOWN_FUNCTION).
    pub(crate) rule: Word,
    /// The [`RuntimeKind`] whose levels a frame there may run, plus one; zero if it runs none.
    pub(crate) runtime: Word,
}

impl ReturnRule {
    /// In place of a rule: the set holds [a function of a runtime's](super::known_functions::keep).
    pub(crate) const KNOWN_FUNCTION: u64 = Rule::MISSING.0;
}

/// For how many processes answers are kept from one firing to the next. A power of two.
pub(crate) const KNOWN: usize = 8;

/// How many answers are kept of one process: stacks go back and forth between few objects. A power of two.
pub(crate) const FOUND: usize = 4;

/// Recent findings in the memory of one process.
#[repr(C)]
pub(crate) struct ProcessCache {
    /// Which process, and which state of its mappings and of the index of code; see
    /// [`crate::walk::code_cache::refresh`].
    pub(crate) stamp: [Word; 4],
    /// The last stack whose mappings were checked, and their check; see [`crate::events::mapping_event::check_stack`].
    pub(crate) checked: Word,
    pub(crate) check: Word,
    /// A number that no other stamp has or had on this CPU slot; zero where the kernel does not count changes of
    /// mappings.
    pub(crate) memory_state: Word,
    /// How often the kernel was asked what lies at an address.
    pub(crate) turn: Word,
    /// Which of `found` is looked at.
    pub(crate) current: Word,
    /// The descriptor of a runtime that was met in this process, or zero.
    pub(crate) runtime: Word,
    /// Load bias of that runtime's file.
    pub(crate) bias: Word,
    /// How many searches for return addresses found nothing, one after the other; see [`crate::walk::guess`].
    pub(crate) fruitless: Word,
    /// The last answers.
    pub(crate) found: [CachedCode; FOUND],
}

impl ProcessCache {
    /// The number of the state of the process's mappings, as [`crate::walk::mappings::changes`] has it.
    #[inline(always)]
    pub(crate) fn changes(&self) -> u64 {
        self.stamp[2].load() & u64::from(u32::MAX)
    }

    /// Keeps the check of a stack's mappings.
    #[inline(always)]
    pub(crate) fn keep_check(&self, stamp: Hash, check: u32) {
        self.checked.store(stamp.0);
        self.check.store(u64::from(check));
    }

    /// Whether the kernel counts changes of mappings.
    #[inline(always)]
    pub(crate) fn has_changes(&self) -> bool {
        self.memory_state.load() != 0
    }
}

/// Cached answer for the addresses of one range: the code there.
#[repr(C)]
pub(crate) struct CachedCode {
    pub(crate) start: Word,
    pub(crate) end: Word,
    /// Distance from an address to the object's own: own = address + shift.
    pub(crate) shift: Word,
    /// The [`CodeState`] of published code, or one of the constants.
    pub(crate) kind: Word,
    /// The [`profiler_common::abi::MappingKey`].
    pub(crate) mapping_key: Word,
    /// Hash of the process and the mapping as long as user space may not know it, then zero; see
    /// [`crate::events::mapping_event`].
    pub(crate) unreported: Word,
}

impl CachedCode {
    /// No code.
    pub(crate) const NOWHERE: u64 = 0;
    /// Code without rows.
    pub(crate) const NO_TABLE: u64 = CodeState::BARE.0;
    /// Code of a file that has not been published.
    pub(crate) const UNKNOWN: u64 = 1 << 35;
}

impl CachedCode {
    /// Whether it says what lies at an address.
    #[inline(always)]
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.start.load() <= address && address < self.end.load()
    }
}
