//! Settings of the live view that its reader made.
//!
//! In: nothing. Out: plain values, which [`super::keys`] changes and [`super::screen`] shows.

use super::accumulated::Keeping;
use super::calls::Name;
use super::shape::{CallSelection, ROOT};
use crate::profile::select::Pattern;
use std::collections::HashSet;

/// View that fills the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    #[default]
    Flame,
    Functions,
    Tree,
    Processes,
}

impl View {
    /// In the order of their keys.
    pub(super) const ALL: [Self; 4] = [Self::Flame, Self::Functions, Self::Tree, Self::Processes];

    /// Its name in the header.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Flame => "flame graph",
            Self::Functions => "functions",
            Self::Tree => "tree",
            Self::Processes => "processes",
        }
    }

    /// The one behind it, or before it.
    pub(super) fn next(self, back: bool) -> Self {
        let place = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        let step = if back { Self::ALL.len() - 1 } else { 1 };
        Self::ALL[(place + step) % Self::ALL.len()]
    }
}

/// Text being typed at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    /// A pattern to search for.
    Search(String),
    /// Where to save.
    Save(String),
}

/// A click, to tell whether the next one is a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Click {
    pub(super) column: u16,
    pub(super) row: u16,
    /// When it was, in milliseconds.
    pub(super) at: u64,
}

/// All that keys change.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) view: View,
    pub(super) wanted: CallSelection,
    /// Which event is shown, by its number.
    pub(super) channel: usize,
    pub(super) keeping: Keeping,
    /// Whether the root is at the top.
    pub(super) icicle: bool,
    /// Whether the heaviest callee is on the left; none for what is usual.
    pub(super) by_weight: Option<bool>,
    /// Whether what comes is not shown.
    pub(super) frozen: bool,
    pub(super) help: bool,
    pub(super) prompt: Option<Prompt>,
    /// The last pattern that was searched for.
    pub(super) search: Option<Pattern>,
    /// Why what is being typed is no pattern.
    pub(super) search_error: Option<String>,
    /// The node that is as wide as the screen.
    pub(super) zoom: u32,
    /// The node that the last line tells of, in the graph and in the tree.
    pub(super) selected: u32,
    /// The selected row of the table of functions, and of that of processes.
    pub(super) row: [usize; 2],
    /// How many rows are out of sight, by view.
    pub(super) scrolled: [usize; View::ALL.len()],
    /// Nodes of the tree that are open, or closed, otherwise than is usual.
    pub(super) turned: HashSet<Vec<Name>>,
    /// Result of the last key.
    pub(super) message: Option<String>,
    pub(super) click: Option<Click>,
}

impl State {
    /// Nothing but what is usual.
    pub(super) fn new() -> Self {
        Self {
            zoom: ROOT,
            selected: ROOT,
            ..Self::default()
        }
    }

    /// Has callees by name, and by weight where the graph is turned over or reversed, unless the reader chose.
    pub(super) fn order(&mut self) {
        let usual = self.icicle || self.wanted.reverse;
        self.wanted.by_weight = self.by_weight.unwrap_or(usual);
    }

    /// The selected row of a table that is shown, to be changed.
    pub(super) fn table_row(&mut self) -> &mut usize {
        &mut self.row[usize::from(self.view == View::Processes)]
    }
}
