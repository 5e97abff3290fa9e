//! All tables that are in place.
//!
//! In: tables as they were made, and whose they are. Out: those tables in the kernel half's memory, each
//! once, published for all files that have it; a table that was used least lately makes room for another.

use super::worker::Loaded;
use crate::kernel::{self, CodePart, StoredTable, Tables};
use crate::unwind::{self, RuleSet, UnwindTable};
use profiler_common::abi::{CodeKey, TABLE_PAGE_BITS};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Instant;

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

/// The tables, by contents and by file.
pub(crate) struct Shelf {
    tables: Tables,
    rules: RuleSet,
    /// How many of the rules the kernel half knows.
    known_rules: usize,
    hasher: RandomState,
    shelved: HashMap<Contents, Shelved>,
    /// Files that are published, those without a table too.
    published: HashMap<CodeKey, Option<Contents>>,
    /// Files whose tables are being made.
    begun: HashSet<CodeKey>,
    /// Files for whose tables there was no room: not worth making them again and again.
    refused: HashSet<CodeKey>,
    loaded: Loaded,
}

impl Shelf {
    /// No tables yet.
    pub(crate) fn new(tables: Tables) -> Self {
        Self {
            tables,
            rules: RuleSet::new(),
            known_rules: 0,
            hasher: RandomState::new(),
            shelved: HashMap::new(),
            published: HashMap::new(),
            begun: HashSet::new(),
            refused: HashSet::new(),
            loaded: Loaded::default(),
        }
    }

    /// What is in place.
    pub(crate) fn loaded(&self) -> Loaded {
        self.loaded
    }

    /// Whether a file's table is to be made. If so, nobody else is told so until it is [done](Self::end).
    pub(crate) fn begin(&mut self, key: CodeKey) -> bool {
        !self.published.contains_key(&key) && !self.refused.contains(&key) && self.begun.insert(key)
    }

    /// Makes room for a table of about so many bytes that is being made.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.tables.expect(bytes);
    }

    /// Puts in place what was made of a file since `began`.
    pub(crate) fn end(
        &mut self,
        key: CodeKey,
        made: Result<UnwindTable, unwind::Error>,
        began: Instant,
    ) {
        self.begun.remove(&key);
        // A map that cannot be made is a table that cannot be had: walks end there, and are counted.
        if self.put(key, made).is_err() {
            self.loaded.refused += 1;
        }
        self.loaded.time += began.elapsed();
        self.loaded.bytes = self.tables.bytes();
        self.loaded.rules_refused = self.rules.refused();
    }

    fn put(
        &mut self,
        key: CodeKey,
        made: Result<UnwindTable, unwind::Error>,
    ) -> kernel::Result<()> {
        let mut table = match made {
            Ok(table) if !table.is_empty() => table,
            no_table => {
                self.loaded.too_large += usize::from(no_table == Err(unwind::Error::TooLarge));
                self.publish_bare(key);
                return Ok(());
            }
        };
        table.adopt(&mut self.rules);
        self.tables
            .set_rules(self.known_rules, &self.rules.rules()[self.known_rules..]);
        self.known_rules = self.rules.rules().len();
        let contents = self.hasher.hash_one((&table.rows, &table.pages));
        if !self.shelved.contains_key(&contents) {
            let Some(stored) = self.store(&table)? else {
                self.loaded.refused += 1;
                self.refused.insert(key);
                return Ok(());
            };
            let order = self.loaded.tables;
            self.loaded.tables += 1;
            self.loaded.rows += table.rows.len();
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
    fn store(&mut self, table: &UnwindTable) -> kernel::Result<Option<StoredTable>> {
        // What cannot fit beside nothing need not push out everything first.
        if table.bytes() as u64 > self.tables.limit() {
            return Ok(None);
        }
        loop {
            if let Some(stored) = self.tables.store(&table.pages, &table.rows)? {
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
