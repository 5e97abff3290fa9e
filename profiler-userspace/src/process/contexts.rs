//! The contexts of processes that publish one.
//!
//! In: where a process publishes its context, by its mappings. Out: that context, which is read once, or why it was not. Until there
//! is one, a process is looked at when its mappings are read for what they are, which costs nothing more, and at two ages: programs
//! publish once they have read their settings, which may be long after their first sample.

use super::ProcessKey;
use super::context::{self, MAPPINGS};
use super::liveness::Liveness;
use super::patience::{Late, Patience};
use super::proc_maps::{self, Entry};
use super::unread::{Unread, UnreadContexts};
use crate::profile::process_context::ProcessContext;
use foldhash::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

/// Ages at which a process that has published nothing yet is looked at again.
const AGES: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];

/// So many mappings may be a context's: there should be one, and another may be left of a program's parent.
const MAX_MAPPINGS: usize = 4;

/// How long the memory of processes may take to read. It may be mapped from a file system that never answers; where one does that
/// again and again, no more contexts are read for the rest of the hour.
static PATIENCE: Patience = Patience::an_hour(30_000, 200, 50);

/// The context of each process that was looked at.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    of: HashMap<ProcessKey, Looked>,
    /// Of processes that were forgotten.
    unread: UnreadContexts,
}

/// Finding about a process.
#[derive(Debug, Default)]
struct Looked {
    context: Option<Arc<ProcessContext>>,
    /// Why what it publishes was not read when it was last looked at.
    unread: Option<Unread>,
    /// Its age when it was last looked at; none where that is not known.
    age: Option<Duration>,
}

impl Looked {
    /// Whether it is to be looked at again at this age, where memory is waited for if there `is_time`.
    fn is_due(&self, age: Option<Duration>, is_time: impl FnOnce() -> bool) -> bool {
        if self.unread == Some(Unread::NotTried) && is_time() {
            return true;
        }
        let (Some(before), Some(now)) = (self.age, age) else {
            return false;
        };
        let is_passed = |of: &Duration| before < *of && *of <= now;
        self.context.is_none() && AGES.iter().any(is_passed)
    }
}

/// Whether a line of `/proc/PID/maps` may be that of a context. Cheap, because each line is asked.
pub(super) fn may_be_one(line: &[u8]) -> bool {
    MAPPINGS.iter().any(|name| line.ends_with(name))
}

/// Adds where a context begins, if a mapping is one.
pub(super) fn note(entry: &Entry<'_>, contexts: &mut Vec<u64>) {
    if MAPPINGS.contains(&entry.name) && contexts.len() < MAX_MAPPINGS {
        contexts.push(entry.range.start);
    }
}

impl Contexts {
    /// Reads the context of a process that has one at one of these addresses, unless it is known.
    pub(super) fn take(&mut self, process_key: ProcessKey, at: &[u64], liveness: &Liveness) {
        let looked = self.of.entry(process_key).or_default();
        looked.age = process_key.age();
        if looked.context.is_none() && !at.is_empty() {
            let (context, unread) = match read(process_key, at, liveness) {
                Ok(context) => (context.map(Arc::new), None),
                // A read that an end cuts short is no fault of the context.
                Err(reason) => (None, (!liveness.has_gone(process_key)).then_some(reason)),
            };
            (looked.context, looked.unread) = (context, unread);
        }
    }

    /// Looks for the context of a process, if it is time to.
    pub(super) fn look(&mut self, process_key: ProcessKey, liveness: &Liveness) {
        let is_due = |looked: &Looked| looked.is_due(process_key.age(), || PATIENCE.has_time());
        if self.of.get(&process_key).is_none_or(is_due) {
            let at = match liveness.has_gone(process_key) {
                true => Vec::new(),
                false => find(process_key, liveness),
            };
            self.take(process_key, &at, liveness);
        }
    }

    /// The context of a process.
    pub(super) fn get(&self, process_key: ProcessKey) -> Option<&Arc<ProcessContext>> {
        self.of.get(&process_key)?.context.as_ref()
    }

