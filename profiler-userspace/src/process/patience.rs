//! Work that takes as long as another process likes: what it maps, or where its files are, may be a file system of its own.
//!
//! In: work. Out: what comes of it in time, or how late it is. It is done on a thread of its own, which is left alone if it does not end.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// After so long all the time is there again that such work may take.
const AGAIN: Duration = Duration::from_secs(3600);

/// So many threads at most are left alone: each stays for as long as what it waits for.
const MAX_LEFT_ALONE: usize = 256;

/// How long such work is waited for.
#[derive(Debug)]
pub(super) struct Patience {
    /// In all in [`AGAIN`].
    all: Duration,
    each: Duration,
    /// So much of each is not counted that comes to an end.
    free: Duration,
    left: Mutex<Left>,
    /// How many threads work, also those that were left alone.
    threads: LazyLock<Arc<AtomicUsize>>,
}

/// Time that is left.
#[derive(Debug)]
struct Left {
    time: Duration,
    /// When it was all; none before the first work.
    since: Option<Instant>,
}

/// Work that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// It took too long, or could not be begun.
    TookTooLong,
    /// It was not begun: earlier work has taken all the time.
    NoTimeLeft,
}

/// Counts a thread until it ends, in whichever way.
struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Patience {
    /// So many milliseconds in all in an hour, and at most so many for each; the first ones of what ends are free.
    pub(super) const fn an_hour(all_ms: u64, each_ms: u64, free_ms: u64) -> Self {
        let all = Duration::from_millis(all_ms);
        Self {
            all,
            each: Duration::from_millis(each_ms),
            free: Duration::from_millis(free_ms),
            left: Mutex::new(Left {
                time: all,
                since: None,
            }),
            threads: LazyLock::new(Arc::default),
        }
    }

    /// Whether work would be begun now.
    pub(super) fn has_time(&self) -> bool {
        let is_crowded = self.threads.load(Relaxed) >= MAX_LEFT_ALONE;
        !is_crowded && !self.left_at(Instant::now()).is_zero()
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
        if !self.has_time() {
            return Err(Late::NoTimeLeft);
        }
        let began = Instant::now();
        let left = self.left_at(began);
        let (answers, answer) = mpsc::channel();
        self.threads.fetch_add(1, Relaxed);
        let working = Working(Arc::clone(&self.threads));
        let thread = Builder::new().name(name.to_owned());
        thread
            .spawn(move || {
                let _working = working;
                // Nobody may be waiting any more.
                let _sent = answers.send(work());
            })
            .map_err(|_| Late::TookTooLong)?;
        let answer = answer.recv_timeout(left.min(self.each));
        let took = began.elapsed();
        let counted = match answer {
            Ok(_) => took.saturating_sub(self.free),
            Err(_) => took,
        };
        let mut now = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        now.time = now.time.saturating_sub(counted);
        drop(now);
        answer.map_err(|_| Late::TookTooLong)
    }

    /// Time that is left now.
    fn left_at(&self, now: Instant) -> Duration {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *left.since.get_or_insert(now);
        if now.saturating_duration_since(since) >= AGAIN {
            (left.time, left.since) = (self.all, Some(now));
        }
        left.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_end_is_waited_for_until_no_time_is_left() {
        let patience = Patience::an_hour(1500, 1000, 500);
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
        let later = |minutes: u64| patience.left_at(began + Duration::from_secs(60 * minutes));
        assert_eq!(later(59), Duration::ZERO);
        assert_eq!(later(61).as_millis(), 1500, "an hour is over");
        assert_eq!(patience.wait("quick", || 1), Ok(1));
    }

    #[test]
    fn few_threads_are_left_alone() {
        let patience = Patience::an_hour(1_000_000, 1, 0);
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let endless = || {
            let ended = Arc::clone(&ended);
            patience.wait("endless", move || {
                ended.lock().is_ok_and(|it| it.recv().is_ok())
            })
        };
        for _ in 0..MAX_LEFT_ALONE {
            assert_eq!(endless(), Err(Late::TookTooLong));
        }
        assert_eq!(endless(), Err(Late::NoTimeLeft));
        drop(end);
        while patience.threads.load(Relaxed) > 0 {
            std::thread::yield_now();
        }
        // On a busy machine, what is quick takes longer than it may, too.
        assert_ne!(patience.wait("quick", || 1), Err(Late::NoTimeLeft));
    }
}
