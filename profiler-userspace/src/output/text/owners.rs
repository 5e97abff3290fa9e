//! Tables of what samples belong to: modules, processes, threads, files.
//!
//! In: a profile's samples. Out: a table for each that the profile tells apart.

use super::Report;
use super::layout::{SHARE_COLUMNS, percent, shortened};
use crate::profile::TreeSample;
use crate::profile::fold::visible;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// So many rows are shown, unless a least share is asked for.
const USUAL_ROWS: usize = 10;

impl Report<'_> {
    /// Appends the tables.
    pub(super) fn owners(&self, text: &mut String) {
        self.owned(
            "module",
            |sample| Some(self.module(sample).to_owned()),
            text,
        );
        self.owned("process", |sample| self.process(sample), text);
        self.owned("thread", |sample| self.thread(sample), text);
        self.owned("file", |sample| self.file(sample), text);
    }

    fn process(&self, sample: &TreeSample) -> Option<String> {
        let labels = self.profile.labels_at(sample.labels);
        let name = visible(labels.name()?).into_owned();
        Some(match labels.pid {
            Some(pid) => format!("{name} {pid}"),
            None => name,
        })
    }

    fn thread(&self, sample: &TreeSample) -> Option<String> {
        let labels = self.profile.labels_at(sample.labels);
        let comm = labels.comm.as_deref().unwrap_or_default();
        Some(format!("{} {}", visible(comm), labels.tid?))
    }

    /// The source file of the function that the thread was in.
    fn file(&self, sample: &TreeSample) -> Option<String> {
        let (frame, _) = self.functions.innermost(self.tree, sample.own)?;
        let function = self.tree.code(frame)?.function;
        let file = &self.profile.function_at(function).file;
        (!file.is_empty()).then(|| visible(file).into_owned())
    }

    /// Appends a table of what samples belong to, unless none of them says so.
    fn owned(&self, what: &str, owner: impl Fn(&TreeSample) -> Option<String>, text: &mut String) {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for sample in self.tree.samples() {
            if let Some(owner) = owner(sample) {
                let sum = sums.entry(owner).or_default();
                *sum = sum.saturating_add(sample.weight);
            }
        }
        if sums.is_empty() {
            return;
        }
        let mut rows: Vec<(String, u64)> = sums.into_iter().collect();
        // In order of name where weights are equal.
        rows.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let count = rows.len();
        match self.style.min_percent {
            Some(min) => rows.retain(|(_, weight)| self.reaches(*weight, min)),
            None => rows.truncate(USUAL_ROWS),
        }
        let _ = writeln!(text, "\n{:>SHARE_COLUMNS$}  {what}", "self");
        let names = self.style.columns.saturating_sub(SHARE_COLUMNS + 2);
        let mut sum = 0_u64;
        for (name, weight) in &rows {
            sum = sum.saturating_add(*weight);
            let name = shortened(name, names);
            let _ = writeln!(text, "{}  {name}", percent(*weight, self.total));
        }
        if rows.len() < count {
            let share = percent(self.total.saturating_sub(sum), self.total);
            let rest = count - rows.len();
            let _ = writeln!(text, "{share}  … {rest} more");
        }
    }
}
