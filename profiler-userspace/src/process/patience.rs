//! Work that takes as long as another process likes: what it maps, or where its files are, may be a file system of its own.
//!
//! In: work. Out: what comes of it in time, or how late it is. It is done on a thread of its own, which is left alone if it does not end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long such work is waited for.
#[derive(Debug)]
pub(super) struct Patience {
    /// In all, in milliseconds, from now on.
    left_ms: AtomicU64,
    each_ms: u64,
    /// So much of each is not counted that comes to an end.
    free_ms: u64,
}

/// Work that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// It took too long, or could not be begun.
    TookTooLong,
    /// It was not begun: earlier work has taken all the time.
    NoTimeLeft,
}

impl Patience {
    /// So many milliseconds in all, and at most so many for each; the first ones of what ends are free.
    pub(super) const fn new(all_ms: u64, each_ms: u64, free_ms: u64) -> Self {
        Self {
            left_ms: AtomicU64::new(all_ms),
            each_ms,
            free_ms,
        }
    }

    /// Result of work.
    ///
    /// # Errors
    /// When that takes too long, or earlier work has taken all the time.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Late> {
        let left = self.left_ms.load(Relaxed);
        if left == 0 {
            return Err(Late::NoTimeLeft);
        }
        let (answers, answer) = mpsc::channel();
        let thread = Builder::new().name(name.to_owned());
        let began = Instant::now();
        thread
            .spawn(move || {
                // Nobody may be waiting any more.
                let _sent = answers.send(work());
            })
            .map_err(|_| Late::TookTooLong)?;
        let answer = answer.recv_timeout(Duration::from_millis(left.min(self.each_ms)));
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let free = if answer.is_ok() { self.free_ms } else { 0 };
        let left = left.saturating_sub(took.saturating_sub(free));
        self.left_ms.store(left, Relaxed);
        answer.map_err(|_| Late::TookTooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_end_is_waited_for_until_no_time_is_left() {
        let patience = Patience::new(1500, 1000, 500);
        assert_eq!(patience.wait("quick", || 1), Ok(1));
        let began = Instant::now();
        let mut ends = Vec::new();
        let mut endless = || {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            patience.wait("endless", move || ended.recv().is_ok())
        };
        // Together they take what there is.
        assert_eq!([endless(), endless()], [Err(Late::TookTooLong); 2]);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(1000), "{waited:?}");
        assert_eq!(patience.wait("quick", || 1), Err(Late::NoTimeLeft));
    }
}
