//! Whole names of threads, of which the kernel has the first 15 bytes.
//!
//! In: names, as the runtimes of processes keep them. Out: the name of a thread that is called so by the kernel.

use super::ProcessKey;
use foldhash::HashMap;
use std::sync::Arc;

/// The thread's ID, and its name as the kernel has it.
type Thread = (u32, [u8; 16]);

/// Names that were found of the threads of a process; none of those that were looked for in vain.
type Looked = HashMap<Thread, Option<Arc<[u8]>>>;

/// The names of the threads of each process that have others than the kernel's, and those that were looked for in vain.
#[derive(Debug, Default)]
pub(super) struct ThreadNames {
    of: HashMap<ProcessKey, Looked>,
}

impl ThreadNames {
    /// Notes what was found.
    pub(super) fn note(
        &mut self,
        process_key: ProcessKey,
        thread: Thread,
        name: Option<Arc<[u8]>>,
    ) {
        let threads = self.of.entry(process_key).or_default();
        threads.insert(thread, name);
    }

    /// The name of a thread; none if it was not looked for yet.
    pub(super) fn get(
        &self,
        process_key: ProcessKey,
        thread: Thread,
    ) -> Option<Option<&Arc<[u8]>>> {
        let threads = self.of.get(&process_key)?;
        threads.get(&thread).map(Option::as_ref)
    }

    /// Forgets a process.
    pub(super) fn remove(&mut self, process_key: ProcessKey) {
        self.of.remove(&process_key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_with_their_process() {
        let process_key = ProcessKey::new(7, 1);
        let [found, missed, other] = [1, 2, 3].map(|tid| (tid, *b"http-nio-8080-e\0"));
        let name: Arc<[u8]> = Arc::from(&b"http-nio-8080-exec-1"[..]);
        let mut names = ThreadNames::default();
        names.note(process_key, found, Some(Arc::clone(&name)));
        names.note(process_key, missed, None);
        assert_eq!(names.get(process_key, found), Some(Some(&name)));
        assert_eq!(names.get(process_key, missed), Some(None));
        assert_eq!(names.get(process_key, other), None);
        names.remove(process_key);
        assert_eq!(names.get(process_key, found), None);
    }
}
