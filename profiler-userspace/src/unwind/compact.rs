//! Lays out rows in pages.
//!
//! In: the ranges of code, and stretches with their rules. Out: a table without redundant rows, in which each
//! page's rows can be read alone. Pure.

use super::found::UnwindFindings;
use super::rules::RuleSet;
use super::{CodeRange, UnwindTable, low_of, page_of};
use profiler_common::abi::{PageRows, TableRow};
use std::ops::Range;

/// Lays out the rows for all of `code`. The table has no rules yet.
pub(super) fn lay_out(code: &[Range<u64>], found: &UnwindFindings) -> UnwindTable {
    let mut writer = Writer::default();
    writer.table.origin = found.statistics;
    for part in code {
        writer.begin(part.clone());
        let first = found
            .stretches
            .partition_point(|stretch| stretch.addresses.start < part.start);
        // Where a part is not all of the code, the one before may reach into it.
        let reaches = |before: &usize| found.stretches[*before].addresses.end > part.start;
        let first = first.checked_sub(1).filter(reaches).unwrap_or(first);
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
            for change in found.changes_of(stretch) {
                let address = stretch.addresses.start + u64::from(change.after);
                if address < end {
                    writer.put(address.max(part.start), change.rule);
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
        self.table.rows.push(TableRow {
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
        rows.push(TableRow { low, rule });
    }
}

/// A page's rows, with others from the first of `new` on up to `end`, both offsets in the page.
pub(super) fn lay_over(rows: &[TableRow], new: &[TableRow], end: u32) -> Vec<TableRow> {
    let Some(first) = new.first() else {
        return rows.to_vec();
    };
    let behind = rows.partition_point(|row| u32::from(row.low) <= end);
    // The rule that held at the end holds there again.
    let at_end = rows[..behind].last().and_then(|last| {
        let low = u16::try_from(end).ok()?;
        Some(TableRow { low, ..*last })
    });
    let before = rows.iter().take_while(|row| row.low < first.low).copied();
    let mut all: Vec<TableRow> = before.chain(new.iter().copied()).collect();
    all.extend(at_end);
    all.extend(rows[behind..].iter().copied());
    all.dedup_by_key(|row| row.rule);
    all
}

/// A page's rows, with others in the place of one rule, wherever that holds. Both begin with the page.
pub(super) fn fill(rows: &[TableRow], unread: u16, new: &[TableRow]) -> Vec<TableRow> {
    if let [TableRow { rule, .. }] = rows
        && *rule == unread
    {
        let mut all = new.to_vec();
        all.dedup_by_key(|row| row.rule);
        return all;
    }
    let mut all: Vec<TableRow> = Vec::with_capacity(rows.len() + new.len());
    let (mut rows, mut new) = (rows.iter().peekable(), new.iter().peekable());
    let (mut old, mut read) = (RuleSet::MISSING, RuleSet::MISSING);
    let next = |row: Option<&&TableRow>| row.map_or(u32::MAX, |row| u32::from(row.low));
    loop {
        let low = next(rows.peek()).min(next(new.peek()));
        let Ok(low) = u16::try_from(low) else {
            all.dedup_by_key(|row| row.rule);
            return all;
        };
        old = rows
            .next_if(|row| row.low == low)
            .map_or(old, |row| row.rule);
        read = new
            .next_if(|row| row.low == low)
            .map_or(read, |row| row.rule);
        let rule = if old == unread { read } else { old };
        all.push(TableRow { low, rule });
    }
}

/// Rows and pages are fewer than bytes of code, whose number is bounded.
fn place(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn rule_at(rows: &[TableRow], low: u32) -> u16 {
        let behind = rows.partition_point(|row| u32::from(row.low) <= low);
        rows[behind - 1].rule
    }

    fn rows(from: u32, rules: &[(u8, u16)]) -> Vec<TableRow> {
        let mut low = from;
        let row = |&(gap, rule): &(u8, u16)| {
            let row = TableRow {
                low: low as u16,
                rule,
            };
            low += 1 + u32::from(gap);
            row
        };
        rules.iter().map(row).collect()
    }

    proptest! {
        /// Where others are laid these hold, and elsewhere what held before.
        #[test]
        fn rows_that_are_laid_over_others_hold_there_and_nowhere_else(
            before in proptest::collection::vec((0u8..20, 0u16..4), 1..40),
            new in proptest::collection::vec((0u8..20, 0u16..4), 1..10),
            from in 0u32..400, bytes in 1u32..60,
        ) {
            let (before, new) = (rows(0, &before), rows(from, &new));
            let end = u32::from(new[new.len() - 1].low) + bytes;
            let laid = lay_over(&before, &new, end);
            for low in 0..1000 {
                let expected = if (from..end).contains(&low) { &new } else { &before };
                prop_assert_eq!(rule_at(&laid, low), rule_at(expected, low));
            }
            prop_assert_eq!(laid[0].low, 0);
            prop_assert!(laid.windows(2).all(|pair| pair[0].low < pair[1].low && pair[0].rule != pair[1].rule));
        }
    }

    proptest! {
        #[test]
        fn rows_fill_what_is_unread_and_nothing_else(
            before in proptest::collection::vec((0u8..20, 0u16..4), 1..40),
            new in proptest::collection::vec((0u8..20, 4u16..8), 1..40),
        ) {
            const UNREAD: u16 = 1;
            let (before, new) = (rows(0, &before), rows(0, &new));
            let filled = fill(&before, UNREAD, &new);
            for low in 0..1000 {
                let expected = if rule_at(&before, low) == UNREAD { &new } else { &before };
                prop_assert_eq!(rule_at(&filled, low), rule_at(expected, low));
            }
            prop_assert!(filled.windows(2).all(|pair| pair[0].low < pair[1].low && pair[0].rule != pair[1].rule));
        }
    }

    #[test]
    fn rows_up_to_the_end_of_a_page_have_nothing_behind() {
        let row = |low, rule| TableRow { low, rule };
        let laid = lay_over(&[row(0, 1)], &[row(0xfff0, 2)], 1 << 16);
        assert_eq!(laid, [row(0, 1), row(0xfff0, 2)]);
        assert_eq!(lay_over(&laid, &[], 1 << 16), laid);
    }
}
