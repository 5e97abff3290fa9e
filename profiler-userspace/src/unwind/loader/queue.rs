//! Jobs on their way to the threads that make unwind tables.
//!
//! In: open files, and how soon their tables are needed. Out: one job at a time, those of high priority first.
//! One of the workers takes no others once walks come to files, and no large ones, so that the rest waits behind none of these.

use super::{Depth, lock};
use profiler_common::abi::CodeKey;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::{Deref, Range};
use std::os::unix::fs::MetadataExt as _;
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

/// The work that is wanted on a file. Positions may be there more than once.
#[derive(Debug)]
pub(super) enum QueuedWork {
    /// Its table, with rows at these positions in it at least.
    Table(Depth, Vec<u64>),
    /// Rows of what it describes around these positions.
    Descriptions(Vec<u64>),
    /// Rows of the functions around these positions in it.
    Functions(Vec<u64>),
    /// Its table for memory that holds a part of it.
    Copy(CodeCopy),
}

impl QueuedWork {
    /// Takes in other work on the same file that can be done with this; gives it back if it cannot.
    fn merge(&mut self, other: Self) -> Result<(), Self> {
        match (self, other) {
            (Self::Table(depth, all), Self::Table(other, positions)) if *depth == other => {
                add(all, positions);
            }
            (Self::Descriptions(all), Self::Descriptions(positions))
            | (Self::Functions(all), Self::Functions(positions)) => add(all, positions),
            (_, other) => return Err(other),
        }
        Ok(())
    }
}

/// Adds positions, each once: walks come to the same ones each second until the work is done.
fn add(all: &mut Vec<u64>, positions: Vec<u64>) {
    all.extend(positions);
    all.sort_unstable();
    all.dedup();
}

/// Memory that holds a part of a file's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeCopy {
    /// The key by which the kernel half knows it.
    pub(super) key: CodeKey,
    /// Its positions there.
    pub(super) range: Range<u64>,
    /// The offset in the file of what is at the first of them.
    pub(super) offset: u64,
}

/// A file of which something is to be made.
pub(super) struct Job {
    pub(super) key: CodeKey,
    pub(super) file: File,
    pub(super) wanted: QueuedWork,
    /// About how much there is to do: the file's size in bytes.
    size: u64,
    /// Whether its file had a name when it was asked for.
    had_name: bool,
}

/// Whether a file is in a folder.
fn has_name(file: &File) -> bool {
    file.metadata().is_ok_and(|status| status.nlink() > 0)
}

/// Files of this size and more are alike, in bytes: what takes long in them is not known before.
const LARGE_BYTES: u64 = 8 << 20;

impl Job {
    /// This is to be made of a file.
    pub(super) fn new(key: CodeKey, file: File, wanted: QueuedWork) -> Self {
        let bytes = match wanted {
            QueuedWork::Descriptions(_) => 0,
            QueuedWork::Table(..) | QueuedWork::Copy(_) => {
                file.metadata().map_or(0, |metadata| metadata.len())
            }
            // The table that they go into is made before.
            QueuedWork::Functions(_) => LARGE_BYTES,
        };
        Self {
            key,
            had_name: has_name(&file),
            file,
            wanted,
            size: bytes.min(LARGE_BYTES),
        }
    }

    /// Whether its file was removed since it was asked for.
    pub(super) fn was_removed(&self) -> bool {
        self.had_name && !has_name(&self.file)
    }
}

/// Jobs waiting for a worker.
#[derive(Default)]
pub(super) struct JobQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    high: VecDeque<Job>,
    low: VecDeque<Job>,
    /// Jobs that were taken and are not done.
    running: usize,
    /// Whether nothing is sampled yet: all workers take all jobs.
    preparing: bool,
    /// Whether a worker has panicked: its job will never be done.
    worker_lost: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.high.is_empty() && self.low.is_empty() && self.running == 0
    }

    fn jobs(&mut self, priority: Priority) -> &mut VecDeque<Job> {
        match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        }
    }

    /// Has a job done with one of its file that waits at its priority; gives it back if none does.
    fn join(&mut self, priority: Priority, job: Job) -> Option<Job> {
        let Job {
            key,
            file,
            mut wanted,
            size,
            had_name,
        } = job;
        let of_file = |waiting: &&mut Job| waiting.key == key;
        for waiting in self.jobs(priority).iter_mut().filter(of_file) {
            match waiting.wanted.merge(wanted) {
                Ok(()) => return None,
                Err(other) => wanted = other,
            }
        }
        Some(Job {
            key,
            file,
            wanted,
            size,
            had_name,
        })
    }

    fn pop(&mut self, least: Priority) -> Option<Job> {
        let takes_all = least == Priority::Low || self.preparing;
        // Small ones that come meanwhile need not wait for a large one.
        let is_taken = |job: &mut Job| takes_all || job.size < LARGE_BYTES;
        let high = self.high.pop_front_if(is_taken);
        high.or_else(|| takes_all.then(|| self.low.pop_front())?)
    }
}

