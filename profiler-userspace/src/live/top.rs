//! The live view without a terminal: what was counted, and what of it is on the screen.
//!
//! In: profiles of windows as outputs would show them, and what was recorded and lost. Out: all that [`super::screen`] shows,
//! which [`super::keys`] and [`super::mouse`] change, and what is seen as a profile.
//! Never: a terminal, a file, or the clock.

use super::accumulated::Accumulated;
use super::calls::Calls;
use super::functions::{FunctionRow, functions};
use super::processes::{ProcessRow, processes};
use super::save;
use super::shape::{CallSelection, Grouping, ROOT, Shape};
use super::state::{State, View};
use super::theme::Theme;
use super::tree::{self, Line};
use crate::output::{CalleeOrder, Palette};
use crate::profile::{Profile, Unit, Window};
use std::path::PathBuf;
use std::time::Duration;

/// Lines of the tree that are made, whether or not they are in sight.
const MAX_LINES: usize = 20_000;

/// One event of a recording.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name where there are several.
    pub name: String,
    /// Title: the subject of the recording, and its settings.
    pub title: String,
    /// Unit of its weights.
    pub unit: Unit,
    /// The colours of its frames.
    pub palette: Palette,
    /// Whether there are both threads that ran and threads that waited in it.
    pub has_both: bool,
}

/// A window.
#[derive(Debug)]
pub struct Update {
    /// Its number, from 1.
    pub number: u64,
    /// Whether it will not come again with better names.
    pub is_final: bool,
    /// The profile of each event.
    pub profiles: Vec<Profile>,
}

/// How the recording stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// How long it has lasted.
    pub elapsed: Duration,
    /// Of each event how many firings were recorded, were not wanted, and were lost.
    pub counts: Vec<[u64; 3]>,
    /// Share of one CPU that the profiler takes, in this process and in the kernel.
    pub cost: f64,
    /// Of how many files names are still being looked for.
    pub naming: usize,
    /// Anything else to tell the reader.
    pub remark: Option<String>,
}

/// Action to take after an event of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The screen may have changed.
    Draw,
    /// The recording is to end.
    Quit,
    /// The process is to stop until somebody continues it.
    Suspend,
    /// The screen is to be drawn from nothing.
    Redraw,
    /// The view is to be written to a file.
    Save(PathBuf),
}

/// The live view.
pub struct Top {
    pub(super) channels: Vec<Channel>,
    pub(super) theme: Theme,
    pub(super) status: Status,
    pub(super) state: State,
    /// Whether threads are told apart.
    pub(super) has_threads: bool,
    pub(super) columns: u16,
    pub(super) rows: u16,
    accumulated: Vec<Accumulated>,
    /// The calls that are shown instead of later ones.
    frozen: Option<Calls>,
    pub(super) shape: Shape,
    /// Only where they are shown.
    pub(super) functions: Vec<FunctionRow>,
    pub(super) processes: Vec<ProcessRow>,
    pub(super) lines: Vec<Line>,
    /// How many nodes were joined because there were too many.
    pub(super) joined: u64,
}

impl Top {
    /// Nothing to see yet. `has_threads`: whether threads are told apart.
    pub fn new(channels: Vec<Channel>, has_threads: bool, theme: Theme, size: (u16, u16)) -> Self {
        let accumulated = channels.iter();
        let accumulated: Vec<Accumulated> = accumulated
            .map(|channel| Accumulated::new(channel.unit.clone()))
            .collect();
        let nothing = Calls::new(Unit::Samples);
        let mut state = State::new();
        if has_threads {
            state.wanted.grouping = Grouping::Threads;
        }
        Self {
            shape: Shape::new(&nothing, &CallSelection::default()),
            channels,
            theme,
            status: Status::default(),
            state,
            has_threads,
            columns: size.0,
            rows: size.1,
            accumulated,
            frozen: None,
            functions: Vec::new(),
            processes: Vec::new(),
            lines: Vec::new(),
            joined: 0,
        }
    }