    /// Processes, also those that were forgotten, whose context was not read.
    pub(super) fn unread(&self) -> UnreadContexts {
        let mut all = self.unread;
        let unread = self.of.values().filter_map(|looked| looked.unread);
        unread.for_each(|reason| all.add(reason));
        all
    }

    /// Forgets a process.
    pub(super) fn remove(&mut self, process_key: ProcessKey) {
        let looked = self.of.remove(&process_key);
        if let Some(reason) = looked.and_then(|looked| looked.unread) {
            self.unread.add(reason);
        }
    }
}

/// A file of a process in `/proc`. An open one stays that of its process, even if the PID is used again.
fn open(process_key: ProcessKey, name: &str, liveness: &Liveness) -> Option<File> {
    let file = File::open(format!("/proc/{}/{name}", process_key.tgid)).ok()?;
    liveness.is_there(process_key).then_some(file)
}

/// Where a process publishes contexts.
fn find(process_key: ProcessKey, liveness: &Liveness) -> Vec<u64> {
    let mut contexts = Vec::new();
    if let Some(maps) = open(process_key, "maps", liveness) {
        // Lines read before an error are right.
        let maps = BufReader::new(maps);
        let _ended = proc_maps::each_executable_or(maps, may_be_one, |entry| {
            note(&entry, &mut contexts);
            true
        });
    }
    contexts
}

/// The first context of a process that can be read; none where none is published.
fn read(
    process_key: ProcessKey,
    at: &[u64],
    liveness: &Liveness,
) -> Result<Option<ProcessContext>, Unread> {
    let Some(memory) = open(process_key, "mem", liveness) else {
        return Ok(None);
    };
    let at = at.to_owned();
    let read = move || {
        let mut unread = None;
        for address in at {
            let fill = |address, into: &mut [u8]| memory.read_exact_at(into, address).ok();
            match context::read(address, fill) {
                Ok(None) => {}
                Ok(context) => return Ok(context),
                Err(reason) => unread = unread.or(Some(reason)),
            }
        }
        unread.map_or(Ok(None), Err)
    };
    PATIENCE.wait("context", read)?
}

