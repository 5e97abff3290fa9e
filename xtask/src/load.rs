//! A load beside the tests: two threads for each CPU that do nothing but take its time.
//!
//! In: nothing. Out: busy CPUs until the load is dropped. What a test says of itself must hold on a machine that others use.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, available_parallelism, spawn};

/// So many threads for each CPU.
const EACH: usize = 2;

/// A load that goes on.
pub(crate) struct Load {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Begins.
    pub(crate) fn new() -> Self {
        let cpus = available_parallelism().map_or(1, usize::from);
        let ended = Arc::new(AtomicBool::new(false));
        let threads = (0..cpus * EACH).map(|_| {
            let ended = Arc::clone(&ended);
            spawn(move || {
                while !ended.load(Relaxed) {
                    spin_loop();
                }
            })
        });
        Self {
            threads: threads.collect(),
            ended,
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            let _ended = thread.join();
        }
    }
}
