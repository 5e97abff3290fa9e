//! One function at a time: who calls it, and what it calls.
//!
//! In: a regular expression. Out: for each function that matches, its callers above and its callees below, with shares of
//! the function itself, as `go tool pprof -peek` has them.

use super::Report;
use super::functions::Function;
use super::layout::{SHARE_COLUMNS, percent};
use crate::output::text_style::Peek;
use crate::profile::fold::visible;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Callers of a function, or its callees, and their parts of the function's weight.
type Neighbours = BTreeMap<String, u64>;

impl Report<'_> {
    /// Appends callers and callees of each function that matches, the busiest first.
    pub(super) fn peek(&self, wanted: &Peek, text: &mut String) {
        let mut matching: Vec<usize> = (0..self.functions.all().len())
            .filter(|&function| wanted.0.is_match(&self.functions.at(function).0.name))
            .collect();
        matching.sort_by(|&a, &b| {
            let (a, b) = (self.functions.at(a), self.functions.at(b));
            (b.1.total.cmp(&a.1.total)).then_with(|| a.0.cmp(&b.0))
        });
        if matching.is_empty() {
            let _ = writeln!(text, "\nno function matches `{}`", wanted.0.as_str());
        }
        for function in matching {
            self.neighbours(function, text);
        }
    }

    fn neighbours(&self, function: usize, text: &mut String) {
        let (Function { name, module }, sums) = self.functions.at(function);
        let (mut callers, mut callees) = (Neighbours::new(), Neighbours::new());
        let add = |to: &mut Neighbours, name: String, weight: u64| {
            let sum = to.entry(name).or_default();
            *sum = sum.saturating_add(weight);
        };
        for sample in self.tree.samples() {
            let path: Vec<_> = self.tree.callers(sample.own).collect();
            let is_it =
                |frame: &crate::profile::FrameId| self.functions.of(*frame) == Some(function);
            // Where it called itself: the innermost call has the callee, the outermost has the caller.
            let (Some(innermost), Some(outermost)) =
                (path.iter().position(is_it), path.iter().rposition(is_it))
            else {
                continue;
            };
            let callee = path[..innermost]
                .iter()
                .rev()
                .find(|frame| self.functions.of(**frame).is_some());
            if let Some(callee) = callee {
                add(&mut callees, self.name(*callee), sample.weight);
            }
            let caller = path.get(outermost + 1).map(|frame| self.name(*frame));
            let process = self.profile.labels_at(sample.labels).name();
            let process = || process.map(|name| visible(name).into_owned());
            if let Some(caller) = caller.or_else(process) {
                add(&mut callers, caller, sample.weight);
            }
        }
        let _ = writeln!(
            text,
            "\n{:>6}  {:>6}  callers, function, callees",
            "all", "of it"
        );
        self.rows(callers, sums.total, text);
        let shown = match module.is_empty() {
            true => name.clone(),
            false => format!("{name}  {module}"),
        };
        let room = (self.style.columns).saturating_sub(2 * SHARE_COLUMNS + 4);
        let _ = writeln!(
            text,
            "{}  {}  {}",
            percent(sums.total, self.total),
            percent(sums.total, sums.total),
            self.style.name(&shown, room)
        );
        if sums.itself > 0 {
            callees.insert("(self)".to_owned(), sums.itself);
        }
        self.rows(callees, sums.total, text);
    }

    /// Appends neighbours of a function that weighs so much, the heaviest first.
    fn rows(&self, neighbours: Neighbours, total: u64, text: &mut String) {
        let mut all: Vec<_> = neighbours.into_iter().collect();
        // In order of name where weights are equal.
        all.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let room = (self.style.columns).saturating_sub(2 * SHARE_COLUMNS + 6);
        for (name, weight) in all {
            let _ = writeln!(
                text,
                "{}  {}    {}",
                percent(weight, self.total),
                percent(weight, total),
                self.style.name(&name, room)
            );
        }
    }
}
