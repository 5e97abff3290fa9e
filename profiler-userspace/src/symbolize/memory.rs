//! How much memory naming may hold at once.
//!
//! In: one limit, and threads that name an object each. Out: turns, each of which says how much its holder may
//! take. What fits into a share goes on side by side with others; what may not fit has the whole limit, and
//! goes on alone. Which of both it is depends on the object and the limit alone, not on the machine or on who
//! comes first: the same names come out everywhere.

use super::side_by_side::MAX_THREADS;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The most that names alone take for any object, in bytes: 16 MiB of headers while these are read; or 24 MiB of
/// minimal debug information, 16 MiB to unpack it and as much for its headers.
pub(super) const NAMES_BYTES: u64 = 64 << 20;

/// The most memory that naming may hold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolMemory {
    /// In bytes; at least [`SymbolMemory::LEAST_MIB`].
    pub bytes: u64,
}

impl SymbolMemory {
    /// What names alone may take, in MiB: less is too little for some objects.
    pub const LEAST_MIB: u32 = (NAMES_BYTES >> 20) as u32;
}

impl Default for SymbolMemory {
    fn default() -> Self {
        Self { bytes: 256 << 20 }
    }
}

/// Hands out turns.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    turns: RwLock<()>,
}

/// The right to take so much memory, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    /// How much, in bytes.
    pub(super) bytes: u64,
    _held: Held<'a>,
}

#[derive(Debug)]
enum Held<'a> {
    Share(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'a, ()>),
    All(#[expect(dead_code, reason = "held, not read")] RwLockWriteGuard<'a, ()>),
}

impl Memory {
    pub(super) const fn new(limit: SymbolMemory) -> Self {
        Self {
            limit: limit.bytes,
            turns: RwLock::new(()),
        }
    }

    /// Waits for a turn for what may want so many bytes. Whoever has one must give it back before asking for
    /// another.
    pub(super) fn turn(&self, wanted: u64) -> Turn<'_> {
        let share = self.limit / MAX_THREADS as u64;
        // There is nothing behind the lock that a panic could have left half done.
        if wanted <= share {
            Turn {
                bytes: share,
                _held: Held::Share(self.turns.read().unwrap_or_else(PoisonError::into_inner)),
            }
        } else {
            Turn {
                bytes: self.limit,
                _held: Held::All(self.turns.write().unwrap_or_else(PoisonError::into_inner)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn those_who_have_a_turn_never_hold_more_than_the_limit() {
        const LIMIT: u64 = 400;
        let memory = Memory::new(SymbolMemory { bytes: LIMIT });
        let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for number in 0..MAX_THREADS as u64 {
                let (memory, held, most) = (&memory, &held, &most);
                scope.spawn(move || {
                    for round in 0..50 {
                        let wanted = [1, 100, 101, 1000][(round + number) as usize % 4];
                        let turn = memory.turn(wanted);
                        assert_eq!(turn.bytes, if wanted <= 100 { 100 } else { LIMIT });
                        let now = held.fetch_add(turn.bytes, Ordering::SeqCst) + turn.bytes;
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::sleep(Duration::from_micros(50));
                        held.fetch_sub(turn.bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), LIMIT);
    }

    #[test]
    fn names_have_a_share_unless_told_to_take_less() {
        let usual = Memory::new(SymbolMemory::default());
        assert_eq!(usual.turn(NAMES_BYTES).bytes, NAMES_BYTES);
        let least = SymbolMemory {
            bytes: u64::from(SymbolMemory::LEAST_MIB) << 20,
        };
        assert_eq!(Memory::new(least).turn(NAMES_BYTES).bytes, NAMES_BYTES);
    }
}