impl JobQueue {
    /// Adds a job behind others of its priority, and in front of those that may take longer by far. One that can be done with a job
    /// of the same file becomes part of it: so no more files are open than wait.
    pub(super) fn push(&self, priority: Priority, job: Job) {
        let mut state = lock(&self.state);
        let Some(job) = state.join(priority, job) else {
            return;
        };
        let jobs = state.jobs(priority);
        let is_before = |other: &Job| other.size <= job.size;
        jobs.insert(jobs.partition_point(is_before), job);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for a job of at least this priority, and takes it; none if there is none until then.
    pub(super) fn pop(&self, least: Priority, until: Instant) -> Option<RunningJob<'_>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.pop(least) {
                state.running += 1;
                return Some(RunningJob { queue: self, job });
            }
            state = self.wait_until(state, until)?;
        }
    }

    /// Says whether nothing is sampled yet.
    pub(super) fn set_preparing(&self, preparing: bool) {
        lock(&self.state).preparing = preparing;
        self.changed.notify_all();
    }

    /// Waits until all jobs are done, at most until the deadline.
    pub(super) fn wait_until_idle(&self, deadline: Option<Instant>) {
        let mut state = lock(&self.state);
        while !state.is_idle() && !state.worker_lost {
            let Some(deadline) = deadline else {
                state = self.wait(state);
                continue;
            };
            let Some(changed) = self.wait_until(state, deadline) else {
                return;
            };
            state = changed;
        }
    }

    /// Whether all jobs are done.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.state).is_idle()
    }

    /// Waits for a change; none if it is too late for that.
    fn wait_until<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Instant,
    ) -> Option<MutexGuard<'a, State>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let waited = self.changed.wait_timeout(state, left);
        Some(waited.unwrap_or_else(PoisonError::into_inner).0)
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
        drop(state);
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(inode: u64) -> Job {
        let key = CodeKey {
            device: 1,
            inode,
            modified: 1,
        };
        let file = File::open("/dev/null").unwrap();
        Job::new(key, file, QueuedWork::Table(Depth::Outline, Vec::new()))
    }

    fn pop(queue: &JobQueue, least: Priority) -> RunningJob<'_> {
        let soon = Instant::now() + std::time::Duration::from_secs(60);
        queue.pop(least, soon).unwrap()
    }

    #[test]
    fn large_jobs_are_left_to_the_worker_for_all() {
        let queue = JobQueue::default();
        let large = Job {
            size: LARGE_BYTES,
            ..job(1)
        };
        queue.push(Priority::High, large);
        let waits = std::thread::scope(|scope| {
            let thread = scope.spawn(|| pop(&queue, Priority::High).key.inode);
            assert_eq!(pop(&queue, Priority::Low).key.inode, 1);
            queue.push(Priority::High, job(2));
            thread.join().unwrap()
        });
        assert_eq!(waits, 2);
    }

    #[test]
    fn jobs_of_high_priority_come_first_and_have_a_worker_of_their_own() {
        let queue = JobQueue::default();
        queue.push(Priority::Low, job(1));
        queue.push(Priority::High, job(2));
        queue.push(Priority::High, job(3));
        let first = pop(&queue, Priority::Low);
        assert_eq!(first.key.inode, 2);
        assert_eq!(pop(&queue, Priority::High).key.inode, 3);
        let waits = std::thread::scope(|scope| {
            let thread = scope.spawn(|| pop(&queue, Priority::High).key.inode);
            assert_eq!(pop(&queue, Priority::Low).key.inode, 1);
            queue.push(Priority::High, job(4));
            thread.join().unwrap()
        });
        assert_eq!(waits, 4);
    }

    #[test]
    fn small_files_come_before_large_ones() {
        let queue = JobQueue::default();
        for (inode, size) in [(1, 1 << 20), (2, 1 << 10), (3, 1 << 20), (4, 1)] {
            let size = size + LARGE_BYTES * u64::from(inode == 1);
            let job = Job { size, ..job(inode) };
            queue.push(Priority::Low, job);
        }
        let order: [u64; 4] = std::array::from_fn(|_| pop(&queue, Priority::Low).key.inode);
        assert_eq!(order, [4, 2, 3, 1]);
    }

    #[test]
    fn a_file_that_is_removed_meanwhile_is_told_from_one_that_never_had_a_name() {
        let of = |file: &File| Job::new(job(1).key, file.try_clone().unwrap(), job(1).wanted);
        let named = tempfile::NamedTempFile::new().unwrap();
        let (with, without) = (of(named.as_file()), of(&tempfile::tempfile().unwrap()));
        assert!(!with.was_removed() && !without.was_removed());
        named.close().unwrap();
        assert!(with.was_removed() && !without.was_removed());
    }

    #[test]
    fn work_on_a_file_that_waits_is_done_together() {
        let queue = JobQueue::default();
        let push = |inode, wanted| {
            let job = Job {
                wanted,
                ..job(inode)
            };
            queue.push(Priority::Low, job);
        };
        push(1, QueuedWork::Functions(vec![9, 3]));
        push(1, QueuedWork::Descriptions(vec![5]));
        push(2, QueuedWork::Functions(vec![4]));
        for _ in 0..1000 {
            push(1, QueuedWork::Functions(vec![3, 7]));
        }
        push(1, QueuedWork::Table(Depth::Outline, vec![1]));
        push(1, QueuedWork::Table(Depth::Described, vec![2]));
        push(1, QueuedWork::Table(Depth::Outline, vec![2]));
        let mut all = Vec::new();
        while !queue.is_idle() {
            let job = pop(&queue, Priority::Low);
            all.push(format!("{} {:?}", job.key.inode, job.wanted));
        }
        assert_eq!(
            all,
            [
                "1 Functions([3, 7, 9])",
                "1 Descriptions([5])",
                "2 Functions([4])",
                "1 Table(Outline, [1, 2])",
                "1 Table(Described, [2])",
            ]
        );
    }

    #[test]
    fn the_queue_is_idle_when_all_taken_jobs_are_done() {
        let queue = JobQueue::default();
        queue.wait_until_idle(None);
        queue.push(Priority::Low, job(1));
        assert!(!queue.is_idle());
        let taken = pop(&queue, Priority::Low);
        assert!(!queue.is_idle());
        drop(taken);
        assert!(queue.is_idle());
        queue.wait_until_idle(None);
    }

    #[test]
    fn a_wait_with_a_deadline_ends_then_whatever_is_left_to_do() {
        let queue = JobQueue::default();
        queue.wait_until_idle(Some(Instant::now() + std::time::Duration::from_secs(60)));
        queue.push(Priority::Low, job(1));
        queue.wait_until_idle(Some(Instant::now()));
        assert!(queue.pop(Priority::High, Instant::now()).is_none());
        assert_eq!(pop(&queue, Priority::Low).key.inode, 1);
    }

    #[test]
    fn before_sampling_all_workers_take_all_jobs() {
        let queue = JobQueue::default();
        queue.push(Priority::Low, job(1));
        queue.push(Priority::Low, job(2));
        queue.set_preparing(true);
        assert_eq!(pop(&queue, Priority::High).key.inode, 1);
        queue.set_preparing(false);
        queue.push(Priority::High, job(3));
        assert_eq!(pop(&queue, Priority::High).key.inode, 3);
    }

    #[test]
    fn a_panicked_worker_blocks_nobody() {
        let queue = JobQueue::default();
        queue.push(Priority::Low, job(1));
        queue.push(Priority::Low, job(2));
        let gone = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _taken = pop(&queue, Priority::Low);
                // Without printing a panic message among the tests' output.
                std::panic::resume_unwind(Box::new(()));
            });
            thread.join()
        });
        assert!(gone.is_err());
        queue.wait_until_idle(None);
    }
}
