//! Stacks without the native frames that are nothing but an interpreter at work.
//!
//! In: a profile with frames of interpreters. Out: the same weights, on stacks in which the interpreter's loop, and the
//! functions that lead to it and from it, are left out beside what they run. What lies between stays: a sort that calls back,
//! an extension, the program that embeds the interpreter.

use super::FrameKind;
use super::model::Profile;
use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use foldhash::HashMap;
use profiler_common::runtime::RuntimeKind;

/// The native functions of a runtime that are left out unless they are asked for: its loop, and what leads to it and from it.
#[derive(Clone, Copy, Debug)]
pub struct HiddenFrames {
    /// Their names. An asterisk stands for any characters.
    pub names: &'static [&'static str],
    /// Whether each function stands in front of the loop that runs it, whatever that is called.
    pub has_loop: bool,
}

impl HiddenFrames {
    /// Functions with these names, and the loop.
    #[must_use]
    pub const fn around_loop(names: &'static [&'static str]) -> Self {
        Self {
            names,
            has_loop: true,
        }
    }

    /// Whether a native function is one of them, by its name.
    pub fn has(&self, name: &str) -> bool {
        self.names
            .iter()
            .any(|pattern| match pattern.split_once('*') {
                Some((start, end)) => {
                    let rest = name.strip_prefix(start);
                    rest.is_some_and(|rest| rest.ends_with(end))
                }
                None => *pattern == name,
            })
    }
}

/// Leaves the interpreters' own frames out. `hidden_frames`: the names of a runtime's.
#[must_use]
pub fn without_loops(
    mut profile: Profile,
    hidden_frames: impl Fn(RuntimeKind) -> HiddenFrames,
) -> Profile {
    let kinds: Vec<Option<RuntimeKind>> = profile
        .locations()
        .iter()
        .map(|location| match location.kind {
            FrameKind::Interpreted(kind) => Some(kind),
            _ => None,
        })
        .collect();
    if kinds.iter().all(Option::is_none) {
        return profile;
    }
    let mut shorter: HashMap<NormalizedStackIndex, NormalizedStackIndex> = HashMap::default();
    let mut shorten = |profile: &mut Profile, index: NormalizedStackIndex| {
        if let Some(known) = shorter.get(&index) {
            return *known;
        }
        let stack = profile.stack_at(index).to_stack();
        let kept = kept(profile, &kinds, &stack.locations, &hidden_frames);
        let new = profile.stack(&NormalizedStack {
            locations: kept,
            ..stack
        });
        shorter.insert(index, new);
        new
    };
    for at in 0..profile.samples.len() {
        if let Some(user) = profile.samples[at].user {
            profile.samples[at].user = Some(shorten(&mut profile, user));
        }
    }
    for at in 0..profile.wakers.len() {
        if let Some(user) = profile.wakers[at].user {
            profile.wakers[at].user = Some(shorten(&mut profile, user));
        }
    }
    profile
}

/// The locations that are shown, from leaf to root.
fn kept(
    profile: &Profile,
    kinds: &[Option<RuntimeKind>],
    locations: &[LocationIndex],
    hidden_frames: &impl Fn(RuntimeKind) -> HiddenFrames,
) -> Box<[LocationIndex]> {
    let kind = |at: usize| kinds[locations[at].0 as usize];
    let mut hidden = vec![false; locations.len()];
    // The runtime's own object, once its loop was met.
    let mut object = None;
    for at in 0..locations.len() {
        let Some(runtime) = kind(at) else { continue };
        let hidden_frames = hidden_frames(runtime);
        // The loop stands towards the root of the last frame that it runs.
        for place in at + 1..locations.len() {
            if kind(place).is_some() {
                break;
            }
            let location = profile.location_at(locations[place]);
            let is_loop =
                hidden_frames.has_loop && place == at + 1 && location.kind == FrameKind::User;
            object = object.or(location.mapping.filter(|_| is_loop));
            if !is_loop && !is_hidden(profile, locations[place], hidden_frames, object) {
                break;
            }
            hidden[place] = true;
        }
        // Its callees stand towards the leaf. Where the thread is, is not hidden.
        let is_called = (0..at).rev().find(|place| kind(*place).is_some());
        for place in (is_called.map_or(at, |called| called + 1)..at).rev() {
            if !is_hidden(profile, locations[place], hidden_frames, object) {
                break;
            }
            hidden[place] = true;
        }
    }
    let all = locations.iter().zip(hidden);
    all.filter(|(_, hidden)| !hidden)
        .map(|(location, _)| *location)
        .collect()
}

/// Whether a native frame only leads to the loop or from it: by its name, or because it has none and lies in the runtime's own
/// object.
fn is_hidden(
    profile: &Profile,
    location: LocationIndex,
    hidden_frames: HiddenFrames,
    object: Option<super::model::MappingIndex>,
) -> bool {
    let name = profile.name_at(location);
    let location = profile.location_at(location);
    if location.kind != FrameKind::User {
        return false;
    }
    let is_nameless = name.starts_with('[') && name.ends_with(']');
    // The compiler's parts of a function: `.cold`, `.part.0`, `.constprop.0`.
    let stem = name.split('.').next().unwrap_or(name);
    hidden_frames.has(stem) || (is_nameless && object.is_some() && location.mapping == object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_frames_are_told_by_names_and_patterns() {
        let hidden_frames = HiddenFrames::around_loop(&["loop", "Builtins_*Handler", "enter*"]);
        for name in [
            "loop",
            "Builtins_AddHandler",
            "Builtins_Handler",
            "enter",
            "entering",
        ] {
            assert!(hidden_frames.has(name), "{name}");
        }
        for name in ["loops", "Builtins_Add", "AddHandler", "center", ""] {
            assert!(!hidden_frames.has(name), "{name}");
        }
    }
}
