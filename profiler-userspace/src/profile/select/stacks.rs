//! Stacks with some of their frames.
//!
//! In: stacks of a profile. Out: stacks without the frames that are hidden, without what is above their new root, and
//! without repetitions. Each stack is changed once.

use super::Selection;
use super::matches::{is_mapping_met, lines_met};
use crate::profile::model::{FunctionIndex, Line, Location, Profile};
use crate::profile::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use foldhash::{HashMap, HashMapExt as _};
use profiler_common::abi::StackEnd;

/// Part of a stack that is wanted.
#[derive(Clone, Copy)]
pub(super) struct Changed {
    /// All of it; none if no frame is left.
    pub(super) whole: Option<NormalizedStackIndex>,
    /// From its new root on; none if it has none.
    pub(super) from_root: Option<NormalizedStackIndex>,
    /// Whether a frame was hidden.
    pub(super) hides: bool,
}

/// A frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Level {
    /// Which of the stack's locations it is of, from the leaf on.
    at: u32,
    location: LocationIndex,
    /// Which of the location's lines, the innermost first.
    line: u32,
}

/// By the lines of a location: what the selection says of them.
#[derive(Clone, Default)]
struct Lines {
    hidden: Box<[bool]>,
    roots: Box<[bool]>,
}

pub(super) struct Stacks<'a> {
    selection: &'a Selection,
    /// By location.
    lines: Vec<Lines>,
    changed: HashMap<NormalizedStackIndex, Changed>,
    /// Locations with some of their lines.
    parts: HashMap<(LocationIndex, Box<[u32]>), LocationIndex>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(selection: &'a Selection, profile: &Profile) -> Self {
        let is_needed = !(selection.hide.is_empty() && selection.root_at.is_empty());
        let met = |location: &Location, patterns: &[_]| {
            let all = !patterns.is_empty() && is_mapping_met(profile, location, patterns);
            lines_met(profile, location, patterns)
                .map(|is_met| is_met || all)
                .collect()
        };
        let lines = profile.locations().iter().map(|location| match is_needed {
            true => Lines {
                hidden: met(location, &selection.hide),
                roots: met(location, &selection.root_at),
            },
            false => Lines::default(),
        });
        Self {
            selection,
            lines: lines.collect(),
            changed: HashMap::new(),
            parts: HashMap::new(),
        }
    }

    /// Whether stacks are to begin at another root.
    pub(super) fn cuts(&self) -> bool {
        !self.selection.root_at.is_empty()
    }

    /// Whether a stack has a frame of a kind that is shown at all.
    pub(super) fn has_wanted_kind(
        &self,
        profile: &Profile,
        stack: Option<NormalizedStackIndex>,
    ) -> bool {
        let is_of_runtime =
            |location: LocationIndex| profile.location_at(location).kind.is_of_runtime();
        let has = |stack| profile.stack_at(stack).locations().any(is_of_runtime);
        !self.selection.runtime_only || stack.is_some_and(has)
    }

    /// Part of a stack that is wanted.
    pub(super) fn change(&mut self, profile: &mut Profile, index: NormalizedStackIndex) -> Changed {
        let Selection {
            hide,
            collapse_recursion,
            runtime_only,
            ..
        } = self.selection;
        if hide.is_empty() && !self.cuts() && !collapse_recursion && !runtime_only {
            return Changed {
                whole: Some(index),
                from_root: None,
                hides: false,
            };
        }
        if let Some(changed) = self.changed.get(&index) {
            return *changed;
        }
        let stack = profile.stack_at(index).to_stack();
        let mut levels = self.levels(profile, &stack);
        if *runtime_only {
            levels.retain(|level| profile.location_at(level.location).kind.is_of_runtime());
        }
        let nothing = Changed {
            whole: None,
            from_root: None,
            hides: false,
        };
        if *runtime_only && levels.is_empty() {
            // How the walk of native frames alone ended says nothing.
            self.changed.insert(index, nothing);
            return nothing;
        }
        let all = levels.len();
        if !hide.is_empty() {
            levels.retain(|level| !self.is_hidden(level));
        }
        let hides = levels.len() < all;
        let is_root = |level: &Level| {
            let lines = self.lines.get(level.location.0 as usize);
            lines.is_some_and(|lines| lines.roots.get(level.line as usize).is_some_and(|is| *is))
        };
        let root = levels.iter().rposition(is_root).filter(|_| self.cuts());
        let changed = Changed {
            from_root: root.and_then(|root| {
                let end = StackEnd::Root;
                let cut = levels[..=root].to_vec();
                self.stack(
                    profile,
                    cut,
                    NormalizedStack {
                        end,
                        ..stack.clone()
                    },
                )
            }),
            whole: self.stack(profile, levels, stack),
            hides,
        };
        self.changed.insert(index, changed);
        changed
    }

    fn is_hidden(&self, level: &Level) -> bool {
        let lines = &self.lines[level.location.0 as usize];
        lines.hidden.get(level.line as usize).is_some_and(|is| *is)
    }

    /// All frames of a stack, from the leaf on.
    fn levels(&self, profile: &Profile, stack: &NormalizedStack) -> Vec<Level> {
        let mut levels = Vec::new();
        for (at, location) in (0..).zip(&stack.locations) {
            let lines = profile.lines_at(profile.location_at(*location)).len() as u32;
            levels.extend((0..lines).map(|line| Level {
                at,
                location: *location,
                line,
            }));
        }
        levels
    }

    /// The stack of these frames; none if nothing is left that can be seen.
    fn stack(
        &mut self,
        profile: &mut Profile,
        mut levels: Vec<Level>,
        like: NormalizedStack,
    ) -> Option<NormalizedStackIndex> {
        if self.selection.collapse_recursion {
            // The innermost of equal frames stays, whose line is where the thread was.
            levels.dedup_by(|outer, inner| {
                let [outer, inner] = [outer, inner].map(|level| function(profile, level));
                profile.function_at(outer).name == profile.function_at(inner).name
            });
        }
        if levels.is_empty() && like.end.mark().is_none() {
            return None;
        }
        let of_one = |one: &Level, other: &Level| one.at == other.at;
        let locations: Vec<_> = levels
            .chunk_by(of_one)
            .map(|levels| self.location(profile, levels))
            .collect();
        Some(profile.stack(&NormalizedStack {
            locations: locations.into(),
            ..like
        }))
    }

    /// A location with these of its lines.
    fn location(&mut self, profile: &mut Profile, levels: &[Level]) -> LocationIndex {
        let index = levels[0].location;
        let location = *profile.location_at(index);
        let lines = profile.lines_at(&location);
        if lines.len() == levels.len() {
            return index;
        }
        let kept: Vec<Line> = levels
            .iter()
            .map(|level| lines[level.line as usize])
            .collect();
        let numbers = levels.iter().map(|level| level.line).collect();
        *self.parts.entry((index, numbers)).or_insert_with(|| {
            let lines = profile.lines(kept);
            profile.location(Location { lines, ..location })
        })
    }
}

fn function(profile: &Profile, level: &Level) -> FunctionIndex {
    let location = profile.location_at(level.location);
    profile.lines_at(location)[level.line as usize].function
}
