//! The unwind tables in the kernel.
//!
//! In: tables, and the files they are of. Out: each table stored once and installed for all files that have
//! it. If there is no room, the least recently used table is evicted.

mod additions;

use super::queue::CodeCopy;
use super::{CodeSegment, TableStore};
use crate::runtime::Detected;
use crate::unwind::{self, RuleSet, UnwindTable};
use foldhash::quality::RandomState;
use profiler_common::abi::{CodeKey, TABLE_PAGE_BITS, TableRow, used_clock};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map};
use std::hash::BuildHasher as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Totals of what was loaded.
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
    /// How many tables were removed because nobody had used them for long.
    pub(crate) given_back: usize,
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
    /// How often one had to wait for what the recording may cost.
    pub(crate) put_off: usize,
    /// The time that making them took.
    pub(crate) time: Duration,
    /// Functions that nothing describes and whose rows were read from their code.
    pub(crate) functions: usize,
    /// How often an address was left out, because reading functions had taken as long as it may. It counts again each second in
    /// which samples come to it.
    pub(crate) functions_left_out: usize,
}

/// A table with code that was not read: where descriptions were left out, with the rows that it had at first, which are few;
/// otherwise without.
pub(super) type Outline = UnwindTable;

/// A table, and the files it is installed for.
struct CachedTable<T> {
    stored: T,
    keys: Vec<CodeKey>,
    /// Its sequence number.
    order: usize,
    /// When it was made, as [`used_clock`] counts.
    made: u64,
    /// None where everything was read.
    outline: Option<Arc<Outline>>,
    /// The rows of pages, by number, that functions were put into or looked for in: reading them from the kernel takes longer.
    pages: HashMap<u32, Vec<TableRow>>,
    /// Pages that have other rows than at first.
    changed: HashSet<u32>,
    /// Pages whose descriptions were read after the others.
    read: HashSet<u32>,
    /// How often some were.
    reads: u32,
}

impl<T> CachedTable<T> {
    /// The rows of a page.
    fn rows<S: TableStore<ObjectRows = T>>(
        &mut self,
        store: &mut S,
        page: u32,
    ) -> Result<&mut Vec<TableRow>, S::Error> {
        Ok(match self.pages.entry(page) {
            hash_map::Entry::Occupied(page) => page.into_mut(),
            hash_map::Entry::Vacant(free) => {
                let outline = self.outline.as_ref();
                let first =
                    outline.filter(|it| it.index.is_some() && !self.changed.contains(&page));
                free.insert(match first {
                    Some(outline) => outline.rows_of(page).to_vec(),
                    None => store.rows(&self.stored, page)?,
                })
            }
        })
    }
}

/// A table that no walk has come to for so long is given up, as [`used_clock`] counts: five minutes.
const LONG: u64 = used_clock(300 * 1_000_000_000);

