//! The threads that make unwind tables and put them in place.
//!
//! In: jobs. Out: tables in the kernel, and [`Loaded`], which counts them. A file that is no object, or has no unwind
//! instructions, is published as such and walked by frame pointers.

use super::cache::{self, Loaded, TableCache};
use super::queue::{Job, JobQueue, Priority, QueuedWork};
use super::{TableStore, lock};
use crate::object::FrameIndex;
use crate::runtime::{self, Detected};
use crate::unwind::functions::Functions;
use crate::unwind::index;
use crate::unwind::{Depth, UnwindTable};
use crate::usage::{Budget, Limit};
use profiler_common::abi::{CodeKey, READ_TOGETHER_BITS};
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// So long reading the code of functions may take at first.
const FIRST: Duration = Duration::from_millis(100);

/// And so large a share of the time since then.
const SHARE: f64 = 0.01;

/// Where all jobs are limited, so much of that is for the code of functions: walks go on without it.
const FUNCTIONS: f64 = 0.25;

/// How often it is looked whether there is time again for tables.
const GLANCE: Duration = Duration::from_millis(50);

/// How often tables are looked for that nobody uses any more.
const LOOK: Duration = Duration::from_secs(60);

/// Two workers, their queue, and what they have put in place.
pub(super) struct Workers<S: TableStore> {
    queue: Arc<JobQueue>,
    cache: Arc<Mutex<TableCache<S>>>,
    budget: Arc<Mutex<Budget>>,
    limit: Arc<Limit>,
    /// How often a job had to wait for that.
    put_off: Arc<AtomicUsize>,
}

/// Returns when there is time for a job: whether it is still worth it. A file that was removed meanwhile ran for a moment in all
/// likelihood; if it still runs, it is announced again.
fn wait(limit: &Limit, put_off: &AtomicUsize, job: &Job) -> bool {
    if limit.has_time() {
        return true;
    }
    put_off.fetch_add(1, Relaxed);
    while !limit.has_time() {
        std::thread::sleep(GLANCE);
    }
    matches!(job.wanted, QueuedWork::Copy(_)) || !job.was_removed()
}

impl<S: TableStore> Workers<S> {
    /// Starts the threads: one for all jobs, and one for those of high priority alone, so that none of those
    /// waits behind a large table that is not.
    ///
    /// # Errors
    /// The system has no thread to spare.
    pub(super) fn start(store: S) -> std::io::Result<Self> {
        let workers = Self {
            queue: Arc::new(JobQueue::default()),
            cache: Arc::new(Mutex::new(TableCache::new(store))),
            budget: Arc::new(Mutex::new(Budget::new(FIRST, SHARE))),
            limit: Arc::default(),
            put_off: Arc::default(),
        };
        workers.spawn("unwind-tables", Priority::Low)?;
        workers.spawn("unwind-urgent", Priority::High)?;
        Ok(workers)
    }

    fn spawn(&self, name: &str, least: Priority) -> std::io::Result<()> {
        let (queue, cache) = (Arc::clone(&self.queue), Arc::clone(&self.cache));
        let (budget, limit) = (Arc::clone(&self.budget), Arc::clone(&self.limit));
        let put_off = Arc::clone(&self.put_off);
        // Nobody waits for its end: what it does is of no use once sampling is over.
        let _thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let mut look = Instant::now() + LOOK;
                loop {
                    let job = queue.pop(least, look);
                    if Instant::now() >= look {
                        look += LOOK;
                        if least == Priority::Low {
                            lock(&cache).give_back(cache::now());
                        }
                    }
                    let Some(job) = job else { continue };
                    if !wait(&limit, &put_off, &job) {
                        continue;
                    }
                    limit.spend(|| match &job.wanted {
                        QueuedWork::Table(depth, positions) => {
                            make_table(&job, *depth, &cache);
                            read_descriptions(&job, positions, &cache);
                        }
                        QueuedWork::Copy(copy) => {
                            make_table(&job, Depth::Outline, &cache);
                            lock(&cache).add_copy(job.key, copy.clone());
                        }
                        QueuedWork::Descriptions(positions) => {
                            read_descriptions(&job, positions, &cache);
                        }
                        QueuedWork::Functions(positions) => {
                            read_functions(&job, positions, &cache, &mut lock(&budget));
                        }
                    });
                }
            })?;
        Ok(())
    }

    /// Asks for something of a file. If it is its table, a file that has one is left alone.
    pub(super) fn push(&self, priority: Priority, key: CodeKey, file: File, wanted: QueuedWork) {
        self.queue.push(priority, Job::new(key, file, wanted));
    }

    /// Whether all that was asked for is in place.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Says whether nothing is sampled yet: all threads take all jobs.
    pub(super) fn set_preparing(&self, preparing: bool) {
        self.queue.set_preparing(preparing);
    }

    /// Waits until all that was asked for is in place, at most until the deadline.
    pub(super) fn wait_until_idle(&self, deadline: Option<Instant>) {
        self.queue.wait_until_idle(deadline);
    }

    /// Limits jobs to this share of one CPU from now on.
    pub(super) fn limit(&self, share: f64) {
        self.limit.set(Budget::new(Duration::ZERO, share));
        *lock(&self.budget) = Budget::new(FIRST.mul_f64(FUNCTIONS), share * FUNCTIONS);
    }

    /// Has tables take no more memory in the kernel than now.
    pub(super) fn stop_growing(&self) {
        lock(&self.cache).stop_growing();
    }

    /// The CPU time that jobs have taken.
    pub(super) fn spent(&self) -> Duration {
        self.limit.spent()
    }

    /// Totals of what is in place by now.
    pub(super) fn loaded(&self) -> Loaded {
        Loaded {
            put_off: self.put_off.load(Relaxed),
            ..lock(&self.cache).loaded()
        }
    }
}

