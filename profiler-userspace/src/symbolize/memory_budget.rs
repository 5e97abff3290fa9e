//! How much memory symbolization may hold at once.
//!
//! In: one limit, and threads that each symbolize an object. Out: permits, each with the amount its holder may
//! use. What fits into a share runs beside others; what may not fit gets the whole limit and runs alone.
//! Which it is depends only on the object and the limit, not on the machine or on timing: names come out the
//! same everywhere.

use super::parallel::MAX_THREADS;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The most that names alone take for any object, in bytes: 16 MiB of headers while these are read; or 24 MiB
/// of minimal debug information, 16 MiB to unpack it and as much for its headers.
pub(super) const NAMES_BYTES: u64 = 64 << 20;

/// The limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolMemory {
    /// In bytes; at least [`SymbolMemory::MIN_MIB`].
    pub bytes: u64,
}

impl SymbolMemory {
    /// The least limit, in MiB: names of some objects need that much.
    pub const MIN_MIB: u32 = (NAMES_BYTES >> 20) as u32;
}

impl Default for SymbolMemory {
    fn default() -> Self {
        Self { bytes: 256 << 20 }
    }
}

/// Memory that threads share.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    limit: u64,
    guard: RwLock<()>,
}

/// The right to use so much memory, until it is dropped.
#[derive(Debug)]
pub(super) struct MemoryPermit<'a> {
    /// How much, in bytes.
    pub(super) bytes: u64,
    _guard: Guard<'a>,
}

#[derive(Debug)]
enum Guard<'a> {
    Share(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'a, ()>),
    All(#[expect(dead_code, reason = "held, not read")] RwLockWriteGuard<'a, ()>),
}

impl MemoryBudget {
    pub(super) const fn new(limit: SymbolMemory) -> Self {
        Self {
            limit: limit.bytes,
            guard: RwLock::new(()),
        }
    }

    /// Waits for a permit for a need of so many bytes. A thread must drop its permit before it acquires another.
    pub(super) fn acquire(&self, wanted: u64) -> MemoryPermit<'_> {
        let share = self.limit / MAX_THREADS as u64;
        // No panic could leave what is behind the lock half changed.
        if wanted <= share {
            MemoryPermit {
                bytes: share,
                _guard: Guard::Share(self.guard.read().unwrap_or_else(PoisonError::into_inner)),
            }
        } else {
            MemoryPermit {
                bytes: self.limit,
                _guard: Guard::All(self.guard.write().unwrap_or_else(PoisonError::into_inner)),
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
    fn holders_of_memory_permits_stay_within_the_limit() {
        const LIMIT: u64 = 400;
        let memory = MemoryBudget::new(SymbolMemory { bytes: LIMIT });
        let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for number in 0..MAX_THREADS as u64 {
                let (budget, held, most) = (&memory, &held, &most);
                scope.spawn(move || {
                    for round in 0..50 {
                        let wanted = [1, 100, 101, 1000][(round + number) as usize % 4];
                        let permit = budget.acquire(wanted);
                        assert_eq!(permit.bytes, if wanted <= 100 { 100 } else { LIMIT });
                        let now = held.fetch_add(permit.bytes, Ordering::SeqCst) + permit.bytes;
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::sleep(Duration::from_micros(50));
                        held.fetch_sub(permit.bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), LIMIT);
    }

    #[test]
    fn names_get_their_share_of_memory_unless_limited() {
        let usual = MemoryBudget::new(SymbolMemory::default());
        assert_eq!(usual.acquire(NAMES_BYTES).bytes, NAMES_BYTES);
        let least = SymbolMemory {
            bytes: u64::from(SymbolMemory::MIN_MIB) << 20,
        };
        assert_eq!(
            MemoryBudget::new(least).acquire(NAMES_BYTES).bytes,
            NAMES_BYTES
        );
    }
}
