//! Unwind tables in the kernel: installs and removes them.
//!
//! In: rows and pages of an object's table, and the file segments they are for. Out: nothing; the kernel half
//! finds them. Never knows of ELF files.

use super::shared::{Shared, map};
use super::slabs::{Slabs, StoredWords};
use super::{Result, grace};
use crate::unwind::loader::{CodeSegment, TableStore};
use aya::maps::MapData;
use profiler_common::abi::{
    CODE_PROBES, CODE_SLOT_BITS, COUNTERS_WORDS, Code, CodeKey, CodeState, Control, MAX_RULES,
    PageRows, Rule, SLAB_WORDS, TableRow,
};
use profiler_common::intern::Hash;
use profiler_common::runtime::{DESCRIPTOR_WORDS, DESCRIPTORS};
use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// So many pages are stored in one piece, if there is room for all.
const TOGETHER: usize = 16;

/// Words of a slot of the index of code.
const SLOT_WORDS: usize = size_of::<Code>() / 8;

const START: usize = offset_of!(Code, start) / 8;
const END: usize = offset_of!(Code, end) / 8;
const SHIFT: usize = offset_of!(Code, shift) / 8;
const STATE: usize = offset_of!(Code, state) / 8;
const USED: usize = offset_of!(Code, used) / 8;

const CHANGES: usize = offset_of!(Control, code_changes) / 8;

/// The kernel half's tables. Used by one thread.
pub struct Tables {
    pub(super) slabs: Slabs,
    pub(super) code: Shared,
    pub(super) rules: Shared,
    pub(super) counters: Shared,
    pub(super) control: Shared,
    /// The descriptors of runtimes, and how many there are, with the one that is not used.
    pub(super) runtimes: Shared,
    pub(super) descriptors: usize,
    pub(super) seed: u64,
}

/// One object's rows in the kernel.
#[derive(Debug, Default)]
pub struct StoredTable {
    rows: Vec<StoredWords>,
    pages: Option<StoredWords>,
    /// The words of `pages`: for each page where its rows are, and how many.
    directory: Vec<u32>,
    /// Rows that are in the place of those of a page.
    replaced: HashMap<u32, StoredWords>,
}

/// A row as the kernel half reads it.
fn word_of(row: &TableRow) -> u32 {
    u32::from(row.low) | u32::from(row.rule) << 16
}

fn row_of(word: u32) -> TableRow {
    TableRow {
        low: word as u16,
        rule: (word >> 16) as u16,
    }
}

impl TableStore for Tables {
    type ObjectRows = StoredTable;
    type Error = super::Error;

    fn limit(&self) -> u64 {
        self.slabs.limit()
    }

    fn bytes(&self) -> u64 {
        self.slabs.bytes() + 8 * (self.code.words().len() + self.rules.words().len()) as u64
    }

    fn stop_growing(&mut self) {
        self.slabs.stop_growing();
    }

    fn reserve(&mut self, bytes: u64) {
        self.slabs
            .expect(usize::try_from(bytes / 4).unwrap_or(usize::MAX));
    }

    fn set_rules(&self, from: usize, rules: &[Rule]) {
        for (place, rule) in self.rules.words()[from..].iter().zip(rules) {
            place.store(rule.0, Relaxed);
        }
    }

    fn store(&mut self, pages: &[PageRows], rows: &[TableRow]) -> Result<Option<StoredTable>> {
        let mut stored = StoredTable::default();
        match self.store_parts(pages, rows, &mut stored) {
            Ok(true) => Ok(Some(stored)),
            Ok(false) => {
                self.release_memory(&stored);
                Ok(None)
            }
            Err(error) => {
                self.release_memory(&stored);
                Err(error)
            }
        }
    }

    fn add_runtime(&mut self, words: &[u64; DESCRIPTOR_WORDS]) -> Option<u8> {
        let all = self.runtimes.words().chunks_exact(DESCRIPTOR_WORDS);
        let is_same = |place: &[AtomicU64]| {
            let words = place.iter().zip(words);
            words
                .into_iter()
                .all(|(word, new)| word.load(Relaxed) == *new)
        };
        let known = all.take(self.descriptors).skip(1).position(is_same);
        if let Some(known) = known {
            return u8::try_from(known + 1).ok();
        }
        if self.descriptors >= DESCRIPTORS {
            return None;
        }
        let place = &self.runtimes.words()[self.descriptors * DESCRIPTOR_WORDS..];
        for (place, word) in place.iter().zip(words) {
            place.store(*word, Relaxed);
        }
        self.descriptors += 1;
        let bit = 1 << (words[0] & 0xff);
        self.runtimes.words()[0].fetch_or(bit, Relaxed);
        u8::try_from(self.descriptors - 1).ok()
    }