/// Makes a file's table and puts it in place. It is made without holding the others up.
fn make_table<S: TableStore>(job: &Job, depth: Depth, cache: &Mutex<TableCache<S>>) {
    let began = Instant::now();
    if !lock(cache).claim(job.key) {
        return;
    }
    // The memory is made meanwhile.
    let runtime = runtime::detect(&job.file);
    let kept = runtime.as_ref().and_then(Detected::keeps_frame_pointers);
    // Programs may be loaded for it before the table is made.
    let runtime = runtime.map_or(0, |runtime| lock(cache).add_runtime(runtime));
    let reserve = |bytes| lock(cache).reserve(bytes);
    let table = UnwindTable::read_expecting(&job.file, depth, kept, reserve);
    lock(cache).insert(job.key, table, runtime, began);
}

/// Descriptions of so much code are put in place at a time, in bytes, behind those where walks are: a millisecond or two.
const LATER_BYTES: usize = 2 << 20;

/// Reads what a file describes around these positions, if its table leaves it out.
fn read_descriptions<S: TableStore>(job: &Job, positions: &[u64], cache: &Mutex<TableCache<S>>) {
    let Some(outline) = lock(cache).outline(job.key) else {
        return;
    };
    let addresses = positions.iter();
    let addresses = addresses.filter_map(|position| outline.address_of(*position));
    let addresses: Vec<u64> = addresses.collect();
    let mut stretches: Vec<Range<u64>> = addresses
        .iter()
        .flat_map(|&address| lock(cache).unread(job.key, address))
        .collect();
    stretches.sort_by_key(|stretch| stretch.start);
    stretches.dedup();
    let places = outline.index.as_ref().filter(|_| !stretches.is_empty());
    let index = places.and_then(|places| FrameIndex::open(&job.file, places));
    let Some(mut index) = index else {
        return;
    };
    let code = outline.ranges.iter().map(|range| range.addresses.clone());
    let code: Vec<Range<u64>> = code.collect();
    // Walks end there until it is done; what else is read comes before they get to it.
    let is_met = |part: &Range<u64>| addresses.iter().any(|address| part.contains(address));
    let (met, others): (Vec<_>, Vec<_>) = stretches.into_iter().flat_map(parts).partition(is_met);
    let later = others.chunks(LATER_BYTES >> READ_TOGETHER_BITS);
    let all = std::iter::once(met.as_slice()).chain(later);
    for now in all.filter(|now| !now.is_empty()) {
        let found = index::read(&mut index, now, &code);
        lock(cache).add_descriptions(job.key, now, &found);
    }
}

/// The parts of a stretch that are read together at least.
fn parts(stretch: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = stretch.start;
    std::iter::from_fn(move || {
        let end = ((start >> READ_TOGETHER_BITS) + 1) << READ_TOGETHER_BITS;
        let part = start..end.min(stretch.end);
        start = part.end;
        (!part.is_empty()).then_some(part)
    })
}

/// At most so many functions are read at a time: others wait for the table's rows meanwhile.
const MAX_AT_ONCE: usize = 64;

/// Reads the functions around these positions in a file whose table leaves them out, as far as there is time.
fn read_functions<S: TableStore>(
    job: &Job,
    positions: &[u64],
    cache: &Mutex<TableCache<S>>,
    budget: &mut Budget,
) {
    let Some(outline) = lock(cache).outline(job.key) else {
        return;
    };
    let mut addresses: Vec<u64> = positions
        .iter()
        .filter_map(|position| outline.address_of(*position))
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut left = addresses.as_slice();
    while !left.is_empty() && budget.has_time() {
        let (now, later) = left.split_at(left.len().min(MAX_AT_ONCE));
        left = later;
        budget.spend(|| {
            let gap = |address| lock(cache).gap(job.key, address);
            let functions = Functions::around(&job.file, now, gap);
            lock(cache).add_functions(job.key, functions);
        });
    }
    lock(cache).leave_out_functions(left.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_the_parts_that_are_read_together() {
        const PART: u64 = 1 << READ_TOGETHER_BITS;
        let all = |stretch| parts(stretch).collect::<Vec<_>>();
        assert_eq!(all(5..5), []);
        assert_eq!(all(5..PART), std::slice::from_ref(&(5..PART)));
        assert_eq!(
            all(PART - 1..2 * PART + 1),
            [PART - 1..PART, PART..2 * PART, 2 * PART..2 * PART + 1]
        );
    }
}
