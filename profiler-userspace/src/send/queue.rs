//! Windows that wait for a server, the oldest first.
//!
//! In: bodies. Out: the same, as many at a time as one request may have; counts of what became of them. With a folder, each body is a
//! file there, complete or not there, which the next run sends. Never: more bytes than the limit; the oldest go first, and are counted.

use super::spool;
use super::{Body, Destination};
use anyhow::{Context as _, Result};
use foldhash::fast::FixedState;
use std::collections::VecDeque;
use std::fs;
use std::hash::BuildHasher as _;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Most bytes of bodies in memory, where there is no folder or its disk is full.
const MEMORY_BYTES: u64 = 32 << 20;

/// Most bytes of bodies for one request. Collectors take 20 MiB, not compressed (`max_request_body_size`).
const REQUEST_BYTES: u64 = 1 << 20;

/// Room for what waits for one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Folder of what waits; none for memory.
    pub folder: Option<PathBuf>,
    /// Bytes that may wait.
    pub bytes: u64,
}

/// Windows and samples by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that came, and what an earlier run left.
    pub put: Sum,
    /// Taken by the server.
    pub taken: Sum,
    /// Refused for good.
    pub refused: Sum,
    /// Given up: beyond the limit, not readable any more, or in memory at the end.
    pub dropped: Sum,
    /// Waiting.
    pub waiting: Sum,
    /// Profiles that the server did not want of windows that it took.
    pub rejected_profiles: u64,
    /// Requests that failed and were tried again.
    pub failures: u64,
}

/// Windows, and samples in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many windows.
    pub windows: u64,
    /// How many samples.
    pub samples: u64,
}

impl Sum {
    fn add(&mut self, samples: u64) {
        self.windows += 1;
        self.samples = self.samples.saturating_add(samples);
    }
}

/// The windows for one server.
pub(super) struct Queue {
    folder: Option<PathBuf>,
    bytes: u64,
    /// Whether one request may have several windows.
    joins: bool,
    /// Time from one request to the next.
    every: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    entries: VecDeque<Entry>,
    /// The number of the next entry.
    next: u64,
    counts: Counts,
    /// Entries before this one go one by one.
    alone: u64,
    /// When the next request is due.
    due: Instant,
    /// When the end is, once it was said.
    end: Option<Instant>,
}

struct Entry {
    number: u64,
    samples: u64,
    bytes: u64,
    kept: Kept,
}

#[derive(Clone)]
enum Kept {
    Memory(Vec<u8>),
    File(PathBuf),
}

/// Next thing to send.
pub(super) enum Next {
    /// Entries of one request by their numbers, and the bytes of each.
    Bodies(Vec<u64>, Vec<Vec<u8>>),
    /// A sentence about an entry that cannot be read any more.
    Unreadable(String),
    /// Nothing, and nothing will come.
    End,
}

impl Queue {
    /// The queue of a server, with what is in its folder.
    pub(super) fn open(destination: &Destination, limits: &Limits) -> Result<Self> {
        let mut state = State {
            entries: VecDeque::new(),
            next: 0,
            counts: Counts::default(),
            alone: 0,
            // Recorders that were started together do not send together.
            due: Instant::now() + destination.every.mul_f64(fastrand::f64()),
            end: None,
        };
        let folder = match &limits.folder {
            None => None,
            Some(folder) => {
                let name = format!(
                    "{}-{:016x}",
                    destination.protocol.name(),
                    FixedState::with_seed(1).hash_one(&destination.url)
                );
                let folder = folder.join(name);
                let cannot = || format!("cannot keep windows in {}", folder.display());
                fs::create_dir_all(&folder).with_context(cannot)?;
                for (path, samples, bytes) in spool::left(&folder).with_context(cannot)? {
                    state.push(samples, bytes, Kept::File(path));
                }
                Some(folder)
            }
        };
        let queue = Self {
            bytes: match folder {
                Some(_) => limits.bytes,
                None => limits.bytes.min(MEMORY_BYTES),
            },
            folder,
            joins: destination.protocol.joins(),
            every: destination.every,
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        queue.shrink(&mut queue.lock());
        Ok(queue)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|state| state.into_inner())
    }

