//! Rows that are put into tables after these were made: of descriptions that were left out at first, and of functions that nothing
//! describes.
//!
//! In: addresses that walks came to, and what was read of a file. Out: what is to be read, and other pages of the file's table.

use super::{CachedTable, Contents, Outline, TableCache, TableStore};
use crate::unwind::compact::{fill, lay_out, lay_over};
use crate::unwind::found::UnwindFindings;
use crate::unwind::functions::{Functions, Gap, ReadFunction};
use crate::unwind::{RuleSet, low_of, page_of};
use profiler_common::abi::{CodeKey, READ_TOGETHER_BITS, Rule, TABLE_PAGE_BITS, TableRow};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// So many reads of descriptions are of as much code each; the next ones of twice as much.
const READS_AS_LARGE: u32 = 2;

/// So often that doubles.
const MAX_GROWTH: u32 = 6;

/// In so many places of one file code is known not to be followed, at most.
const MAX_GIVEN_UP: usize = 1024;

impl<S: TableStore> TableCache<S> {
    /// The code around an address of a file that has no rows yet, in its page of the table and those next to it; none if the address
    /// has a row, or cannot have one.
    pub(in super::super) fn gap(&mut self, key: CodeKey, address: u64) -> Option<Gap> {
        let given_up = self.given_up.get(&key);
        if given_up.is_some_and(|codes| codes.iter().any(|code| code.contains(&address))) {
            return None;
        }
        let kept = self.rules.place(Rule::FRAME_POINTER);
        let is_unread = |row: &&(u64, u16)| row.1 == RuleSet::MISSING || row.1 == kept;
        let table = table_of(&self.published, &mut self.tables, key)?;
        let outline = Arc::clone(table.outline.as_ref()?);
        let mut ranges = outline.ranges.iter().map(|range| &range.addresses);
        let range = ranges.find(|range| range.contains(&address))?;
        let page = page_of(address);
        let mut rows: Vec<(u64, u16)> = Vec::new();
        let mut end = range.end;
        for page in page.saturating_sub(1)..=(page + 1).min(u64::MAX >> TABLE_PAGE_BITS) {
            let begin = page << TABLE_PAGE_BITS;
            let first = begin.max(range.start);
            if page_of(first) != page || first >= range.end {
                continue;
            }
            let of_page = table.rows(&mut self.store, outline.page_at(first)?).ok()?;
            rows.extend(
                of_page
                    .iter()
                    .map(|row| (begin + u64::from(row.low), row.rule)),
            );
            end = range.end.min(begin.saturating_add(1 << TABLE_PAGE_BITS));
        }
        let behind = rows.partition_point(|row| row.0 <= address);
        let (before, after) = rows.split_at(behind);
        let row = before.last().filter(is_unread)?;
        let start = before.iter().rev().take_while(is_unread).last()?.0;
        let next = after.iter().find(|row| !is_unread(row));
        Some(Gap {
            addresses: start.max(range.start)..next.map_or(end, |row| row.0),
            keeps_frame_pointers: row.1 == kept,
        })
    }

    /// The code around an address of a file whose descriptions are to be read together, if its own were not read yet: parts that were
    /// not, ascending and disjoint. The more often a file is asked for, the more: otherwise walks would end in each part once.
    pub(in super::super) fn unread(&mut self, key: CodeKey, address: u64) -> Vec<Range<u64>> {
        let table = table_of(&self.published, &mut self.tables, key);
        let Some((table, outline)) = table.and_then(|table| {
            let outline = table.outline.clone()?;
            outline.index.is_some().then_some((table, outline))
        }) else {
            return Vec::new();
        };
        let page = outline.page_at(address);
        if page.is_none_or(|page| table.read.contains(&page)) {
            return Vec::new();
        }
        let bits = READ_TOGETHER_BITS + (table.reads / READS_AS_LARGE).min(MAX_GROWTH);
        table.reads += 1;
        let start = address >> bits << bits;
        let pages = page_of(start)..=page_of(start.saturating_add((1 << bits) - 1));
        let mut parts: Vec<Range<u64>> = Vec::new();
        for code in outline.ranges.iter().map(|range| &range.addresses) {
            for page in pages.clone() {
                let begin = page << TABLE_PAGE_BITS;
                let end = begin.saturating_add(1 << TABLE_PAGE_BITS);
                let part = code.start.max(begin)..code.end.min(end);
                let number = outline.page_at(part.start).filter(|_| !part.is_empty());
                // They count as read from now on.
                if !number.is_some_and(|number| table.read.insert(number)) {
                    continue;
                }
                match parts.last_mut() {
                    Some(last) if last.end == part.start => last.end = part.end,
                    _ => parts.push(part),
                }
            }
        }
        parts
    }

    /// Puts the rows of these stretches of code, which were found in the descriptions of a file, into its table.
    pub(in super::super) fn add_descriptions(
        &mut self,
        key: CodeKey,
        stretches: &[Range<u64>],
        found: &UnwindFindings,
    ) {
        let unread = self.rules.place(Rule::UNREAD);
        let kept = self.rules.place(Rule::FRAME_POINTER);
        let mut read = lay_out(stretches, found);
        read.rules = found.rules.rules().to_vec();
        read.adopt(&mut self.rules);
        self.tell_rules();
        let put = self.put_pages(key, |table, store, outline| {
            let mut changed = BTreeSet::new();
            let keeps_frame_pointers = outline.origin.kept_bytes > 0;
            for row in &mut read.rows {
                if keeps_frame_pointers && row.rule == RuleSet::MISSING {
                    row.rule = kept;
                }
            }
            for range in &read.ranges {
                for page in page_of(range.addresses.start)..=page_of(range.addresses.end - 1) {
                    let address = range.addresses.start.max(page << TABLE_PAGE_BITS);
                    let (Some(number), Some(new)) =
                        (outline.page_at(address), read.page_at(address))
                    else {
                        continue;
                    };
                    let rows = table.rows(store, number)?;
                    *rows = fill(rows, unread, read.rows_of(new));
                    changed.insert(number);
                }
            }
            Ok(changed)
        });
        match put {
            Ok(true) => self.loaded.rows += read.rows.len(),
            Ok(false) => {}
            Err(_) => self.loaded.refused += 1,
        }
        if let Some(table) = table_of(&self.published, &mut self.tables, key) {
            // They are asked for once.
            table.pages.clear();
        }
        self.loaded.bytes = self.store.bytes();
    }

