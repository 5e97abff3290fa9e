//! Unwind tables, loaded as they are needed: a thread of its own makes them and puts them in place.
//!
//! In: open files, each with what the kernel half knows it by. Out: tables in the kernel, and
//! [`Loaded`], which tells of them. A file that is no object, or has no rows, is published as such and
//! walked by frame pointers. Once the memory limit is reached, what was used least makes room.

use super::urgent::Urgent;
use crate::kernel::{self, CodePart, StoredTable, Tables};
use crate::unwind::{self, RuleSet, UnwindTable};
use profiler_common::abi::{CodeKey, Row, TABLE_PAGE_BITS};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What has been loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loaded {
    /// Objects with a table.
    pub(super) tables: usize,
    /// Rows in the tables that were made.
    pub(super) rows: usize,
    /// Files without a table.
    pub(super) bare: usize,
    /// Those of them that claim more code or unwind instructions than are believed.
    pub(super) too_large: usize,
    /// Memory that tables take in the kernel, in bytes.
    pub(super) bytes: u64,
    /// How often a table made room for another.
    pub(super) evicted: usize,
    /// Tables for which there was no room even so.
    pub(super) refused: usize,
    /// Parts of code that are walked by no table, because the index was crowded.
    pub(super) left_out: usize,
    /// Rules for which there was no number.
    pub(super) rules_refused: usize,
    /// The time that making them took.
    pub(super) time: Duration,
}

/// What the thread is asked to do.
enum Order {
    /// Publish this file's code.
    Load(CodeKey, File),
    /// Answer when all that was asked before is done.
    Answer(Sender<()>),
    /// Notify when all that was asked before is done.
    Notify,
}

/// How soon a table is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A walk has come there, or may at any moment.
    Now,
    /// Before a walk comes there.
    Later,
}

/// Orders on their way to the thread.
#[derive(Default)]
struct Desk {
    orders: Mutex<Orders>,
    more: Condvar,
}

#[derive(Default)]
struct Orders {
    urgent: VecDeque<Order>,
    usual: VecDeque<Order>,
}

impl Desk {
    fn put(&self, need: Need, order: Order) {
        let mut orders = lock(&self.orders);
        match need {
            Need::Now => orders.urgent.push_back(order),
            Need::Later => orders.usual.push_back(order),
        }
        drop(orders);
        self.more.notify_one();
    }

