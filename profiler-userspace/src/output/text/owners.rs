//! Tables of what samples belong to: modules, processes, threads, files.
//!
//! In: a profile's samples. Out: a table for each that the profile tells apart.

use super::Report;
use super::functions::NO_STACK;
use super::layout::{SHARE_COLUMNS, percent};
use crate::profile::fold::visible;
use crate::profile::{FrameId, LabelsIndex, marks};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// So many rows are shown, unless a least share is asked for.
const DEFAULT_ROWS: usize = 10;

/// The innermost function of a sample, and its frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Innermost {
    Function(FrameId, usize),
    /// Only the mark of the profiler's own stacks.
    Profiler,
    Nothing,
}

impl Report<'_> {
    /// Appends the tables.
    pub(super) fn owners(&self, text: &mut String) {
        // There are many more samples than there are owners and functions.
        let mut by_labels: HashMap<LabelsIndex, u64> = HashMap::default();
        let mut by_innermost: HashMap<Innermost, u64> = HashMap::default();
        for sample in self.tree.samples() {
            let innermost = match self.functions.innermost(self.tree, sample.own) {
                Some((frame, function)) => Innermost::Function(frame, function),
                None if self.functions.is_profiler(self.tree, sample.own) => Innermost::Profiler,
                None => Innermost::Nothing,
            };
            for sum in [
                by_labels.entry(sample.labels).or_default(),
                by_innermost.entry(innermost).or_default(),
            ] {
                *sum = sum.saturating_add(sample.weight);
            }
        }
        let module = |innermost: &Innermost| Some(self.module(*innermost).to_owned());
        self.owned("module", &by_innermost, module, text);
        self.owned("process", &by_labels, |labels| self.process(*labels), text);
        self.owned("thread", &by_labels, |labels| self.thread(*labels), text);
        self.owned(
            "file",
            &by_innermost,
            |innermost| self.file(*innermost),
            text,
        );
    }

    /// The module of the function that threads were in.
    fn module(&self, innermost: Innermost) -> &str {
        match innermost {
            Innermost::Profiler => marks::PROFILER,
            Innermost::Nothing => NO_STACK,
            Innermost::Function(_, function) => match &*self.functions.at(function).0.module {
                "" => "[unknown]",
                module => module,
            },
        }
    }

    fn process(&self, labels: LabelsIndex) -> Option<String> {
        let labels = self.profile.labels_at(labels);
        let name = visible(labels.name()?).into_owned();
        Some(match labels.pid {
            Some(pid) => format!("{name} {pid}"),
            None => name,
        })
    }

    fn thread(&self, labels: LabelsIndex) -> Option<String> {
        let labels = self.profile.labels_at(labels);
        let comm = labels.comm.as_deref().unwrap_or_default();
        Some(format!("{} {}", visible(comm), labels.tid?))
    }

    /// The source file of the function that threads were in.
    fn file(&self, innermost: Innermost) -> Option<String> {
        let Innermost::Function(frame, _) = innermost else {
            return None;
        };
        let function = self.tree.code(frame)?.function;
        let file = &self.profile.function_at(function).file;
        (!file.is_empty()).then(|| visible(file).into_owned())
    }

    /// Appends a table of the names of what weights are of, unless none has a name.
    fn owned<T>(
        &self,
        what: &str,
        weights: &HashMap<T, u64>,
        name: impl Fn(&T) -> Option<String>,
        text: &mut String,
    ) {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (of, weight) in weights {
            if let Some(name) = name(of) {
                let sum = sums.entry(name).or_default();
                *sum = sum.saturating_add(*weight);
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
            None => rows.truncate(DEFAULT_ROWS),
        }
        let _ = writeln!(text, "\n{:>SHARE_COLUMNS$}  {what}", "self");
        let names = self.style.columns.saturating_sub(SHARE_COLUMNS + 2);
        let mut sum = 0_u64;
        for (name, weight) in &rows {
            sum = sum.saturating_add(*weight);
            let name = self.style.name(name, names);
            let _ = writeln!(text, "{}  {name}", percent(*weight, self.total));
        }
        if rows.len() < count {
            let share = percent(self.total.saturating_sub(sum), self.total);
            let rest = count - rows.len();
            let _ = writeln!(text, "{share}  … {rest} more");
        }
    }
}
