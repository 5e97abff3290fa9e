//! Jobs on their way to the threads that make unwind tables.
//!
//! In: open files, and how soon their tables are needed. Out: one job at a time, those of high priority first.
//! One of the workers takes no others once sampling has begun, so that these wait behind no normal job that is taken from then on.

use super::{Depth, lock};
use profiler_common::abi::CodeKey;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How soon a table is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// A walk has reached it, or may at any moment.
    High,
    /// Before a walk reaches it.
    Low,
}

/// A file whose table is to be made.
pub(super) struct Job {
    pub(super) key: CodeKey,
    pub(super) file: File,
    pub(super) depth: Depth,
}

/// Called when all jobs are done, once for each [request](JobQueue::notify_when_idle).
pub(crate) type OnIdle = Box<dyn Fn() + Send + Sync>;

/// Jobs waiting for a worker.
pub(super) struct JobQueue {
    state: Mutex<State>,
    changed: Condvar,
    on_idle: OnIdle,
}

#[derive(Default)]
struct State {
    high: VecDeque<Job>,
    low: VecDeque<Job>,
    /// Jobs that were taken and are not done.
    running: usize,
    /// Whether nothing is sampled yet: all workers take all jobs.
    preparing: bool,
    /// Whether `on_idle` is to be called when all jobs are done.
    notify: bool,
    /// Whether a worker has panicked: its job will never be done.
    worker_lost: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.high.is_empty() && self.low.is_empty() && self.running == 0
    }

    fn pop(&mut self, least: Priority) -> Option<(Priority, Job)> {
        let high = self.high.pop_front().map(|job| (Priority::High, job));
        high.or_else(|| {
            let takes_all = least == Priority::Low || self.preparing;
            let low = takes_all.then(|| self.low.pop_front())?;
            low.map(|job| (Priority::Low, job))
        })
    }
}

impl JobQueue {
    /// An empty queue.
    pub(super) fn new(on_idle: OnIdle) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            on_idle,
        }
    }

    /// Adds a job behind others of its priority.
    pub(super) fn push(&self, priority: Priority, job: Job) {
        let mut state = lock(&self.state);
        match priority {
            Priority::High => state.high.push_back(job),
            Priority::Low => state.low.push_back(job),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for a job of at least this priority, and takes it.
    pub(super) fn pop(&self, least: Priority) -> RunningJob<'_> {
        let mut state = lock(&self.state);
        loop {
            if let Some((priority, job)) = state.pop(least) {
                state.running += 1;
                return RunningJob {
                    queue: self,
                    priority,
                    job,
                };
            }
            state = self.wait(state);
        }
    }

    /// Waits until all jobs are done.
    pub(super) fn wait_until_idle(&self) {
        let mut state = lock(&self.state);
        while !state.is_idle() && !state.worker_lost {
            state = self.wait(state);
        }
    }

    /// Says whether nothing is sampled yet.
    pub(super) fn set_preparing(&self, preparing: bool) {
        lock(&self.state).preparing = preparing;
        self.changed.notify_all();
    }

    /// As [`wait_until_idle`](Self::wait_until_idle), at most until then.
    pub(super) fn wait_until(&self, deadline: Instant) {
        let mut state = lock(&self.state);
        while !state.is_idle() && !state.worker_lost {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Calls `on_idle` as soon as all jobs are done, at once if they are.
    pub(super) fn notify_when_idle(&self) {
        let mut state = lock(&self.state);
        state.notify = true;
        self.notify(&mut state);
    }

    fn notify(&self, state: &mut State) {
        if state.is_idle() && std::mem::take(&mut state.notify) {
            (self.on_idle)();
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job taken by a worker. It is done when this is dropped.
pub(super) struct RunningJob<'a> {
    queue: &'a JobQueue,
    /// How soon it is needed.
    pub(super) priority: Priority,
    job: Job,
}

impl Deref for RunningJob<'_> {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.queue.state);
        state.running -= 1;
        state.worker_lost |= std::thread::panicking();
        self.queue.notify(&mut state);
        drop(state);
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    fn job(inode: u64) -> Job {
        Job {
            key: CodeKey {
                device: 1,
                inode,
                modified: 1,
            },
            file: File::open("/dev/null").unwrap(),
            depth: Depth::Described,
        }
    }

    fn queue() -> JobQueue {
        JobQueue::new(Box::new(|| ()))
    }

    #[test]
    fn jobs_of_high_priority_come_first_and_have_a_worker_of_their_own() {
        let queue = queue();
        queue.push(Priority::Low, job(1));
        queue.push(Priority::High, job(2));
        queue.push(Priority::High, job(3));
        let first = queue.pop(Priority::Low);
        assert_eq!((first.priority, first.key.inode), (Priority::High, 2));
        assert_eq!(queue.pop(Priority::High).key.inode, 3);
        let waits = std::thread::scope(|scope| {
            let thread = scope.spawn(|| queue.pop(Priority::High).key.inode);
            assert_eq!(queue.pop(Priority::Low).key.inode, 1);
            queue.push(Priority::High, job(4));
            thread.join().unwrap()
        });
        assert_eq!(waits, 4);
    }

    #[test]
    fn the_queue_is_idle_when_all_taken_jobs_are_done() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let queue = JobQueue::new(Box::new(move || {
            counted.fetch_add(1, Relaxed);
        }));
        queue.wait_until_idle();
        queue.push(Priority::Low, job(1));
        queue.notify_when_idle();
        let taken = queue.pop(Priority::Low);
        assert_eq!(calls.load(Relaxed), 0);
        drop(taken);
        assert_eq!(calls.load(Relaxed), 1);
        queue.wait_until_idle();
        queue.push(Priority::Low, job(1));
        drop(queue.pop(Priority::Low));
        assert_eq!(calls.load(Relaxed), 1, "nobody asked again");
        queue.notify_when_idle();
        assert_eq!(calls.load(Relaxed), 2, "there was nothing to do");
    }

    #[test]
    fn a_wait_with_a_deadline_ends_then_whatever_is_left_to_do() {
        let queue = queue();
        queue.wait_until(Instant::now() + std::time::Duration::from_secs(60));
        queue.push(Priority::Low, job(1));
        queue.wait_until(Instant::now());
        assert_eq!(queue.pop(Priority::Low).key.inode, 1);
    }

    #[test]
    fn before_sampling_all_workers_take_all_jobs() {
        let queue = queue();
        queue.push(Priority::Low, job(1));
        queue.push(Priority::Low, job(2));
        queue.set_preparing(true);
        assert_eq!(queue.pop(Priority::High).key.inode, 1);
        queue.set_preparing(false);
        queue.push(Priority::High, job(3));
        assert_eq!(queue.pop(Priority::High).key.inode, 3);
    }

    #[test]
    fn a_panicked_worker_blocks_nobody() {
        let queue = queue();
        queue.push(Priority::Low, job(1));
        queue.push(Priority::Low, job(2));
        let gone = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _taken = queue.pop(Priority::Low);
                // Without printing a panic message among the tests' output.
                std::panic::resume_unwind(Box::new(()));
            });
            thread.join()
        });
        assert!(gone.is_err());
        queue.wait_until_idle();
    }
}
