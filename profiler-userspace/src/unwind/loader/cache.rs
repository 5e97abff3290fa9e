//! The unwind tables in the kernel.
//!
//! In: tables, and the files they are of. Out: each table stored once and installed for all files that have
//! it. If there is no room, the least recently used table is evicted.

use super::{CodeSegment, TableStore};
use crate::runtime::Detected;
use crate::unwind::{self, Depth, RuleSet, UnwindTable};
use foldhash::quality::RandomState;
use profiler_common::abi::{CodeKey, TABLE_PAGE_BITS};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

/// What has been loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Objects with a table.
    pub(crate) tables: usize,
    /// Rows in the tables that were made.
    pub(crate) rows: usize,
    /// Files without a table.
    pub(crate) no_table: usize,
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
    /// Runtimes whose frames are shown, each once: `CPython 3.11`.
    pub(crate) runtimes: BTreeSet<String>,
    /// Those whose frames are not, with why.
    pub(crate) runtimes_left_out: BTreeMap<String, &'static str>,
    /// The time that making them took.
    pub(crate) time: Duration,
}

/// A table, and the files it is installed for.
struct CachedTable<T> {
    stored: T,
    keys: Vec<CodeKey>,
    /// Its sequence number.
    order: usize,
}

/// A table's identity: a hash of its contents that cannot be foreseen. A file with many copies, as in
/// containers, takes memory once. Build IDs would not do, because anyone can write any.
type Contents = u64;

/// The tables, by contents and by file.
pub(super) struct TableCache<S: TableStore> {
    store: S,
    rules: RuleSet,
    /// How many rules the kernel half has.
    known_rules: usize,
    hasher: RandomState,
    tables: HashMap<Contents, CachedTable<S::Stored>>,
    /// Files that are installed, including those without a table.
    published: HashMap<CodeKey, Option<Contents>>,
    /// Those of them with code that nothing describes and that was not read.
    unread: HashSet<CodeKey>,
    /// Files whose tables are being made.
    claimed: HashSet<CodeKey>,
    /// Files whose tables found no room: not worth trying again and again.
    refused: HashSet<CodeKey>,
    loaded: Loaded,
}

impl<S: TableStore> TableCache<S> {
    /// No tables yet.
    pub(super) fn new(store: S) -> Self {
        Self {
            store,
            rules: RuleSet::new(),
            known_rules: 0,
            hasher: RandomState::default(),
            tables: HashMap::new(),
            published: HashMap::new(),
            unread: HashSet::new(),
            claimed: HashSet::new(),
            refused: HashSet::new(),
            loaded: Loaded::default(),
        }
    }

    /// What is installed.
    pub(super) fn loaded(&self) -> Loaded {
        self.loaded.clone()
    }

    /// Whether a file's table is to be made. If so, the answer is no for others until it is
    /// [inserted](Self::insert).
    pub(super) fn claim(&mut self, key: CodeKey, depth: Depth) -> bool {
        let is_wanted = match depth {
            Depth::Described => !self.published.contains_key(&key),
            Depth::Code => !self.published.contains_key(&key) || self.unread.contains(&key),
        };
        is_wanted && !self.refused.contains(&key) && self.claimed.insert(key)
    }

    /// Makes room in advance for a table of about so many bytes.
    pub(super) fn reserve(&mut self, bytes: u64) {
        self.store.reserve(bytes);
    }

    /// Installs what was made of a file since `began`.
    pub(super) fn insert(
        &mut self,
        key: CodeKey,
        made: Result<UnwindTable, unwind::Error>,
        runtime: Option<Detected>,
        began: Instant,
    ) {
        self.claimed.remove(&key);
        let runtime = runtime.map_or(0, |runtime| self.add_runtime(runtime));
        // If a map cannot be created there is no table: walks end there and are counted.
        if self.put(key, made, runtime).is_err() {
            self.loaded.refused += 1;
        }
        self.loaded.time += began.elapsed();
        self.loaded.bytes = self.store.bytes();
        self.loaded.rules_refused = self.rules.refused();
    }

    /// The number of a runtime's descriptor; zero if its frames are not shown.
    fn add_runtime(&mut self, runtime: Detected) -> u8 {
        let number = runtime.words.and_then(|words| {
            let number = self.store.add_runtime(&words);
            number.ok_or("there are too many others of other builds")
        });
        match number {
            Ok(number) => {
                self.loaded.runtimes.insert(runtime.name);
                number
            }
            Err(why) => {
                self.loaded.runtimes_left_out.insert(runtime.name, why);
                0
            }
        }
    }

