//! Unwind tables, loaded as they are needed: threads of their own make them and put them in place.
//!
//! In: open files, each with what the kernel half knows it by. Out: tables in the kernel, and
//! [`Loaded`], which tells of them. A file that is no object, or has no rows, is published as such and
//! walked by frame pointers. Once the memory limit is reached, what was used least makes room.

use super::cache::Shelf;
use super::queue::{Desk, Need, Order};
use crate::kernel::Tables;
use crate::priority::Urgent;
use crate::unwind::UnwindTable;
use profiler_common::abi::CodeKey;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What has been loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Objects with a table.
    pub(crate) tables: usize,
    /// Rows in the tables that were made.
    pub(crate) rows: usize,
    /// Files without a table.
    pub(crate) bare: usize,
    /// Those of them that claim more code or unwind instructions than are believed.
    pub(crate) too_large: usize,
    /// Memory that tables take in the kernel, in bytes.
    pub(crate) bytes: u64,
    /// How often a table made room for another.
    pub(crate) evicted: usize,
    /// Tables for which there was no room even so.
    pub(crate) refused: usize,
    /// Parts of code that are walked by no table, because the index was crowded.
    pub(crate) left_out: usize,
    /// Rules for which there was no number.
    pub(crate) rules_refused: usize,
    /// The time that making them took.
    pub(crate) time: Duration,
}

/// The threads' other end.
pub(crate) struct Loader {
    desk: Arc<Desk>,
    shelf: Arc<Mutex<Shelf>>,
}

impl Loader {
    /// Starts the threads: one for all orders, and one for the urgent ones alone, so that none of those
    /// waits behind a large table that is not. `idle` is told [when asked](Self::ask_for_notice).
    ///
    /// # Errors
    /// The system has no thread to spare.
    pub(crate) fn start(tables: Tables, idle: Arc<Notify>) -> std::io::Result<Self> {
        let loader = Self {
            desk: Arc::new(Desk::new(idle)),
            shelf: Arc::new(Mutex::new(Shelf::new(tables))),
        };
        loader.hire("unwind-tables", Need::Later)?;
        loader.hire("unwind-urgent", Need::Now)?;
        Ok(loader)
    }

    fn hire(&self, name: &str, least: Need) -> std::io::Result<()> {
        let (desk, shelf) = (Arc::clone(&self.desk), Arc::clone(&self.shelf));
        // Nobody waits for its end: what it does is of no use once sampling is over.
        let _thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                loop {
                    // Already while waiting: what is urgent should not begin late where others keep the CPUs busy.
                    let urgent = Urgent::now();
                    let order = desk.take(least);
                    let _urgent = (order.need == Need::Now).then_some(urgent);
                    publish(&order, &shelf);
                }
            })?;
        Ok(())
    }

    /// Asks for a file's table. A file that is published already is left alone.
    pub(crate) fn load(&self, need: Need, key: CodeKey, file: File) {
        self.desk.put(need, Order { key, file });
    }

    /// Asks for a notice as soon as all that was asked for is in place.
    pub(crate) fn ask_for_notice(&self) {
        self.desk.tell_when_idle();
    }

    /// Waits until all that was asked for is in place.
    pub(crate) fn wait(&self) {
        self.desk.wait_until_idle();
    }

    /// What is in place by now.
    pub(crate) fn loaded(&self) -> Loaded {
        lock(&self.shelf).loaded()
    }
}

/// Makes a file's table and puts it in place. It is made without holding the others up.
fn publish(order: &Order, shelf: &Mutex<Shelf>) {
    let began = Instant::now();
    if !lock(shelf).begin(order.key) {
        return;
    }
    // The memory is made meanwhile.
    let table = UnwindTable::read_expecting(&order.file, |bytes| lock(shelf).expect(bytes));
    lock(shelf).end(order.key, table, began);
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
