//! The table of functions.
//!
//! In: a profile's calls. Out: for each function of each module what was counted in it, and in all that it called; a function
//! that called itself counts once. Marks are no functions: time at a mark is that of the function below it.

use super::Report;
use super::layout::{SHARE_COLUMNS, percent};
use crate::profile::fold::visible;
use crate::profile::off_cpu::{is_interrupt, is_interrupt_exit, is_softirq};
use crate::profile::{CallTree, Code, Frame, FrameId, FrameKind, NodeIndex, Profile, marks};
use crate::text::label::{CUT, without_middle};
use foldhash::HashMap;
use profiler_common::abi::ThreadState;
use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr as _;

/// So many functions are shown, unless a least share is asked for.
pub(super) const DEFAULT_ROWS: usize = 40;

/// Columns of a function's name where names are not cut: what is beside longer ones stands further to the right.
const DEFAULT_NAME_COLUMNS: usize = 60;

/// Stands for the function of samples without one.
pub(super) const NO_STACK: &str = "[no stack]";

/// A function as the report tells functions apart: those that read alike are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Function {
    /// As it is shown, the kernel's with `[k]` behind it.
    pub(super) name: String,
    /// Its module; empty if that is not known.
    pub(super) module: String,
}

/// Counts of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) itself: u64,
    pub(super) total: u64,
}

/// The functions of a profile.
pub(super) struct Functions<'a> {
    profile: &'a Profile,
    /// For each frame of the tree its function, as an index into `all`; none of marks.
    by_frame: Vec<Option<usize>>,
    all: Vec<(Function, Sums)>,
    /// All that was counted without any function, the profiler's own apart.
    without: u64,
    /// The mark of the profiler's own stacks.
    profiler: Option<FrameId>,
}

/// Rows by what is counted in them, the most first, and then by name.
fn by_sums(a: &(&Function, Sums), b: &(&Function, Sums)) -> std::cmp::Ordering {
    let sums = |sums: Sums| (sums.itself, sums.total);
    (sums(b.1).cmp(&sums(a.1))).then_with(|| a.0.cmp(b.0))
}

impl<'a> Functions<'a> {
    pub(super) fn new(profile: &'a Profile, tree: &CallTree) -> Self {
        let mut functions = Self {
            profile,
            by_frame: Vec::with_capacity(tree.frame_count()),
            all: Vec::new(),
            without: 0,
            profiler: None,
        };
        let mut known: HashMap<Function, usize> = HashMap::default();
        for (id, (frame, code)) in tree.frame_ids().zip(tree.frames()) {
            if frame.kind == FrameKind::Mark && frame.name == marks::PROFILER {
                functions.profiler = Some(id);
            }
            let function = functions.function(&frame.name, frame.kind, code);
            let index = function.map(|function| {
                *known.entry(function).or_insert_with_key(|function| {
                    functions.all.push((function.clone(), Sums::default()));
                    functions.all.len() - 1
                })
            });
            functions.by_frame.push(index);
        }
        functions.count(tree);
        functions
    }

    /// Function that a frame is a call of; none of a mark.
    fn function(&self, name: &str, kind: FrameKind, code: Option<Code>) -> Option<Function> {
        let name = match code {
            Some(code) => Cow::Borrowed(&*self.profile.function_at(code.function).name),
            // A waker's process.
            None if kind == FrameKind::Process => Cow::Borrowed(name),
            None => return None,
        };
        if matches!(
            kind,
            FrameKind::Mark | FrameKind::State(_) | FrameKind::Label
        ) {
            return None;
        }
        let module = match code {
            Some(code) => self.profile.module(kind, code.mapping, code.function),
            None => kind.module_without_file(),
        };
        Some(Function {
            name: kind.annotate(&visible(&name)),
            module: visible(module).into_owned(),
        })
    }

    fn count(&mut self, tree: &CallTree) {
        // For each function the last sample that it was met in, plus one: it may call itself.
        let mut met: Vec<usize> = vec![0; self.all.len()];
        for (number, sample) in (1..).zip(tree.samples()) {
            for frame in tree.callers(sample.own) {
                let Some(function) = self.by_frame[frame.index()] else {
                    continue;
                };
                if std::mem::replace(&mut met[function], number) != number {
                    let total = &mut self.all[function].1.total;
                    *total = total.saturating_add(sample.weight);
                }
            }
            match self.innermost(tree, sample.own) {
                Some((_, function)) => {
                    let itself = &mut self.all[function].1.itself;
                    *itself = itself.saturating_add(sample.weight);
                }
                None if self.is_profiler(tree, sample.own) => {}
                None => self.without = self.without.saturating_add(sample.weight),
            }
        }
    }

    /// The function of a frame, as an index; none of a mark.
    pub(super) fn of(&self, frame: FrameId) -> Option<usize> {
        self.by_frame[frame.index()]
    }

    /// The function behind an index, and what was counted of it.
    pub(super) fn at(&self, index: usize) -> &(Function, Sums) {
        &self.all[index]
    }

    /// The functions, by index.
    pub(super) fn all(&self) -> &[(Function, Sums)] {
        &self.all
    }

    /// The function that a thread was in, and its frame.
    pub(super) fn innermost(
        &self,
        tree: &CallTree,
        node: Option<NodeIndex>,
    ) -> Option<(FrameId, usize)> {
        tree.callers(node)
            .find_map(|id| self.of(id).map(|function| (id, function)))
    }