    fn put(
        &mut self,
        key: CodeKey,
        made: Result<UnwindTable, unwind::Error>,
        runtime: u8,
    ) -> Result<(), S::Error> {
        let was_unread = self.unread.remove(&key);
        let mut table = match made {
            Ok(table) if !table.is_empty() => table,
            no_table => {
                self.loaded.too_large += usize::from(no_table == Err(unwind::Error::TooLarge));
                self.take_back(key)?;
                self.publish_no_table(key);
                return Ok(());
            }
        };
        table.adopt(&mut self.rules);
        self.store
            .set_rules(self.known_rules, &self.rules.rules()[self.known_rules..]);
        self.known_rules = self.rules.rules().len();
        let contents = self.hasher.hash_one((&table.rows, &table.pages));
        if !self.tables.contains_key(&contents) {
            let Some(stored) = self.store(&table)? else {
                self.loaded.refused += 1;
                self.refused.insert(key);
                return Ok(());
            };
            let order = self.loaded.tables;
            self.loaded.tables += 1;
            self.loaded.rows += table.rows.len();
            let keys = Vec::new();
            self.tables.insert(
                contents,
                CachedTable {
                    stored,
                    keys,
                    order,
                },
            );
        }
        if table.origin.has_unread {
            self.unread.insert(key);
        }
        if was_unread {
            if self.published.get(&key) == Some(&Some(contents)) {
                return Ok(());
            }
            self.take_back(key)?;
        }
        if let Some(cached) = self.tables.get_mut(&contents) {
            cached.keys.push(key);
            let segments = segments(&table);
            self.loaded.left_out +=
                self.store
                    .publish(key, Some(&cached.stored), &segments, runtime);
        }
        self.published.insert(key, Some(contents));
        Ok(())
    }

    /// Takes back what is published of a file, and its table if no other file has that.
    fn take_back(&mut self, key: CodeKey) -> Result<(), S::Error> {
        let Some(published) = self.published.remove(&key) else {
            return Ok(());
        };
        self.store.withdraw(&[key])?;
        let Some(contents) = published else {
            return Ok(());
        };
        if let Some(cached) = self.tables.get_mut(&contents) {
            cached.keys.retain(|&other| other != key);
            if cached.keys.is_empty()
                && let Some(cached) = self.tables.remove(&contents)
            {
                self.store.release(cached.stored);
                self.loaded.tables -= 1;
            }
        }
        Ok(())
    }

    fn publish_no_table(&mut self, key: CodeKey) {
        self.loaded.no_table += 1;
        self.loaded.left_out += self.store.publish(key, None, &[CodeSegment::NO_TABLE], 0);
        self.published.insert(key, None);
    }

    /// Stores a table, evicting others if necessary.
    fn store(&mut self, table: &UnwindTable) -> Result<Option<S::Stored>, S::Error> {
        // A table that fits in no case need not evict everything first.
        if table.bytes() as u64 > self.store.limit() {
            return Ok(None);
        }
        loop {
            if let Some(stored) = self.store.store(&table.pages, &table.rows)? {
                return Ok(Some(stored));
            }
            if !self.evict()? {
                return Ok(None);
            }
        }
    }

    /// Evicts the least recently used table; false if there is none.
    fn evict(&mut self) -> Result<bool, S::Error> {
        let last_used = |cached: &CachedTable<S::Stored>| {
            let used = cached.keys.iter().map(|&key| self.store.last_used(key));
            (used.max().unwrap_or(0), cached.order)
        };
        let oldest = self
            .tables
            .iter()
            .min_by_key(|(_, cached)| last_used(cached))
            .map(|(&contents, _)| contents);
        let Some(CachedTable { stored, keys, .. }) =
            oldest.and_then(|contents| self.tables.remove(&contents))
        else {
            return Ok(false);
        };
        for key in &keys {
            self.published.remove(key);
            self.unread.remove(key);
        }
        self.store.withdraw(&keys)?;
        self.store.release(stored);
        self.loaded.evicted += 1;
        Ok(true)
    }
}

/// The segments of a file that a table is for.
fn segments(table: &UnwindTable) -> Vec<CodeSegment> {
    table
        .loads
        .iter()
        .filter_map(|load| {
            Some(CodeSegment {
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
