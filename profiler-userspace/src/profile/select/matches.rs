//! Which samples a selection's focus is on, and which it ignores.
//!
//! In: samples of a profile. Out: why one is left out. Each name is looked at once, and each stack once.

use super::{Pattern, Reason, Selection};
use crate::profile::marks;
use crate::profile::model::{Location, Profile, Sample};
use crate::profile::normalized::NormalizedStackIndex;
use crate::profile::off_cpu_view::Wakers;
use foldhash::{HashMap, HashMapExt as _};
use profiler_common::abi::ThreadState;

/// Whether the focus is met, and whether what is to be ignored is.
#[derive(Clone, Copy, Default)]
struct Met {
    focus: bool,
    ignore: bool,
}

impl Met {
    fn or(self, other: Self) -> Self {
        Self {
            focus: self.focus || other.focus,
            ignore: self.ignore || other.ignore,
        }
    }
}

pub(super) struct Matches<'a> {
    selection: &'a Selection,
    /// By location.
    locations: Vec<Met>,
    stacks: HashMap<NormalizedStackIndex, Met>,
}

impl<'a> Matches<'a> {
    pub(super) fn new(profile: &Profile, selection: &'a Selection) -> Self {
        let is_needed = !(selection.focus.is_empty() && selection.ignore.is_empty());
        let locations = profile.locations().iter().filter(|_| is_needed);
        let met = |location: &Location| Met {
            focus: is_met(profile, location, &selection.focus),
            ignore: is_met(profile, location, &selection.ignore),
        };
        Self {
            selection,
            locations: locations.map(met).collect(),
            stacks: HashMap::new(),
        }
    }

    /// Why a sample is left out, if it is.
    pub(super) fn reason(&mut self, profile: &Profile, sample: &Sample) -> Option<Reason> {
        let Selection { focus, ignore, .. } = self.selection;
        if focus.is_empty() && ignore.is_empty() {
            return None;
        }
        let wakers = profile.off_cpu.map(|view| view.wakers);
        let waker = sample.waker.filter(|_| wakers != Some(Wakers::None));
        let waker = waker.map(|index| profile.waker_at(index));
        let own = match wakers {
            Some(Wakers::Alone) => [None, None],
            _ => [sample.user, sample.kernel],
        };
        let of_waker = waker.map_or([None, None], |waker| [waker.user, waker.kernel]);
        let mut met = Met::default();
        for stack in own.into_iter().chain(of_waker).flatten() {
            met = met.or(self.stack(profile, stack));
        }
        let owners = [Some(sample.labels), waker.map(|waker| waker.labels)];
        for labels in owners.into_iter().flatten() {
            let labels = profile.labels_at(labels);
            for name in [labels.name(), labels.comm.as_deref()]
                .into_iter()
                .flatten()
            {
                met = met.or(self.name(name));
            }
        }
        let state = match sample.thread_state {
            ThreadState::Running => None,
            ThreadState::Ran => Some(marks::NOT_SAMPLED),
            ThreadState::Runnable => Some(marks::RUNNABLE),
            ThreadState::Blocked | ThreadState::Woken => {
                Some(sample.reason.map_or(marks::BLOCKED, |reason| reason.name()))
            }
        };
        met = state.map_or(met, |state| met.or(self.name(state)));
        if !focus.is_empty() && !met.focus {
            return Some(Reason::Focus);
        }
        met.ignore.then_some(Reason::Ignore)
    }

    fn name(&self, name: &str) -> Met {
        let is_met = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.is_met_by(name));
        Met {
            focus: is_met(&self.selection.focus),
            ignore: is_met(&self.selection.ignore),
        }
    }

    fn stack(&mut self, profile: &Profile, index: NormalizedStackIndex) -> Met {
        if let Some(met) = self.stacks.get(&index) {
            return *met;
        }
        let stack = profile.stack_at(index);
        let mark = stack
            .end
            .mark()
            .map_or_else(Met::default, |mark| self.name(mark));
        let locations = stack.locations().map(|at| self.locations[at.0 as usize]);
        let met = locations.fold(mark, Met::or);
        self.stacks.insert(index, met);
        met
    }
}

/// Whether the file that a location's code is in meets one of the patterns.
pub(super) fn is_mapping_met(profile: &Profile, location: &Location, patterns: &[Pattern]) -> bool {
    let Some(mapping) = location.mapping else {
        return false;
    };
    let mapping = &profile.mappings()[mapping.0 as usize];
    let (path, module) = (mapping.path.to_string_lossy(), &mapping.module);
    patterns
        .iter()
        .any(|pattern| pattern.is_met_by(&path) || pattern.is_met_by(module))
}

/// Whether one of a location's functions meets one of the patterns: the lines that do, the innermost first.
pub(super) fn lines_met(
    profile: &Profile,
    location: &Location,
    patterns: &[Pattern],
) -> impl Iterator<Item = bool> {
    profile.lines_at(location).iter().map(|line| {
        let function = profile.function_at(line.function);
        let is_met = |pattern: &Pattern| {
            pattern.is_met_by(&function.name)
                || (!function.file.is_empty() && pattern.is_met_by(&function.file))
        };
        patterns.iter().any(is_met)
    })
}

fn is_met(profile: &Profile, location: &Location, patterns: &[Pattern]) -> bool {
    !patterns.is_empty()
        && (lines_met(profile, location, patterns).any(|met| met)
            || is_mapping_met(profile, location, patterns))
}