    /// Adds a body.
    pub(super) fn put(&self, Body { bytes, samples }: Body) {
        let length = bytes.len() as u64;
        let number = self.lock().next;
        let file = self.folder.as_deref();
        let file = file.and_then(|folder| spool::write(folder, number, samples, &bytes).ok());
        let mut state = self.lock();
        let kept = match file {
            Some(path) => Kept::File(path),
            None => Kept::Memory(bytes),
        };
        state.push(samples, length, kept);
        self.shrink(&mut state);
        self.changed.notify_all();
    }

    /// Lets the oldest go until the rest is within the limit.
    fn shrink(&self, state: &mut State) {
        let in_memory = |entry: &Entry| matches!(entry.kept, Kept::Memory(_));
        loop {
            let bytes = |is: &dyn Fn(&Entry) -> bool| -> u64 {
                let entries = state.entries.iter().filter(|entry| is(entry));
                entries.map(|entry| entry.bytes).sum()
            };
            let too_much = bytes(&|_| true) > self.bytes;
            let place = match too_much {
                true => Some(0),
                false if bytes(&in_memory) > MEMORY_BYTES => {
                    state.entries.iter().position(in_memory)
                }
                false => None,
            };
            let Some(entry) = place.and_then(|place| state.entries.remove(place)) else {
                return;
            };
            entry.remove();
            state.counts.dropped.add(entry.samples);
        }
    }

    /// The oldest entries that one request may have, when it is due. They stay in the queue until it is said what became of them.
    pub(super) fn next(&self) -> Next {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            match state.end {
                Some(end) if now >= end || state.entries.is_empty() => return Next::End,
                _ => {}
            }
            let (fits, all) = (state.fitting(self.joins), state.entries.len());
            let is_due = now >= state.due || state.end.is_some();
            // A full request does not wait for more.
            if fits > 0 && (is_due || fits < all) {
                let entries = state.entries.iter().take(fits);
                let entries = entries.map(|entry| (entry.number, entry.kept.clone()));
                let entries = entries.collect();
                drop(state);
                return self.read(entries);
            }
            let left = match fits {
                0 => Duration::MAX,
                _ => state.due - now,
            };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|state| state.into_inner()).0;
        }
    }

    fn read(&self, entries: Vec<(u64, Kept)>) -> Next {
        let (mut numbers, mut bodies) = (Vec::new(), Vec::new());
        for (number, kept) in entries {
            let bytes = match kept {
                Kept::Memory(bytes) => bytes,
                Kept::File(path) => match fs::read(&path) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        self.forget(number, |counts| &mut counts.dropped);
                        let path = path.display();
                        return Next::Unreadable(format!(
                            "a window is lost: cannot read {path}: {error}"
                        ));
                    }
                },
            };
            numbers.push(number);
            bodies.push(bytes);
        }
        Next::Bodies(numbers, bodies)
    }

    /// Takes an entry out and counts it, unless it was let go meanwhile: then it was counted.
    fn forget(&self, number: u64, sum: impl Fn(&mut Counts) -> &mut Sum) {
        let mut state = self.lock();
        let place = state
            .entries
            .iter()
            .position(|entry| entry.number == number);
        if let Some(entry) = place.and_then(|place| state.entries.remove(place)) {
            entry.remove();
            sum(&mut state.counts).add(entry.samples);
        }
    }

    /// The server took entries, but for so many profiles of them.
    pub(super) fn taken(&self, numbers: &[u64], rejected: u64) {
        for &number in numbers {
            self.forget(number, |counts| &mut counts.taken);
        }
        let mut state = self.lock();
        state.counts.rejected_profiles += rejected;
        state.due = Instant::now() + self.every;
    }

    /// The server will never take an entry.
    pub(super) fn refused(&self, number: u64) {
        self.forget(number, |counts| &mut counts.refused);
    }

    /// Entries cannot go in one request: each goes alone.
    pub(super) fn separate(&self, numbers: &[u64]) {
        let last = numbers.iter().max();
        self.lock().alone = last.map_or(0, |last| last + 1);
    }

    /// A request failed.
    pub(super) fn failed(&self) {
        self.lock().counts.failures += 1;
    }

    /// Waits so long, or until the end.
    pub(super) fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        loop {
            let until = state.end.map_or(until, |end| end.min(until));
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|state| state.into_inner()).0;
        }
    }

    /// How long a request may take; none before the end was said.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let end = self.lock().end;
        end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Says when the end is.
    pub(super) fn close(&self, end: Instant) {
        self.lock().end = Some(end);
        self.changed.notify_all();
    }

    /// Counts so far.
    pub(super) fn counts(&self) -> Counts {
        let state = self.lock();
        let mut waiting = Sum::default();
        for entry in &state.entries {
            waiting.add(entry.samples);
        }
        Counts {
            waiting,
            ..state.counts
        }
    }

    /// Lets go what only memory has. Returns the last counts.
    pub(super) fn end(&self) -> Counts {
        let mut state = self.lock();
        let (lost, left): (VecDeque<_>, _) = std::mem::take(&mut state.entries)
            .into_iter()
            .partition(|entry| matches!(entry.kept, Kept::Memory(_)));
        state.entries = left;
        for entry in lost {
            state.counts.dropped.add(entry.samples);
        }
        drop(state);
        self.counts()
    }
}

