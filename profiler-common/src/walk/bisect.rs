//! One step of the binary search for the row that holds at an address.
//!
//! In: the rows that are left, and the middle one. Out: the rows left after it. Never reads rows and never
//! loops: the caller does both.

use crate::abi::{PageRows, TableRow};

/// How many steps leave one row of the longest page.
pub const MAX_NARROWINGS: u32 = 16;

/// The rows that are left. The one searched for is the last whose address is not above the given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    first: u32,
    count: u32,
}

impl Span {
    /// All rows of a page. The first is for the page's first byte.
    #[inline(always)]
    pub const fn new(page: PageRows) -> Self {
        Self {
            first: page.first,
            count: page.count,
        }
    }

    /// The index of the row to compare next; none once one row is left.
    #[inline(always)]
    pub const fn middle(self) -> Option<u32> {
        if self.count < 2 {
            return None;
        }
        Some(self.first.wrapping_add(self.count / 2))
    }

    /// The rows left for the address `low` of the page, given the middle row.
    ///
    /// Branch-free: the processor could not predict the branch, and the verifier would follow both sides at
    /// each of sixteen steps.
    #[inline(always)]
    #[must_use]
    pub fn narrow(self, middle: TableRow, low: u16) -> Self {
        let half = self.count / 2;
        let above = (i64::from(low) - i64::from(middle.low)) >> 63;
        Self {
            first: self.first.wrapping_add(half & !(opaque(above) as u32)),
            count: self.count - half,
        }
    }

    /// The index of the row that holds, once one is left.
    #[inline(always)]
    pub const fn first(self) -> u32 {
        self.first
    }
}

/// The same number, hidden from the compiler, which would turn a mask into a branch.
#[inline(always)]
fn opaque(number: i64) -> i64 {
    core::hint::black_box(number)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::{collections::BTreeSet, vec::Vec};

    fn rows(lows: impl IntoIterator<Item = u16>) -> Vec<TableRow> {
        let lows: BTreeSet<u16> = lows.into_iter().chain([0]).collect();
        let row = |low| TableRow { low, rule: 0 };
        lows.into_iter().map(row).collect()
    }

    /// The row found, and the number of steps.
    fn search(rows: &[TableRow], before: u32, low: u16) -> (usize, u32) {
        let count = u32::try_from(rows.len()).unwrap();
        let mut span = Span::new(PageRows {
            first: before,
            count,
        });
        let mut narrowings = 0;
        while let Some(middle) = span.middle() {
            span = span.narrow(rows[(middle - before) as usize], low);
            narrowings += 1;
        }
        ((span.first() - before) as usize, narrowings)
    }

    #[test]
    fn the_largest_page_takes_the_most_steps() {
        let rows = rows(0..=u16::MAX);
        for low in [0, 1, 0x7fff, 0x8000, u16::MAX] {
            assert_eq!(
                search(&rows, 7, low),
                (usize::from(low), MAX_NARROWINGS),
                "{low}"
            );
        }
    }

    #[test]
    fn an_empty_page_is_not_searched() {
        assert_eq!(Span::new(PageRows::default()).middle(), None);
    }

    proptest! {
        #[test]
        fn bisection_finds_what_a_linear_scan_finds(
            lows in proptest::collection::vec(0u16.., 0..300),
            low: u16,
            before in 0u32..1_000_000_000,
        ) {
            let rows = rows(lows);
            let (found, narrowings) = search(&rows, before, low);
            let scanned = rows.iter().rposition(|row| row.low <= low);
            prop_assert_eq!(Some(found), scanned);
            prop_assert!(narrowings <= MAX_NARROWINGS);
        }
    }
}