/// The present, as [`used_clock`] counts.
pub(super) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    used_clock(Duration::try_from(time).unwrap_or_default().as_nanos() as u64)
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
    tables: HashMap<Contents, CachedTable<S::ObjectRows>>,
    /// Files that are installed, including those without a table.
    published: HashMap<CodeKey, Option<Contents>>,
    /// Code of files that cannot be followed.
    given_up: HashMap<CodeKey, Vec<Range<u64>>>,
    /// Segments of files with a table, and the number of the runtime's descriptor.
    segments: HashMap<CodeKey, (Vec<CodeSegment>, u8)>,
    /// Memory that holds code of files.
    copies: HashMap<CodeKey, Vec<CodeCopy>>,
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
            given_up: HashMap::new(),
            segments: HashMap::new(),
            copies: HashMap::new(),
            claimed: HashSet::new(),
            refused: HashSet::new(),
            loaded: Loaded::default(),
        }
    }

    /// Totals of what is installed.
    pub(super) fn loaded(&self) -> Loaded {
        self.loaded.clone()
    }

    /// Whether a file's table is to be made. If so, the answer is no for others until it is
    /// [inserted](Self::insert).
    pub(super) fn claim(&mut self, key: CodeKey) -> bool {
        let is_known = self.published.contains_key(&key) || self.refused.contains(&key);
        !is_known && self.claimed.insert(key)
    }

    /// The outline of a file's table, if some of its code has no rows yet.
    pub(super) fn outline(&self, key: CodeKey) -> Option<Arc<Outline>> {
        self.table(key)?.outline.clone()
    }

    fn table(&self, key: CodeKey) -> Option<&CachedTable<S::ObjectRows>> {
        self.tables.get(self.published.get(&key)?.as_ref()?)
    }

    /// Has the kernel half know the rules that are new.
    fn tell_rules(&mut self) {
        let new = &self.rules.rules()[self.known_rules..];
        self.store.set_rules(self.known_rules, new);
        self.known_rules = self.rules.rules().len();
    }

    /// Counts functions that are left out.
    pub(super) fn leave_out_functions(&mut self, count: usize) {
        self.loaded.functions_left_out += count;
    }

    /// Takes no more memory in the kernel than now.
    pub(super) fn stop_growing(&mut self) {
        self.store.stop_growing();
    }

    /// Makes room in advance for a table of about so many bytes.
    pub(super) fn reserve(&mut self, bytes: u64) {
        self.store.reserve(bytes);
    }

    /// Installs what was made of a file since `began`; `runtime` is the number of its runtime's descriptor.
    pub(super) fn insert(
        &mut self,
        key: CodeKey,
        made: Result<UnwindTable, unwind::Error>,
        runtime: u8,
        began: Instant,
    ) {
        self.claimed.remove(&key);
        // If a map cannot be created there is no table: walks end there and are counted.
        if self.put(key, made, runtime).is_err() {
            self.loaded.refused += 1;
        }
        self.loaded.time += began.elapsed();
        self.loaded.bytes = self.store.bytes();
        self.loaded.rules_refused = self.rules.refused();
    }

    /// Notes a runtime. Returns the number of its descriptor; zero if its frames are not shown.
    pub(super) fn add_runtime(&mut self, runtime: Detected) -> u8 {
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
        let mut table = match made {
            Ok(table) if !table.is_empty() => table,
            no_table => {
                self.loaded.too_large += usize::from(no_table == Err(unwind::Error::TooLarge));
                self.publish_no_table(key);
                return Ok(());
            }
        };
        table.adopt(&mut self.rules);
        self.tell_rules();
        let is_open = table.origin.has_unread || table.origin.kept_bytes > 0;
        // Rows of functions will be put into it, which another file need not have.
        let whose = is_open.then_some(key);
        let contents = self.hasher.hash_one((&table.rows, &table.pages, whose));
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
            let outline = is_open.then(|| {
                let keeps_rows = table.index.is_some();
                Arc::new(Outline {
                    ranges: table.ranges.clone(),
                    loads: table.loads.clone(),
                    pages: if keeps_rows {
                        table.pages.clone()
                    } else {
                        Vec::new()
                    },
                    rows: if keeps_rows {
                        table.rows.clone()
                    } else {
                        Vec::new()
                    },
                    origin: table.origin,
                    index: table.index.clone(),
                    ..Outline::default()
                })
            });
            self.tables.insert(
                contents,
                CachedTable {
                    stored,
                    keys,
                    order,
                    made: now(),
                    outline,
                    pages: HashMap::new(),
                    changed: HashSet::new(),
                    read: HashSet::new(),
                    reads: 0,
                },
            );
        }
        if let Some(cached) = self.tables.get_mut(&contents) {
            cached.keys.push(key);
            let segments = segments(&table);
            self.loaded.left_out +=
                self.store
                    .publish(key, Some(&cached.stored), &segments, runtime);
            self.segments.insert(key, (segments, runtime));
        }
        self.published.insert(key, Some(contents));
        for copy in self.copies.get(&key).cloned().unwrap_or_default() {
            self.publish_copy(key, &copy);
        }
        Ok(())
    }

    /// Has memory walked by the table of the file whose code it holds, now or as soon as there is one.
    pub(super) fn add_copy(&mut self, key: CodeKey, copy: CodeCopy) {
        self.publish_copy(key, &copy);
        self.copies.entry(key).or_default().push(copy);
    }

    fn publish_copy(&mut self, key: CodeKey, copy: &CodeCopy) {
        let known = self.published.get(&key).copied().flatten();
        let (Some(contents), Some((segments, runtime))) = (known, self.segments.get(&key)) else {
            return;
        };
        let is_in = |segment: &&CodeSegment| (segment.start..segment.end).contains(&copy.offset);
        let (Some(cached), Some(segment)) = (
            self.tables.get_mut(&contents),
            // The first page may begin before the segment.
            segments.iter().find(is_in).or_else(|| {
                let end = copy
                    .offset
                    .saturating_add(copy.range.end - copy.range.start);
                let mut after = segments.iter();
                after.find(|segment| segment.start > copy.offset && segment.start < end)
            }),
        ) else {
            return;
        };
        let there = |position: u64| {
            copy.range
                .start
                .wrapping_add(position.wrapping_sub(copy.offset))
        };
        let part = CodeSegment {
            start: there(segment.start.max(copy.offset)),
            end: there(segment.end).min(copy.range.end),
            shift: segment
                .shift
                .wrapping_add(copy.offset.wrapping_sub(copy.range.start)),
            first_page: segment.first_page,
        };
        // As a file it is known as one without a table.
        if self.published.contains_key(&copy.key) && self.store.withdraw(&[copy.key]).is_err() {
            return;
        }
        self.loaded.left_out +=
            self.store
                .publish(copy.key, Some(&cached.stored), &[part], *runtime);
        cached.keys.push(copy.key);
        self.published.insert(copy.key, Some(contents));
    }

    fn publish_no_table(&mut self, key: CodeKey) {
        self.loaded.no_table += 1;
        self.loaded.left_out += self.store.publish(key, None, &[CodeSegment::NO_TABLE], 0);
        self.published.insert(key, None);
    }

    /// Stores a table, evicting others if necessary.
    fn store(&mut self, table: &UnwindTable) -> Result<Option<S::ObjectRows>, S::Error> {
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
        let last_used = |cached: &CachedTable<S::ObjectRows>| {
            let used = cached.keys.iter().map(|&key| self.store.last_used(key));
            (used.max().unwrap_or(0), cached.order)
        };
        let oldest = self
            .tables
            .iter()
            .min_by_key(|(_, cached)| last_used(cached))
            .map(|(&contents, _)| contents);
        let Some(oldest) = oldest else {
            return Ok(false);
        };
        self.remove(&[oldest], Vec::new())?;
        self.loaded.evicted += 1;
        Ok(true)
    }

    /// Gives up what no walk has come to for long: tables, and what is known of files that have none. What is met again is loaded
    /// again; but memory with a file's text does not tell of which, so tables for such stay.
    pub(super) fn give_back(&mut self, now: u64) {
        let since = now.saturating_sub(LONG);
        let used = |key: &CodeKey| self.store.last_used(*key);
        let is_unused = |cached: &CachedTable<S::ObjectRows>| {
            let is_unused = |key| used(key) < since && !self.copies.contains_key(key);
            cached.made < since && cached.keys.iter().all(is_unused)
        };
        let tables = self.tables.iter().filter(|(_, cached)| is_unused(cached));
        let tables: Vec<Contents> = tables.map(|(&contents, _)| contents).collect();
        let bare = self.published.iter().filter(|(_, table)| table.is_none());
        let bare = bare.filter(|(key, _)| (1..since).contains(&used(key)));
        let bare: Vec<CodeKey> = bare.map(|(&key, _)| key).collect();
        if tables.is_empty() && bare.is_empty() {
            return;
        }
        // After an error, slabs stay for what comes.
        let removed = self.remove(&tables, bare);
        if removed.and_then(|()| self.store.give_back()).is_ok() {
            self.loaded.given_back += tables.len();
        }
        self.loaded.bytes = self.store.bytes();
    }

    /// Takes tables out of the kernel, with all files that they are for, and files that have none.
    fn remove(&mut self, tables: &[Contents], bare: Vec<CodeKey>) -> Result<(), S::Error> {
        let removed = tables.iter().filter_map(|table| self.tables.remove(table));
        let removed: Vec<_> = removed.collect();
        let mut keys = bare;
        keys.extend(removed.iter().flat_map(|table| &table.keys));
        for key in &keys {
            self.published.remove(key);
            self.segments.remove(key);
            self.given_up.remove(key);
        }
        self.store.withdraw(&keys)?;
        for table in removed {
            self.store.release(table.stored);
        }
        Ok(())
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

#[cfg(test)]
mod tests;