    /// Whether a stack is the mark of the profiler's own.
    pub(super) fn is_profiler(&self, tree: &CallTree, node: Option<NodeIndex>) -> bool {
        self.profiler.is_some() && tree.callers(node).next() == self.profiler
    }

    /// How much was counted in each kind of code.
    pub(super) fn shares(&self, tree: &CallTree) -> Vec<(&'static str, u64)> {
        const KINDS: [&str; 9] = [
            "user",
            "JIT",
            "inlined",
            "runtime",
            KERNEL,
            SOFTIRQ,
            INTERRUPT,
            "without a stack",
            "flame-bpf itself",
        ];
        let mut shares = KINDS.map(|kind| (kind, 0));
        for sample in tree.samples() {
            let innermost = self.innermost(tree, sample.own);
            let kind = match innermost.map(|(frame, _)| tree.frame(frame).kind) {
                Some(FrameKind::Kernel) if sample.thread_state == ThreadState::Running => {
                    interrupt(tree, sample.own).unwrap_or(KERNEL)
                }
                Some(FrameKind::Kernel) => KERNEL,
                Some(FrameKind::Jit) => "JIT",
                Some(FrameKind::Interpreted(_)) => "runtime",
                Some(FrameKind::Inlined) => "inlined",
                Some(_) => "user",
                None if self.is_profiler(tree, sample.own) => "flame-bpf itself",
                None => "without a stack",
            };
            if let Some((_, sum)) = shares.iter_mut().find(|(known, _)| *known == kind) {
                *sum = u64::saturating_add(*sum, sample.weight);
            }
        }
        shares.to_vec()
    }
}

const KERNEL: &str = "kernel";
const SOFTIRQ: &str = "softirq";
const INTERRUPT: &str = "hard interrupt";

/// The kind of interrupt that the kernel served, if it served one: the innermost of those in the stack. What the kernel does
/// on the way back from one is no part of it.
///
/// A clock that expires while a hard interrupt keeps others off fires when these are let in, which is the first that the
/// function that serves softirqs does: a sample in that very function was due in the interrupt.
fn interrupt(tree: &CallTree, node: Option<NodeIndex>) -> Option<&'static str> {
    let frames = tree.callers(node).map(|id| tree.frame(id));
    let kernel = frames.take_while(|frame| !frame.kind.is_user());
    let mut kernel = kernel.filter(|frame| frame.kind == FrameKind::Kernel);
    let kind = |frame: &Frame| match &*frame.name {
        name if is_softirq(name) => Some(SOFTIRQ),
        name if is_interrupt(name) => Some(INTERRUPT),
        name if is_interrupt_exit(name) => Some(KERNEL),
        _ => None,
    };
    match kernel.next().map(kind)? {
        Some(SOFTIRQ) => Some(match kernel.any(|frame| is_interrupt(&frame.name)) {
            true => INTERRUPT,
            false => SOFTIRQ,
        }),
        Some(kind) => Some(kind),
        None => kernel.find_map(kind),
    }
}

impl Report<'_> {
    /// Appends the table of functions: so many of them, or those with the least share that was asked for.
    /// `more` says how to see others.
    pub(super) fn functions(&self, rows: usize, more: &str, text: &mut String) {
        let nothing = Function {
            name: NO_STACK.to_owned(),
            module: String::new(),
        };
        let without = Sums {
            itself: self.functions.without,
            total: self.functions.without,
        };
        let mut all: Vec<(&Function, Sums)> = (self.functions.all().iter())
            .map(|(function, sums)| (function, *sums))
            .chain((without.itself > 0).then_some((&nothing, without)))
            .filter(|(_, sums)| sums.total > 0)
            .collect();
        all.sort_by(by_sums);
        let count = all.len();
        match self.style.min_percent {
            Some(min) => all.retain(|(_, sums)| self.reaches(sums.itself.max(sums.total), min)),
            None => all.truncate(rows),
        }
        let style = self.style;
        let widest = |of: fn(&Function) -> &str| {
            let columns = all.iter().map(|(function, _)| of(function).width());
            columns.max().unwrap_or(0)
        };
        let modules = widest(|function| &function.module).clamp(6, style.columns / 4);
        let names = match style.cuts_names {
            true => (style.columns).saturating_sub(3 * (SHARE_COLUMNS + 1) + modules + 3),
            false => widest(|function| &function.name).clamp(8, DEFAULT_NAME_COLUMNS),
        };
        let _ = writeln!(
            text,
            "\n{:>6} {:>6} {:>6}  {}  module",
            "self",
            "sum",
            "total",
            style.padded("function", names)
        );
        let mut sum = 0_u64;
        for (Function { name, module }, sums) in &all {
            sum = sum.saturating_add(sums.itself);
            let row = format!(
                "{} {} {}  {}  {}",
                percent(sums.itself, self.total),
                percent(sum, self.total),
                percent(sums.total, self.total),
                style.padded(name, names),
                match style.cuts_names {
                    true => without_middle(module, modules, CUT),
                    false => module.clone(),
                }
            );
            let _ = writeln!(text, "{}", row.trim_end());
        }
        let share = percent(sum, self.total);
        let rest = match all.len() == count {
            true => format!("all {count} functions"),
            false => format!(
                "{} of {count} functions, {} of self; {more}",
                all.len(),
                share.trim_start()
            ),
        };
        let _ = writeln!(text, "{rest}");
    }

    /// Whether a weight is at least such a share of all, in percent.
    pub(super) fn reaches(&self, weight: u64, percent: f64) -> bool {
        weight as f64 * 100.0 >= percent * self.total as f64
    }
}
