//! How long reading code may take, of one CPU.

use std::time::{Duration, Instant};

/// So long reading the code of functions may take at first.
const FIRST: Duration = Duration::from_millis(100);

/// And so large a share of the time since then.
const SHARE: f64 = 0.01;

/// CPU time that some work may take.
pub(super) struct Budget {
    began: Instant,
    first: Duration,
    share: f64,
    spent: Duration,
}

impl Budget {
    /// For reading the code of functions, from now on.
    pub(super) fn of_functions() -> Self {
        Self::new(FIRST, SHARE)
    }

    /// So much at first, and this share of the time from now on.
    pub(super) fn new(first: Duration, share: f64) -> Self {
        Self {
            began: Instant::now(),
            first,
            share,
            spent: Duration::ZERO,
        }
    }

    /// Whether something is left.
    pub(super) fn has_time(&self) -> bool {
        self.spent < self.first + self.began.elapsed().mul_f64(self.share)
    }

    /// Does something, which counts by the CPU time of this thread.
    pub(super) fn spend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = thread_time();
        let made = work();
        self.add(thread_time().saturating_sub(before));
        made
    }

    /// Counts what was spent elsewhere.
    pub(super) fn add(&mut self, spent: Duration) {
        self.spent += spent;
    }
}

/// The CPU time that this thread has had.
pub(super) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone_until_time_has_passed() {
        let mut budget = Budget::of_functions();
        assert!(budget.has_time());
        budget.spend(|| while thread_time() < FIRST * 3 {});
        assert!(!budget.has_time());
        budget.began = budget.began.checked_sub(Duration::from_secs(60)).unwrap();
        assert!(budget.has_time());
    }
}