impl From<Late> for Unread {
    fn from(late: Late) -> Self {
        match late {
            Late::TookTooLong => Self::Silent,
            Late::NoTimeLeft => Self::NotTried,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Processes;
    use super::*;
    use crate::object::FileNumber;
    use memmap2::MmapRaw;
    use std::io::{Seek as _, SeekFrom, Write as _};

    fn ourselves(incarnation: u64) -> ProcessKey {
        ProcessKey {
            tgid: std::process::id(),
            incarnation,
        }
    }

    #[test]
    fn a_process_without_a_context_is_looked_at_at_few_ages() {
        let seconds = |at: u64| Some(Duration::from_secs(at));
        let looked = |age| Looked {
            age,
            ..Looked::default()
        };
        for (before, now, is_due) in [
            (0, 9, false),
            (0, 10, true),
            (0, 100, true),
            (10, 59, false),
            (10, 60, true),
            (60, 1_000_000, false),
        ] {
            let found = looked(seconds(before)).is_due(seconds(now), || true);
            assert_eq!(found, is_due, "{before} {now}");
        }
        assert!(!looked(None).is_due(None, || true), "nobody knows its age");
        let known = Looked {
            context: ProcessContext::of([("service.name", "shop")]).map(Arc::new),
            ..looked(seconds(0))
        };
        assert!(!known.is_due(seconds(10), || true));
        // Processes for which there was no time are made up for.
        for (reason, is_time, is_due) in [
            (Unread::NotTried, true, true),
            (Unread::NotTried, false, false),
            (Unread::Silent, true, false),
        ] {
            let unread = Looked {
                unread: Some(reason),
                ..looked(seconds(60))
            };
            assert_eq!(
                unread.is_due(seconds(3600), || is_time),
                is_due,
                "{reason:?}"
            );
        }
    }

    #[test]
    fn memory_that_does_not_answer_is_waited_for_until_no_time_is_left() {
        let patience = Patience::an_hour(100, 50, 0);
        let mut ends = Vec::new();
        let mut read = || -> Result<(), Unread> {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            ends.push(end);
            patience.wait("context", move || ended.recv().is_ok())?;
            Ok(())
        };
        let expected = [Unread::Silent, Unread::Silent, Unread::NotTried];
        assert_eq!([read(), read(), read()], expected.map(Err));
    }

    #[test]
    fn mappings_of_contexts_are_known_by_their_whole_names() {
        let mut contexts = Vec::new();
        let names: [&[u8]; 8] = [
            b"[anon_shmem:OTEL_CTX]",
            b"/tmp/memfd:OTEL_CTX",
            b"[anon:OTEL_CTX]",
            b"/memfd:OTEL_CTX",
            b"/memfd:OTEL_CTX2 (deleted)",
            b"/memfd:OTEL_CTX (deleted)",
            b"[anon:OTEL_CTX]",
            b"",
        ];
        for (start, name) in (1..).zip(names) {
            let entry = Entry {
                range: start..start + 1,
                offset: 0,
                number: FileNumber::default(),
                executable: false,
                name,
            };
            note(&entry, &mut contexts);
            assert!(contexts.last() != Some(&start) || may_be_one(name));
        }
        assert_eq!(contexts, [1, 3, 4, 6], "and no more");
    }

    /// Has this process publish a context of a version from now on.
    fn publish(version: u32, payload: &[u8]) -> MmapRaw {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::memfd_create("OTEL_CTX", flags).unwrap());
        file.set_len(4096).unwrap();
        let map = MmapRaw::map_raw(&file).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(b"OTEL_CTX").unwrap();
        for number in [version, payload.len() as u32] {
            file.write_all(&number.to_le_bytes()).unwrap();
        }
        for number in [1, map.as_ptr() as u64 + 32] {
            file.write_all(&number.to_le_bytes()).unwrap();
        }
        file.write_all(payload).unwrap();
        map
    }

    /// A payload whose attributes are the service's name alone.
    const SHOP: &[u8] = b"\x0a\x18\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04shop";

    #[test]
    fn a_context_is_found_when_mappings_are_read() {
        let name = |processes: &mut Processes, process_key| {
            let context = processes.context(process_key)?;
            context.service().map(str::to_owned)
        };
        let (mut before, earlier) = (Processes::new(), ourselves(7));
        before.see(earlier);
        assert_eq!(name(&mut before, earlier), None);
        let published = publish(2, SHOP);
        assert_eq!(name(&mut before, earlier), None, "it is not due");
        before.refresh(earlier);
        assert_eq!(name(&mut before, earlier).as_deref(), Some("shop"));
        let mut seen = Processes::new();
        seen.see(earlier);
        assert_eq!(name(&mut seen, earlier).as_deref(), Some("shop"));
        // Its kernel frames alone are of interest.
        let mut unseen = Processes::new();
        unseen.meet(earlier);
        assert_eq!(name(&mut unseen, earlier).as_deref(), Some("shop"));
        drop(published);
        assert_eq!(name(&mut seen, earlier).as_deref(), Some("shop"));
        // After `exec`, another program may be of another service.
        let later = ourselves(8);
        seen.see(later);
        assert_eq!(name(&mut seen, later), None);
        seen.remove(earlier);
        assert_eq!(name(&mut seen, earlier), None);
        assert_eq!(seen.unread_contexts(), UnreadContexts::default());
        // Another version's is counted, also when the process is forgotten, until it is one that can be read.
        let newer = publish(3, SHOP);
        let mut processes = Processes::new();
        processes.see(earlier);
        for _ in 0..2 {
            let unread = processes.unread_contexts();
            assert_eq!(unread.get(Unread::OtherVersion), 1);
            assert_eq!(unread.total(), 1);
            processes.remove(earlier);
        }
        processes.see(earlier);
        drop(newer);
        let _published = publish(2, SHOP);
        processes.refresh(earlier);
        assert_eq!(name(&mut processes, earlier).as_deref(), Some("shop"));
        assert_eq!(processes.unread_contexts().total(), 1, "that of the first");
    }
}
