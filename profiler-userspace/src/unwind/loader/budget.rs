//! How long reading code may take, of one CPU.

use std::time::{Duration, Instant};

/// So long it may take at first.
const FIRST: Duration = Duration::from_millis(100);

/// And so many hundredths of the time since then.
const PERCENT: u32 = 1;

/// The time that reading the code of functions may take.
pub(super) struct Budget {
    began: Instant,
    spent: Duration,
}

impl Budget {
    /// From now on.
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            spent: Duration::ZERO,
        }
    }

    /// Whether something is left.
    pub(super) fn has_time(&self) -> bool {
        self.spent < FIRST + self.began.elapsed() * PERCENT / 100
    }

    /// Does something, which counts by the CPU time of this thread.
    pub(super) fn spend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = thread_time();
        let made = work();
        self.spent += thread_time().saturating_sub(before);
        made
    }
}

/// The CPU time that this thread has had.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone_until_time_has_passed() {
        let mut budget = Budget::new();
        assert!(budget.has_time());
        budget.spend(|| while thread_time() < FIRST * 3 {});
        assert!(!budget.has_time());
        budget.began = budget.began.checked_sub(Duration::from_secs(60)).unwrap();
        assert!(budget.has_time());
    }
}