    fn publish(
        &self,
        key: CodeKey,
        table: Option<&StoredTable>,
        segments: &[CodeSegment],
        runtime: u8,
    ) -> usize {
        let base = table
            .and_then(|table| table.pages.as_ref())
            .map_or(0, StoredWords::place);
        let mut left_out = 0;
        for segment in segments {
            let state = match segment.first_page {
                Some((page, place)) => {
                    let first = base.wrapping_add(place * 2);
                    let pages = first.wrapping_sub((page as u32).wrapping_mul(2));
                    CodeState::table(pages).with_runtime(runtime)
                }
                None => CodeState::BARE,
            };
            left_out += usize::from(!self.put(key, segment, state));
        }
        self.tell_of_change();
        left_out
    }

    fn rows(&mut self, table: &StoredTable, page: u32) -> Result<Vec<TableRow>> {
        let place = page as usize * 2;
        let Some(&[first, count]) = table.directory.get(place..place + 2) else {
            return Ok(Vec::new());
        };
        let words = self.slabs.read(first, count)?;
        Ok(words.into_iter().map(row_of).collect())
    }

    fn replace(
        &mut self,
        table: &mut StoredTable,
        keys: &[CodeKey],
        pages: &[(u32, Vec<TableRow>)],
    ) -> Result<bool> {
        let Some(before) = table.pages.clone() else {
            return Ok(false);
        };
        let mut directory = table.directory.clone();
        let mut new = Vec::new();
        let stored = self.store_pages(pages, &mut directory, &mut new);
        let stored = stored.and_then(|is_there| match is_there {
            true => self.slabs.store(&directory),
            false => Ok(None),
        });
        let Ok(Some(after)) = stored else {
            for (_, rows) in &new {
                self.slabs.release(rows);
            }
            return stored.map(|_| false);
        };
        table.directory = directory;
        // One word for each segment: a walk has the old pages or the new ones.
        let moved = after.place().wrapping_sub(before.place());
        for slot in keys.iter().flat_map(|&key| self.of(key)) {
            let state = CodeState(slot[STATE].load(Relaxed));
            let runtime = state.runtime() as u8;
            let state = CodeState::table(state.pages().wrapping_add(moved)).with_runtime(runtime);
            slot[STATE].store(state.0, Release);
        }
        self.tell_of_change();
        table.pages = Some(after);
        let mut unused = vec![before];
        for (page, rows) in new {
            unused.extend(table.replaced.insert(page, rows));
        }
        grace::wait(self.counters.words())?;
        for stored in &unused {
            self.slabs.release(stored);
        }
        Ok(true)
    }

    fn last_used(&self, key: CodeKey) -> u64 {
        self.of(key)
            .map(|slot| slot[USED].load(Relaxed))
            .max()
            .unwrap_or(0)
    }

    fn withdraw(&self, keys: &[CodeKey]) -> Result<()> {
        for &key in keys {
            for slot in self.of(key) {
                slot[STATE].store(CodeState::GONE.0, Release);
            }
        }
        self.tell_of_change();
        grace::wait(self.counters.words())
    }

    fn release(&mut self, table: StoredTable) {
        self.release_memory(&table);
    }

    fn give_back(&mut self) -> Result<()> {
        self.slabs.give_back()
    }
}

impl Tables {
    pub(super) fn new(
        slabs: MapData,
        [code, rules, counters, control, runtimes]: [&MapData; 5],
        cpu_slots: usize,
        seed: u64,
    ) -> Result<Self> {
        Ok(Self {
            slabs: Slabs::new(slabs)?,
            code: map("CODE", code, 0, SLOT_WORDS << CODE_SLOT_BITS)?,
            rules: map("RULES", rules, 0, MAX_RULES)?,
            counters: map("COUNTERS", counters, 0, cpu_slots * COUNTERS_WORDS)?,
            control: map("CONTROL", control, 0, size_of::<Control>() / 8)?,
            runtimes: map("RUNTIMES", runtimes, 0, DESCRIPTORS * DESCRIPTOR_WORDS)?,
            descriptors: 1,
            seed,
        })
    }

