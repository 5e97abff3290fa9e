//! The hottest functions that runtimes run, and beside them the hottest native ones.
//!
//! In: a profile's calls. Out: a row for each rank: on the left interpreted and JIT-compiled functions, to which native and
//! kernel time under them is charged, on the right functions of native code and of the kernel with their own time. Nothing
//! for a profile that is not mostly of runtimes.

use super::Report;
use super::functions::{Function, Sums};
use super::layout::{SHARE_COLUMNS, percent};
use std::cmp::Reverse;
use std::fmt::Write as _;

/// A program is a runtime's if at least one part in so many of what was counted was inside of a function that it runs.
const RUNTIME_SHARE: u64 = 2;

/// Columns between both halves.
const GAP: usize = 2;

impl Report<'_> {
    /// Appends so many rows; says whether there was something to append.
    pub(super) fn runtimes(&self, rows: usize, more: &str, text: &mut String) -> bool {
        let (tree, functions) = (self.tree, self.functions);
        let mut is_of_runtime = vec![false; functions.all().len()];
        let mut sums = vec![Sums::default(); is_of_runtime.len()];
        let mut inside = 0_u64;
        // For each function the last sample that it was met in, plus one: it may call itself.
        let mut met = vec![0_usize; sums.len()];
        let mut path = Vec::new();
        for (number, sample) in (1..).zip(tree.samples()) {
            path.clear();
            path.extend(tree.callers(sample.own));
            let (mut innermost, mut is_within) = (None, false);
            for frame in path.iter().rev() {
                is_within = tree.frame(*frame).kind.is_of_runtime_within(is_within);
                let Some(function) = functions.of(*frame).filter(|_| is_within) else {
                    continue;
                };
                is_of_runtime[function] = true;
                innermost = Some(function);
                if std::mem::replace(&mut met[function], number) != number {
                    let total = &mut sums[function].total;
                    *total = total.saturating_add(sample.weight);
                }
            }
            if let Some(function) = innermost {
                inside = inside.saturating_add(sample.weight);
                let itself = &mut sums[function].itself;
                *itself = itself.saturating_add(sample.weight);
            }
        }
        if inside.saturating_mul(RUNTIME_SHARE) < self.total || inside == 0 {
            return false;
        }
        let ranked = |sums: &mut dyn Iterator<Item = (usize, Sums)>| {
            let named = sums.map(|(at, sums)| (&functions.at(at).0, sums));
            let mut all: Vec<(&Function, Sums)> =
                named.filter(|(_, sums)| sums.itself > 0).collect();
            all.sort_by_key(|(function, sums)| (Reverse((sums.itself, sums.total)), *function));
            all
        };
        let run = ranked(&mut sums.iter().copied().enumerate());
        let native = functions.all().iter().map(|(_, sums)| *sums).enumerate();
        let native = ranked(&mut native.filter(|(at, _)| !is_of_runtime[*at]));
        let shares = 3 * SHARE_COLUMNS + 1 + 2 * 2 + GAP;
        let names = self.style.columns.saturating_sub(shares) / 2;
        let _ = writeln!(
            text,
            "\n{:>6} {:>6}  {}{}{:>6}  native function",
            "self",
            "total",
            self.style.padded("interpreted or JIT-compiled", names),
            " ".repeat(GAP),
            "self",
        );
        for rank in 0..rows.min(run.len().max(native.len())) {
            let left = match run.get(rank) {
                Some((function, sums)) => format!(
                    "{} {}  {}",
                    percent(sums.itself, self.total),
                    percent(sums.total, self.total),
                    self.style.padded(&function.name, names)
                ),
                None => " ".repeat(2 * SHARE_COLUMNS + 1 + 2 + names),
            };
            let right = native
                .get(rank)
                .map_or_else(String::new, |(function, sums)| {
                    format!(
                        "{}  {}",
                        percent(sums.itself, self.total),
                        self.style.name(&function.name, names)
                    )
                });
            let row = format!("{left}{}{right}", " ".repeat(GAP));
            let _ = writeln!(text, "{}", row.trim_end());
        }
        let _ = writeln!(
            text,
            "On the left with native and kernel time inside; {more}",
        );
        true
    }
}
