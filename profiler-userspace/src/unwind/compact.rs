//! Lays out rows in pages.
//!
//! In: the ranges of code, and stretches with their rules. Out: a table without redundant rows, in which each
//! page's rows can be read alone. Pure.

use super::found::Found;
use super::rules::RuleSet;
use super::{CodeRange, UnwindTable, low_of, page_of};
use profiler_common::abi::{PageRows, Row};
use std::ops::Range;

/// Lays out the rows for all of `code`. The table has no rules yet.
pub(super) fn lay_out(code: &[Range<u64>], found: &Found) -> UnwindTable {
    let mut writer = Writer::default();
    writer.table.origin = found.statistics;
    for part in code {
        writer.begin(part.clone());
        let first = found
            .stretches
            .partition_point(|stretch| stretch.addresses.start < part.start);
        let stretches = found.stretches.get(first..).unwrap_or_default();
        let within = stretches
            .iter()
            .take_while(|stretch| stretch.addresses.start < part.end);
        let mut within = within.peekable();
        while let Some(stretch) = within.next() {
            // If two stretches overlap, the one that begins last wins, as in every unwinder that bisects the
            // index of `.eh_frame`.
            let next = within.peek().map_or(part.end, |next| next.addresses.start);
            let end = stretch.addresses.end.min(next);
            if end < stretch.addresses.end {
                writer.table.origin.overlaps += 1;
            }
            let changes = stretch.changes.start as usize..stretch.changes.end as usize;
            for change in found.changes.get(changes).unwrap_or_default() {
                let address = stretch.addresses.start + u64::from(change.after);
                if address < end {
                    writer.put(address, change.rule);
                }
            }
            if end < next {
                writer.put(end, RuleSet::MISSING);
            }
        }
        writer.fill_to_page(page_of(part.end - 1));
    }
    writer.close_page();
    writer.table
}

/// A table being written.
#[derive(Debug, Default)]
struct Writer {
    table: UnwindTable,
    /// The page being written.
    page: u64,
    /// Where its rows begin; none before the first page.
    first: Option<usize>,
    /// The rule of the last row.
    rule: u16,
}

impl Writer {
    /// Begins a range of code, in pages of its own.
    fn begin(&mut self, addresses: Range<u64>) {
        self.close_page();
        self.rule = RuleSet::MISSING;
        self.open_page(page_of(addresses.start));
        self.table.ranges.push(CodeRange {
            addresses,
            first_page: place(self.table.pages.len()),
        });
    }

    fn open_page(&mut self, page: u64) {
        self.page = page;
        self.first = Some(self.table.rows.len());
        self.table.rows.push(Row {
            low: 0,
            rule: self.rule,
        });
    }

    fn close_page(&mut self) {
        if let Some(first) = self.first.take() {
            self.table.pages.push(PageRows {
                first: place(first),
                count: place(self.table.rows.len() - first),
            });
        }
    }

    fn fill_to_page(&mut self, page: u64) {
        while self.page < page {
            self.close_page();
            self.open_page(self.page + 1);
        }
    }

    /// Sets the rule from an address on. Addresses must not decrease.
    fn put(&mut self, address: u64, rule: u16) {
        if page_of(address) != self.page {
            self.fill_to_page(page_of(address));
        }
        if rule == self.rule {
            return;
        }
        self.rule = rule;
        let low = low_of(address);
        let rows = &mut self.table.rows;
        let first = self.first.unwrap_or(rows.len());
        if rows.len() > first && rows.last().is_some_and(|last| last.low == low) {
            // The last rule covers no byte.
            rows.pop();
            let before = rows.get(first..).unwrap_or_default().last();
            if before.is_some_and(|before| before.rule == rule) {
                return;
            }
        }
        rows.push(Row { low, rule });
    }
}

/// Rows and pages are fewer than bytes of code, whose number is bounded.
fn place(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
