//! Windows that wait for a server, the oldest first.
//!
//! In: bodies. Out: the same, one after the other; counts of what became of them. With a folder, each body is a file there, complete or not
//! there, which the next run sends. Never: more bytes than the limit; the oldest go first, and are counted.

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
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    /// The number of the next entry.
    next: u64,
    counts: Counts,
    /// When the end is, once it was said.
    end: Option<Instant>,
}

struct Entry {
    number: u64,
    samples: u64,
    bytes: u64,
    kept: Kept,
}

enum Kept {
    Memory(Vec<u8>),
    File(PathBuf),
}

/// Next thing to send.
pub(super) enum Next {
    /// An entry by its number, and its bytes.
    Body(u64, Vec<u8>),
    /// A sentence about an entry that cannot be read any more.
    Unreadable(String),
    /// Nothing, and nothing will come.
    End,
}

impl Queue {
    /// The queue of a server, with what is in its folder.
    pub(super) fn open(destination: &Destination, limits: &Limits) -> Result<Self> {
        let mut state = State::default();
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

    /// The oldest entry, when there is one. Stays in the queue until it is said what became of it.
    pub(super) fn next(&self) -> Next {
        let mut state = self.lock();
        loop {
            if state.end.is_some_and(|end| Instant::now() >= end) {
                return Next::End;
            }
            if let Some(entry) = state.entries.front() {
                let number = entry.number;
                let path = match &entry.kept {
                    Kept::Memory(bytes) => return Next::Body(number, bytes.clone()),
                    Kept::File(path) => path.clone(),
                };
                drop(state);
                return match fs::read(&path) {
                    Ok(bytes) => Next::Body(number, bytes),
                    Err(error) => {
                        self.forget(number, |counts| &mut counts.dropped);
                        let path = path.display();
                        Next::Unreadable(format!("a window is lost: cannot read {path}: {error}"))
                    }
                };
            }
            if state.end.is_some() {
                return Next::End;
            }
            state = (self.changed.wait(state)).unwrap_or_else(|state| state.into_inner());
        }
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

    /// The server took an entry, but for so many profiles of it.
    pub(super) fn taken(&self, number: u64, rejected: u64) {
        self.forget(number, |counts| &mut counts.taken);
        self.lock().counts.rejected_profiles += rejected;
    }

    /// The server will never take an entry.
    pub(super) fn refused(&self, number: u64) {
        self.forget(number, |counts| &mut counts.refused);
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

    #[test]
    fn the_oldest_goes_first_beyond_the_limit() {
        let limits = Limits {
            folder: None,
            bytes: 100,
        };
        let queue = Queue::open(&destination(), &limits).unwrap();
        for byte in 0..5 {
            queue.put(body(byte, 40, 7));
        }
        assert_eq!(windows(queue.counts()), [5, 0, 0, 3, 2]);
        let Next::Body(number, bytes) = queue.next() else {
            panic!("nothing is there");
        };
        assert_eq!(bytes, [3; 40]);
        queue.taken(number, 0);
        // One that went meanwhile is not counted twice.
        queue.taken(number, 0);
        assert_eq!(windows(queue.counts()), [5, 1, 0, 3, 1]);
        assert_eq!(windows(queue.end()), [5, 1, 0, 4, 0]);
    }

    #[test]
    fn the_next_run_sends_what_a_folder_has_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits {
            folder: Some(folder.path().to_owned()),
            bytes: 1000,
        };
        let queue = Queue::open(&destination(), &limits).unwrap();
        for byte in 0..3 {
            queue.put(body(byte, 10, u64::from(byte)));
        }
        assert_eq!(windows(queue.end()), [3, 0, 0, 0, 3]);
        let own = fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        fs::write(own.join(".half"), b"half").unwrap();
        let queue = Queue::open(&destination(), &limits).unwrap();
        queue.put(body(3, 10, 3));
        for byte in 0..4 {
            let Next::Body(number, bytes) = queue.next() else {
                panic!("{byte} is missing");
            };
            assert_eq!(bytes, [byte; 10]);
            queue.taken(number, 0);
        }
        assert_eq!(windows(queue.counts()), [4, 4, 0, 0, 0]);
        assert_eq!(fs::read_dir(own).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_gone_is_said_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits {
            folder: Some(folder.path().to_owned()),
            bytes: 1000,
        };
        let queue = Queue::open(&destination(), &limits).unwrap();
        queue.put(body(0, 10, 1));
        let own = fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        fs::remove_dir_all(own).unwrap();
        assert!(matches!(queue.next(), Next::Unreadable(_)));
        // Without its folder, it is kept in memory.
        queue.put(body(1, 10, 1));
        assert!(matches!(queue.next(), Next::Body(..)));
        assert_eq!(windows(queue.counts()), [2, 0, 0, 1, 1]);
    }

    #[test]
    fn nothing_waits_longer_than_the_end() {
        let limits = Limits {
            folder: None,
            bytes: 100,
        };
        let queue = Queue::open(&destination(), &limits).unwrap();
        queue.put(body(0, 10, 1));
        queue.close(Instant::now());
        queue.wait(Duration::from_secs(3600));
        assert!(matches!(queue.next(), Next::End));
    }
}