impl State {
    /// How many of the oldest entries one request may have: at least one, if there is one.
    fn fitting(&self, joins: bool) -> usize {
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            bytes += entry.bytes;
            joins && bytes <= REQUEST_BYTES && entry.number >= self.alone
        };
        let several = self.entries.iter().take_while(fits).count();
        several.max(1).min(self.entries.len())
    }

    fn push(&mut self, samples: u64, bytes: u64, kept: Kept) {
        self.entries.push_back(Entry {
            number: self.next,
            samples,
            bytes,
            kept,
        });
        self.next += 1;
        self.counts.put.add(samples);
    }
}

impl Entry {
    fn remove(&self) {
        if let Kept::File(path) = &self.kept {
            // A file that cannot be removed is sent again by the next run, and known by its IDs.
            let _stays = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::request::Protocol;

    fn destination() -> Destination {
        Destination {
            protocol: Protocol::Otlp,
            url: "http://localhost:4318/v1development/profiles".to_owned(),
            headers: Vec::new(),
            every: Duration::ZERO,
        }
    }

    fn body(byte: u8, length: usize, samples: u64) -> Body {
        Body {
            bytes: vec![byte; length],
            samples,
        }
    }

    fn windows(counts: Counts) -> [u64; 5] {
        let Counts {
            put,
            taken,
            refused,
            dropped,
            waiting,
            ..
        } = counts;
        let all = [put, taken, refused, dropped, waiting];
        assert_eq!(
            put.windows,
            all[1..].iter().map(|sum| sum.windows).sum::<u64>()
        );
        assert_eq!(
            put.samples,
            all[1..].iter().map(|sum| sum.samples).sum::<u64>()
        );
        all.map(|sum| sum.windows)
    }

    fn next(queue: &Queue) -> (Vec<u64>, Vec<Vec<u8>>) {
        match queue.next() {
            Next::Bodies(numbers, bodies) => (numbers, bodies),
            _ => panic!("nothing is there"),
        }
    }

    const ROOM: Limits = in_memory(u64::MAX);

    const fn in_memory(bytes: u64) -> Limits {
        Limits {
            folder: None,
            bytes,
        }
    }

    fn in_folder(folder: &tempfile::TempDir) -> Limits {
        Limits {
            folder: Some(folder.path().to_owned()),
            bytes: 1000,
        }
    }

    /// Where a queue keeps what waits in a folder.
    fn own(folder: &tempfile::TempDir) -> PathBuf {
        let mut entries = fs::read_dir(folder.path()).unwrap();
        entries.next().unwrap().unwrap().path()
    }

    #[test]
    fn windows_gather_until_a_request_is_due_or_full() {
        let hour = Duration::from_secs(3600);
        let gathering = Destination {
            every: hour,
            ..destination()
        };
        let queue = Queue::open(&gathering, &ROOM).unwrap();
        queue.lock().due = Instant::now() + hour;
        let half = REQUEST_BYTES as usize / 2;
        std::thread::scope(|scope| {
            let got = scope.spawn(|| next(&queue));
            (0..2).for_each(|byte| queue.put(body(byte, half, 1)));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!got.is_finished());
            queue.put(body(2, half, 1));
            let (numbers, bodies) = got.join().unwrap();
            assert_eq!(bodies.len(), 2, "the third would be too much");
            queue.taken(&numbers, 0);
        });
        assert!(queue.lock().due > Instant::now() + hour / 2);
        // The end does not wait.
        queue.close(Instant::now() + hour);
        assert_eq!(next(&queue).0, [2]);
    }

    #[test]
    fn windows_that_cannot_go_together_go_alone() {
        let queue = Queue::open(&destination(), &ROOM).unwrap();
        (0..2).for_each(|byte| queue.put(body(byte, 10, 1)));
        let (numbers, _) = next(&queue);
        assert_eq!(numbers, [0, 1]);
        queue.put(body(2, 10, 1));
        queue.put(body(3, 10, 1));
        queue.separate(&numbers);
        for number in numbers {
            assert_eq!(next(&queue).0, [number]);
            queue.refused(number);
        }
        assert_eq!(next(&queue).0, [2, 3], "they came later");
        assert_eq!(windows(queue.counts()), [4, 0, 2, 0, 2]);
    }

    #[test]
    fn others_take_one_window_at_a_time() {
        let other = Destination {
            protocol: Protocol::Pyroscope,
            ..destination()
        };
        let queue = Queue::open(&other, &ROOM).unwrap();
        (0..2).for_each(|byte| queue.put(body(byte, 10, 1)));
        assert_eq!(next(&queue).0, [0]);
    }

    #[test]
    fn the_oldest_goes_first_beyond_the_limit() {
        let queue = Queue::open(&destination(), &in_memory(100)).unwrap();
        for byte in 0..5 {
            queue.put(body(byte, 40, 7));
        }
        assert_eq!(windows(queue.counts()), [5, 0, 0, 3, 2]);
        let (numbers, bodies) = next(&queue);
        assert_eq!(bodies, [[3; 40], [4; 40]]);
        queue.taken(&numbers[..1], 0);
        // One that went meanwhile is not counted twice.
        queue.taken(&numbers[..1], 0);
        assert_eq!(windows(queue.counts()), [5, 1, 0, 3, 1]);
        assert_eq!(windows(queue.end()), [5, 1, 0, 4, 0]);
    }

    #[test]
    fn the_next_run_sends_what_a_folder_has_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let limits = in_folder(&folder);
        let queue = Queue::open(&destination(), &limits).unwrap();
        for byte in 0..3 {
            queue.put(body(byte, 10, u64::from(byte)));
        }
        assert_eq!(windows(queue.end()), [3, 0, 0, 0, 3]);
        let own = own(&folder);
        fs::write(own.join(".half"), b"half").unwrap();
        let queue = Queue::open(&destination(), &limits).unwrap();
        queue.put(body(3, 10, 3));
        let (numbers, bodies) = next(&queue);
        assert_eq!(bodies, [0, 1, 2, 3].map(|byte| [byte; 10]));
        queue.taken(&numbers, 0);
        assert_eq!(windows(queue.counts()), [4, 4, 0, 0, 0]);
        assert_eq!(fs::read_dir(own).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_gone_is_said_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let limits = in_folder(&folder);
        let queue = Queue::open(&destination(), &limits).unwrap();
        queue.put(body(0, 10, 1));
        fs::remove_dir_all(own(&folder)).unwrap();
        assert!(matches!(queue.next(), Next::Unreadable(_)));
        // Without its folder, it is kept in memory.
        queue.put(body(1, 10, 1));
        assert_eq!(next(&queue).1, [[1; 10]]);
        assert_eq!(windows(queue.counts()), [2, 0, 0, 1, 1]);
    }

    #[test]
    fn nothing_waits_longer_than_the_end() {
        let queue = Queue::open(&destination(), &in_memory(100)).unwrap();
        queue.put(body(0, 10, 1));
        queue.close(Instant::now());
        queue.wait(Duration::from_secs(3600));
        assert!(matches!(queue.next(), Next::End));
    }
}