    fn store_parts(
        &mut self,
        pages: &[PageRows],
        rows: &[TableRow],
        stored: &mut StoredTable,
    ) -> Result<bool> {
        if pages.len() * 2 > SLAB_WORDS {
            return Ok(false);
        }
        let mut directory: Vec<u32> = Vec::with_capacity(pages.len() * 2);
        let mut words = Vec::new();
        let mut rest = pages;
        // As many pages at a time as fit into one slab: a page's rows stay together.
        while let Some(first) = rest.first() {
            let fits =
                |page: &&PageRows| (page.first + page.count - first.first) as usize <= SLAB_WORDS;
            let count = rest.iter().take_while(fits).count();
            let (now, later) = rest.split_at(count);
            let Some(last) = now.last() else {
                return Ok(false);
            };
            let range = first.first as usize..(last.first + last.count) as usize;
            words.clear();
            words.extend(rows[range].iter().map(word_of));
            let Some(chunk) = self.slabs.store(&words)? else {
                return Ok(false);
            };
            for page in now {
                directory.extend([chunk.place() + (page.first - first.first), page.count]);
            }
            stored.rows.push(chunk);
            rest = later;
        }
        stored.pages = self.slabs.store(&directory)?;
        stored.directory = directory;
        Ok(stored.pages.is_some())
    }

    /// Stores the rows of pages, and notes in the directory where they are; false if there is no room.
    fn store_pages(
        &mut self,
        pages: &[(u32, Vec<TableRow>)],
        directory: &mut [u32],
        stored: &mut Vec<(u32, StoredWords)>,
    ) -> Result<bool> {
        let words_of = |(_, rows): &(u32, Vec<TableRow>)| rows.iter().map(word_of).collect();
        let words: Vec<Vec<u32>> = pages.iter().map(words_of).collect();
        // A page has fewer rows than a sixteenth of a slab has words, but for hostile ones.
        for (pages, words) in pages.chunks(TOGETHER).zip(words.chunks(TOGETHER)) {
            let count: usize = words.iter().map(|words| words.len() + 1).sum();
            let parts = if count <= SLAB_WORDS { TOGETHER } else { 1 };
            for (pages, words) in pages.chunks(parts).zip(words.chunks(parts)) {
                let Some(chunks) = self.slabs.store_parts(words)? else {
                    return Ok(false);
                };
                let all = pages.iter().zip(words).zip(chunks);
                for (((page, _), words), chunk) in all {
                    let place = *page as usize * 2;
                    if let Some(place) = directory.get_mut(place..place + 2) {
                        place.copy_from_slice(&[chunk.place(), words.len() as u32]);
                    }
                    stored.push((*page, chunk));
                }
            }
        }
        Ok(true)
    }

    fn put(&self, key: CodeKey, segment: &CodeSegment, state: CodeState) -> bool {
        let free = self.slots(key).find(|slot| {
            let state = slot[STATE].load(Relaxed);
            state == 0 || state == CodeState::GONE.0
        });
        let Some(slot) = free else { return false };
        let words = [key.device, key.inode, key.modified];
        for (place, word) in slot.iter().zip(words) {
            place.store(word, Relaxed);
        }
        slot[START].store(segment.start, Relaxed);
        slot[END].store(segment.end, Relaxed);
        slot[SHIFT].store(segment.shift, Relaxed);
        slot[USED].store(0, Relaxed);
        slot[STATE].store(state.0, Release);
        true
    }

    /// Makes the kernel half forget what it has cached of the index. A firing that begins after this sees the
    /// index as it is.
    fn tell_of_change(&self) {
        self.control.words()[CHANGES].fetch_add(1, SeqCst);
    }

    fn release_memory(&mut self, table: &StoredTable) {
        let all = table.rows.iter().chain(&table.pages);
        for stored in all.chain(table.replaced.values()) {
            self.slabs.release(stored);
        }
    }

    /// The slots of an installed file.
    fn of(&self, key: CodeKey) -> impl Iterator<Item = &[AtomicU64]> {
        self.slots(key).filter(move |slot| {
            let state = slot[STATE].load(Acquire);
            let words = [key.device, key.inode, key.modified];
            state != 0
                && state != CodeState::GONE.0
                && slot
                    .iter()
                    .zip(words)
                    .all(|(place, word)| place.load(Relaxed) == word)
        })
    }

    /// All slots that may hold a file, in the order in which the kernel half tries them.
    fn slots(&self, key: CodeKey) -> impl Iterator<Item = &[AtomicU64]> {
        let hash = Hash::new(self.seed)
            .with(key.device)
            .with(key.inode)
            .with(key.modified);
        (0..CODE_PROBES).map(move |probe| {
            let slot = hash.slot(probe, (1 << CODE_SLOT_BITS) - 1) as usize;
            &self.code.words()[slot * SLOT_WORDS..][..SLOT_WORDS]
        })
    }
}