    /// Takes in a window, for the first time or with better names.
    pub fn take(&mut self, update: Update) {
        let Update {
            number,
            is_final,
            profiles,
        } = update;
        for (accumulated, profile) in self.accumulated.iter_mut().zip(profiles) {
            accumulated.take(number, profile, is_final, self.state.keeping);
        }
        if !self.state.frozen {
            self.refresh();
        }
    }

    /// Takes in how the recording stands.
    pub fn note(&mut self, status: Status) {
        self.status = status;
    }

    /// The screen has another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        (self.columns, self.rows) = (columns, rows);
    }

    /// Of so many files names are still being looked for.
    pub fn note_naming(&mut self, files: usize) {
        self.status.naming = files;
    }

    /// Shows the root at the top, or stacks from their other end, or callees in another order.
    pub fn turn(&mut self, inverted: bool, reverse: bool, order: Option<CalleeOrder>) {
        self.state.icicle = inverted;
        self.state.wanted.reverse = reverse;
        self.state.by_weight = order.map(|order| order == CalleeOrder::Weight);
        self.state.order();
    }

    /// Says what became of what was to be done.
    pub fn say(&mut self, message: String) {
        self.state.message = Some(message);
    }

    /// The view as a profile.
    pub fn profile(&self) -> Profile {
        let window = Window::until(self.status.elapsed);
        let zoom = self.shape.path(self.state.zoom);
        let of = |calls: &Calls| save::profile(calls, &self.state.wanted, &zoom, window);
        match &self.frozen {
            Some(calls) => of(calls),
            None => of(&self.accumulated[self.state.channel].calls(self.state.keeping)),
        }
    }

    /// Title of the event that is shown.
    pub fn title(&self) -> String {
        let channel = &self.channels[self.state.channel];
        format!("{}, seen live", channel.title)
    }

    /// The event that is shown.
    pub fn channel(&self) -> usize {
        self.state.channel
    }

    /// Makes all anew that is made of what was counted and what is wanted.
    pub(super) fn refresh(&mut self) {
        let calls = match &self.frozen {
            Some(calls) => std::borrow::Cow::Borrowed(calls),
            None => self.accumulated[self.state.channel].calls(self.state.keeping),
        };
        let state = &mut self.state;
        let paths = [state.zoom, state.selected].map(|node| self.shape.path(node));
        let shape = Shape::new(&calls, &state.wanted);
        [state.zoom, state.selected] = paths.map(|path| shape.find(&path));
        self.functions.clear();
        self.processes.clear();
        match state.view {
            View::Functions if state.wanted.reverse => {
                let forward = CallSelection {
                    reverse: false,
                    ..state.wanted.clone()
                };
                self.functions = functions(&Shape::new(&calls, &forward), &calls);
            }
            View::Functions => self.functions = functions(&shape, &calls),
            View::Processes => self.processes = processes(&calls, state.wanted.time),
            View::Flame | View::Tree => {}
        }
        self.joined = calls.joined;
        self.shape = shape;
        self.relist();
    }

    /// Makes the lines of the tree anew.
    pub(super) fn relist(&mut self) {
        self.lines.clear();
        if self.state.view == View::Tree {
            let state = &self.state;
            self.lines = tree::lines(&self.shape, state.zoom, &state.turned, MAX_LINES);
        }
    }

    /// Shows what comes, or does not.
    pub(super) fn set_frozen(&mut self, frozen: bool) {
        self.state.frozen = frozen;
        self.frozen = frozen.then(|| {
            let calls = self.accumulated[self.state.channel].calls(self.state.keeping);
            calls.into_owned()
        });
        self.refresh();
    }

    /// Forgets all that was counted.
    pub(super) fn reset(&mut self) {
        for accumulated in &mut self.accumulated {
            accumulated.reset();
        }
        (self.state.zoom, self.state.selected) = (ROOT, ROOT);
        self.set_frozen(false);
    }

    /// How many rows there are between the first line and the last.
    pub(super) fn body_rows(&self) -> usize {
        usize::from(self.rows.saturating_sub(2))
    }
}