    /// The next order, the urgent ones first, and how soon it is wanted; waits for one.
    fn next(&self) -> (Need, Order) {
        let mut orders = lock(&self.orders);
        loop {
            if let Some(order) = orders.urgent.pop_front() {
                return (Need::Now, order);
            }
            if let Some(order) = orders.usual.pop_front() {
                return (Need::Later, order);
            }
            orders = self
                .more
                .wait(orders)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The thread's other end.
pub(super) struct Loader {
    desk: Arc<Desk>,
    loaded: Arc<Mutex<Loaded>>,
}

impl Loader {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to spare.
    pub(super) fn start(tables: Tables, idle: Arc<Notify>) -> std::io::Result<Self> {
        let (desk, loaded): (Arc<Desk>, _) = Default::default();
        let shelf = Shelf::new(tables, Arc::clone(&loaded));
        let theirs = Arc::clone(&desk);
        // Nobody waits for its end: what it does is of no use once sampling is over.
        let _thread = std::thread::Builder::new()
            .name("unwind-tables".to_owned())
            .spawn(move || shelf.obey(&theirs, &idle))?;
        Ok(Self { desk, loaded })
    }

    /// Asks for a file's table. A file that is published already is left alone.
    pub(super) fn load(&self, need: Need, key: CodeKey, file: File) {
        self.desk.put(need, Order::Load(key, file));
    }

    /// Asks for a notice when all that was asked for is in place.
    pub(super) fn ask_for_notice(&self) {
        self.desk.put(Need::Later, Order::Notify);
    }

    /// Waits until all that was asked for is in place.
    pub(super) fn wait(&self) {
        let (answer, answered) = channel();
        self.desk.put(Need::Later, Order::Answer(answer));
        let _thread_has_panicked = answered.recv();
    }

    /// What is in place by now.
    pub(super) fn loaded(&self) -> Loaded {
        *lock(&self.loaded)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A table, and the files that it is published for.
struct Shelved {
    stored: StoredTable,
    keys: Vec<CodeKey>,
    /// When it was put in place: how many were before it.
    order: usize,
}

/// A table by its contents, under a hash that nobody can foresee: a file of which there are many copies,
/// as containers have them, takes memory once. Its build ID would not do, since anyone can write any.
type Contents = u64;

/// All tables that are in place.
struct Shelf {
    tables: Tables,
    rules: RuleSet,
    /// How many of the rules the kernel half knows.
    known_rules: usize,
    hasher: RandomState,
    shelved: HashMap<Contents, Shelved>,
    /// Files that are published, those without a table too.
    published: HashMap<CodeKey, Option<Contents>>,
    /// Files for whose tables there was no room: not worth making them again and again.
    refused: HashSet<CodeKey>,
    loaded: Loaded,
    /// Where others see it.
    shown: Arc<Mutex<Loaded>>,
}

impl Shelf {
    fn new(tables: Tables, shown: Arc<Mutex<Loaded>>) -> Self {
        Self {
            tables,
            rules: RuleSet::new(),
            known_rules: 0,
            hasher: RandomState::new(),
            shelved: HashMap::new(),
            published: HashMap::new(),
            refused: HashSet::new(),
            loaded: Loaded::default(),
            shown,
        }
    }

    fn obey(mut self, desk: &Desk, idle: &Notify) {
        loop {
            let (need, order) = desk.next();
            let _urgent = (need == Need::Now).then(Urgent::now);
            match order {
                Order::Load(key, file) => {
                    let began = Instant::now();
                    // A map that cannot be made is a table that cannot be had: walks end there, and
                    // are counted.
                    if self.load(key, &file).is_err() {
                        self.loaded.refused += 1;
                    }
                    self.loaded.time += began.elapsed();
                    self.loaded.bytes = self.tables.bytes();
                    self.loaded.rules_refused = self.rules.refused();
                    *lock(&self.shown) = self.loaded;
                }
                Order::Notify => idle.notify_one(),
                Order::Answer(answer) => {
                    let _nobody_waits = answer.send(());
                }
            }
        }
    }

    fn load(&mut self, key: CodeKey, file: &File) -> kernel::Result<()> {
        if self.published.contains_key(&key) || self.refused.contains(&key) {
            return Ok(());
        }
        let table = match UnwindTable::read(file) {
            Ok(table) if !table.is_empty() => table,
            no_table => {
                self.loaded.too_large += usize::from(no_table == Err(unwind::Error::TooLarge));
                self.publish_bare(key);
                return Ok(());
            }
        };
        let places = self.rules.adopt(&table.rules);
        self.tables
            .set_rules(self.known_rules, &self.rules.rules()[self.known_rules..]);
        self.known_rules = self.rules.rules().len();
        let rows: Vec<Row> = table.rows_with(&places).collect();
        let contents = self.hasher.hash_one((&rows, &table.pages));
        if !self.shelved.contains_key(&contents) {
            let Some(stored) = self.store(&table, &rows)? else {
                self.loaded.refused += 1;
                self.refused.insert(key);
                return Ok(());
            };
            let order = self.loaded.tables;
            self.loaded.tables += 1;
            self.loaded.rows += rows.len();
            let keys = Vec::new();
            self.shelved.insert(
                contents,
                Shelved {
                    stored,
                    keys,
                    order,
                },
            );
        }
        if let Some(shelved) = self.shelved.get_mut(&contents) {
            shelved.keys.push(key);
            let parts = parts(&table);
            self.loaded.left_out += self.tables.publish(key, Some(&shelved.stored), &parts);
        }
        self.published.insert(key, Some(contents));
        Ok(())
    }

    fn publish_bare(&mut self, key: CodeKey) {
        self.loaded.bare += 1;
        self.loaded.left_out += self.tables.publish(key, None, &[CodePart::BARE]);
        self.published.insert(key, None);
    }

    /// Stores a table, if need be in the place of others.
    fn store(&mut self, table: &UnwindTable, rows: &[Row]) -> kernel::Result<Option<StoredTable>> {
        // What cannot fit beside nothing need not push out everything first.
        if table.bytes() as u64 > self.tables.limit() {
            return Ok(None);
        }
        loop {
            if let Some(stored) = self.tables.store(&table.pages, rows)? {
                return Ok(Some(stored));
            }
            if !self.evict()? {
                return Ok(None);
            }
        }
    }

    /// Takes out the table that was used least lately; false if there is none.
    fn evict(&mut self) -> kernel::Result<bool> {
        let last_used = |shelved: &Shelved| {
            let used = shelved.keys.iter().map(|&key| self.tables.last_used(key));
            (used.max().unwrap_or(0), shelved.order)
        };
        let oldest = self
            .shelved
            .iter()
            .min_by_key(|(_, shelved)| last_used(shelved))
            .map(|(&contents, _)| contents);
        let Some(Shelved { stored, keys, .. }) =
            oldest.and_then(|contents| self.shelved.remove(&contents))
        else {
            return Ok(false);
        };
        for key in &keys {
            self.published.remove(key);
        }
        self.tables.withdraw(&keys)?;
        self.tables.release(stored);
        self.loaded.evicted += 1;
        Ok(true)
    }
}

/// The parts of a file that a table is for.
fn parts(table: &UnwindTable) -> Vec<CodePart> {
    table
        .loads
        .iter()
        .filter_map(|load| {
            Some(CodePart {
                start: load.file.start,
                end: load.file.end,
                shift: load.address.wrapping_sub(load.file.start),
                first_page: Some((
                    load.address >> TABLE_PAGE_BITS,
                    table.page_at(load.address)?,
                )),
            })
        })
        .collect()
}