    /// Puts the rows of functions into the table of a file.
    pub(in super::super) fn add_functions(&mut self, key: CodeKey, functions: Functions) {
        if !functions.read.is_empty() && self.put_functions(key, &functions.read).is_err() {
            self.loaded.refused += 1;
        }
        let given_up = self.given_up.entry(key).or_default();
        // Others are looked at again, within the budget.
        let room = MAX_GIVEN_UP.saturating_sub(given_up.len());
        given_up.extend(functions.given_up.into_iter().take(room));
        self.loaded.bytes = self.store.bytes();
    }

    fn put_functions(&mut self, key: CodeKey, functions: &[ReadFunction]) -> Result<(), S::Error> {
        let stretches = functions.iter().flat_map(ReadFunction::stretches);
        let stretches: Vec<(u64, Vec<(u64, u16)>)> = stretches
            .map(|(end, changes)| {
                let place = |(address, rule)| (address, self.rules.place(rule));
                (end, changes.into_iter().map(place).collect())
            })
            .collect();
        self.tell_rules();
        let is_put = self.put_pages(key, |table, store, outline| {
            let mut changed = BTreeSet::new();
            for (end, changes) in stretches {
                for (address, rows, end) in by_page(&changes, end) {
                    let Some(number) = outline.page_at(address) else {
                        continue;
                    };
                    let page = table.rows(store, number)?;
                    *page = lay_over(page, &rows, end);
                    changed.insert(number);
                }
            }
            Ok(changed)
        })?;
        self.loaded.functions += if is_put { functions.len() } else { 0 };
        Ok(())
    }

    /// Stores the pages of a file's table that `change` says it has changed; false if there is no such table, or no room.
    fn put_pages(
        &mut self,
        key: CodeKey,
        change: impl FnOnce(
            &mut CachedTable<S::ObjectRows>,
            &mut S,
            &Outline,
        ) -> Result<BTreeSet<u32>, S::Error>,
    ) -> Result<bool, S::Error> {
        let Some(table) = table_of(&self.published, &mut self.tables, key) else {
            return Ok(false);
        };
        let Some(outline) = table.outline.clone() else {
            return Ok(false);
        };
        let changed = change(table, &mut self.store, &outline)?;
        let of_page = |&number| Some((number, table.pages.get(&number)?.clone()));
        let pages: Vec<(u32, Vec<TableRow>)> = changed.iter().filter_map(of_page).collect();
        table.changed.extend(changed);
        let is_put = self.store.replace(&mut table.stored, &table.keys, &pages)?;
        if !is_put {
            self.loaded.refused += 1;
            table.pages.clear();
        }
        Ok(is_put)
    }
}

/// The table of a file that can be changed.
fn table_of<'a, T>(
    published: &HashMap<CodeKey, Option<Contents>>,
    tables: &'a mut HashMap<Contents, CachedTable<T>>,
    key: CodeKey,
) -> Option<&'a mut CachedTable<T>> {
    tables.get_mut(published.get(&key)?.as_ref()?)
}

/// The parts of changes that are in one page each: an address in it, its rows, and where they end in it.
fn by_page(changes: &[(u64, u16)], end: u64) -> Vec<(u64, Vec<TableRow>, u32)> {
    const BYTES: u64 = 1 << TABLE_PAGE_BITS;
    let Some(&(start, _)) = changes.first() else {
        return Vec::new();
    };
    let pages = page_of(start)..=page_of(end.saturating_sub(1).max(start));
    pages
        .map(|page| {
            let begin = page << TABLE_PAGE_BITS;
            let before = changes.partition_point(|change| change.0 <= begin);
            // The rule that holds where the page begins.
            let first = changes[..before]
                .last()
                .map(|&(_, rule)| TableRow { low: 0, rule });
            let inside = changes[before..]
                .iter()
                .take_while(|change| change.0 - begin < BYTES);
            let inside = inside.map(|&(address, rule)| TableRow {
                low: low_of(address),
                rule,
            });
            let rows = first.into_iter().chain(inside).collect();
            (start.max(begin), rows, (end - begin).min(BYTES) as u32)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_divided_by_pages() {
        let row = |low, rule| TableRow { low, rule };
        assert_eq!(by_page(&[], 10), []);
        let within = by_page(&[(0x1_0010, 3), (0x1_0020, 4)], 0x1_0030);
        assert_eq!(within, [(0x1_0010, vec![row(0x10, 3), row(0x20, 4)], 0x30)]);
        let across = by_page(&[(0x1_fff0, 3), (0x2_0008, 4)], 0x3_0000);
        assert_eq!(
            across,
            [
                (0x1_fff0, vec![row(0xfff0, 3)], 0x1_0000),
                (0x2_0000, vec![row(0, 3), row(8, 4)], 0x1_0000),
            ]
        );
        let from_a_page = by_page(&[(0x2_0000, 3)], 0x2_0001);
        assert_eq!(from_a_page, [(0x2_0000, vec![row(0, 3)], 1)]);
    }
}
