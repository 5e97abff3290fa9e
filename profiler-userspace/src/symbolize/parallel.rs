//! Processes several objects in parallel.
//!
//! In: jobs, and a function that does one. Out: the results, in the order of the jobs, whichever finished
//! first. Files are fetched by the calling thread, one at a time: the limits on fetching apply to all of them
//! together.

use crate::object::{BuildId, Fetch, RegularFile};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// The most threads. The machine has other work, and each thread gets a share of one memory limit.
pub(super) const MAX_THREADS: usize = 4;

/// How many threads are used: as many as CPUs that we may run on, up to the limit.
pub(super) fn threads() -> usize {
    thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS)
}

/// Does one job; calls the given function to fetch files.
pub(super) type Work<'a, Job, Done> = &'a (dyn Fn(&Job, Option<&Fetch<'_>>) -> Done + Sync);

/// Message from a worker to the calling thread.
enum Message<Done> {
    /// The job with this number is done.
    Done(usize, Done),
    /// The job needs a file to go on.
    Wanted(BuildId, SyncSender<Option<RegularFile>>),
}

/// Does each of `jobs` on so many `threads` and passes the results to `take`, in order.
pub(super) fn each<Job: Sync, Done: Send>(
    jobs: &[Job],
    threads: usize,
    fetch: Option<&Fetch<'_>>,
    work: Work<'_, Job, Done>,
    mut take: impl FnMut(usize, Done),
) {
    if threads < 2 || jobs.len() < 2 {
        for (number, job) in jobs.iter().enumerate() {
            take(number, work(job, fetch));
        }
        return;
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (messages, received) = channel();
        for _ in 0..threads.min(jobs.len()) {
            let messages = messages.clone();
            let next = &next;
            let fetches = fetch.is_some();
            // If no further thread can be started, the others do all the work.
            let _started = thread::Builder::new()
                .name("naming".to_owned())
                .spawn_scoped(scope, move || {
                    run_jobs(jobs, next, fetches, work, &messages)
                });
        }
        drop(messages);
        listen(&received, fetch, &mut take);
    });
    // No thread could be started.
    let left = next.into_inner().min(jobs.len());
    for (number, job) in jobs.iter().enumerate().skip(left) {
        take(number, work(job, fetch));
    }
}

/// Does jobs until none is left.
fn run_jobs<Job, Done>(
    jobs: &[Job],
    next: &AtomicUsize,
    fetches: bool,
    work: Work<'_, Job, Done>,
    messages: &Sender<Message<Done>>,
) {
    let ask = |id: &BuildId| {
        let (answer, answered) = sync_channel(1);
        messages.send(Message::Wanted(id.clone(), answer)).ok()?;
        answered.recv().ok().flatten()
    };
    let fetch = fetches.then_some(&ask as &Fetch<'_>);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(job) = jobs.get(number) else {
            return;
        };
        if messages
            .send(Message::Done(number, work(job, fetch)))
            .is_err()
        {
            return;
        }
    }
}

/// Passes on results as soon as all before them are done, and fetches, until all threads have ended.
fn listen<Done>(
    received: &Receiver<Message<Done>>,
    fetch: Option<&Fetch<'_>>,
    take: &mut impl FnMut(usize, Done),
) {
    let mut early = BTreeMap::new();
    let mut due = 0;
    for message in received {
        match message {
            Message::Done(number, done) => {
                early.insert(number, done);
                while let Some(done) = early.remove(&due) {
                    take(due, done);
                    due += 1;
                }
            }
            Message::Wanted(id, answer) => {
                // A thread that no longer waits has ended with its job.
                let _gone = answer.send(fetch.and_then(|fetch| fetch(&id)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::time::Duration;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn results_come_in_the_order_of_the_jobs(
            pauses in proptest::collection::vec(0u64..300, 0..20),
            threads in 1usize..6,
        ) {
            let mut taken = Vec::new();
            let work = |pause: &u64, _: Option<&Fetch<'_>>| {
                thread::sleep(Duration::from_micros(*pause));
                pause * 2
            };
            each(&pauses, threads, None, &work, |number, done| taken.push((number, done)));
            let expected: Vec<_> = pauses.iter().map(|pause| pause * 2).enumerate().collect();
            prop_assert_eq!(taken, expected);
        }
    }

    #[test]
    fn jobs_run_in_parallel() {
        // Neither passes the barrier before the other is there.
        let both = Barrier::new(2);
        let mut taken = 0;
        each(
            &[(), ()],
            2,
            None,
            &|(), _| both.wait().is_leader(),
            |_, is_leader| taken += usize::from(is_leader),
        );
        assert_eq!(taken, 1);
    }

    #[test]
    fn files_are_fetched_one_at_a_time() {
        let here = thread::current().id();
        let fetched = Cell::new(0);
        let fetch = |_: &BuildId| {
            assert_eq!(thread::current().id(), here);
            fetched.set(fetched.get() + 1);
            RegularFile::in_memory("fetched", b"x").ok()
        };
        let id = BuildId::new(&[1, 2, 3]).unwrap();
        let work =
            |(): &(), fetch: Option<&Fetch<'_>>| fetch.and_then(|fetch| fetch(&id)).is_some();
        let mut found = 0;
        each(&[(); 9], 3, Some(&fetch), &work, |_, one| {
            found += usize::from(one)
        });
        assert_eq!((found, fetched.get()), (9, 9));
        each(&[(); 9], 3, None, &work, |_, one| assert!(!one));
    }
}
