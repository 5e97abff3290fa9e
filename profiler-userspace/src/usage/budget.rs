//! How much CPU time some work may take.
//!
//! In: shares of one CPU, and work. Out: whether there is time for more, and what was taken.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// CPU time that some work may take.
#[derive(Debug)]
pub(crate) struct Budget {
    began: Instant,
    first: Duration,
    share: f64,
    spent: Duration,
}

impl Budget {
    /// So much at first, and this share of the time from now on.
    pub(crate) fn new(first: Duration, share: f64) -> Self {
        Self {
            began: Instant::now(),
            first,
            share,
            spent: Duration::ZERO,
        }
    }

    /// Whether something is left.
    pub(crate) fn has_time(&self) -> bool {
        self.spent < self.first + self.began.elapsed().mul_f64(self.share)
    }

    /// Does something, which counts by the CPU time of this thread.
    pub(crate) fn spend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (made, took) = timed(work);
        self.add(took);
        made
    }

    /// Counts what was spent elsewhere.
    fn add(&mut self, spent: Duration) {
        self.spent += spent;
    }
}

/// The CPU time of work of several threads, and a limit on it, once there is one.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    budget: Mutex<Option<Budget>>,
    spent_ns: AtomicU64,
}

impl Limit {
    /// Limits what comes to this.
    pub(crate) fn set(&self, budget: Budget) {
        *self.lock() = Some(budget);
    }

    /// Whether there is time for more.
    pub(crate) fn has_time(&self) -> bool {
        self.lock().as_ref().is_none_or(Budget::has_time)
    }

    /// Does something, which counts by the CPU time of this thread.
    pub(crate) fn spend<T>(&self, work: impl FnOnce() -> T) -> T {
        let (made, took) = timed(work);
        self.spent_ns.fetch_add(took.as_nanos() as u64, Relaxed);
        if let Some(budget) = &mut *self.lock() {
            budget.add(took);
        }
        made
    }

    /// The CPU time that was taken.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent_ns.load(Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Budget>> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something; says as well how much CPU time of this thread it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = thread_time();
    let made = work();
    (made, thread_time().saturating_sub(before))
}

/// The CPU time that this thread has had.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so much CPU time.
    fn work_for(time: Duration) {
        let begin = thread_time();
        while thread_time() < begin + time {}
    }

    #[test]
    fn what_is_spent_is_gone_until_time_has_passed() {
        const FIRST: Duration = Duration::from_millis(20);
        let mut budget = Budget::new(FIRST, 0.01);
        assert!(budget.has_time());
        budget.spend(|| work_for(FIRST * 3));
        assert!(!budget.has_time());
        budget.began = budget.began.checked_sub(Duration::from_secs(60)).unwrap();
        assert!(budget.has_time());
    }

    #[test]
    fn work_is_counted_also_where_nothing_limits_it() {
        const WORK: Duration = Duration::from_millis(10);
        let limit = Limit::default();
        limit.spend(|| work_for(WORK));
        assert!(limit.has_time() && limit.spent() >= WORK);
        limit.set(Budget::new(WORK, 0.0));
        assert!(limit.has_time(), "what was before it does not count");
        limit.spend(|| work_for(WORK));
        assert!(!limit.has_time() && limit.spent() >= WORK * 2);
    }
}
