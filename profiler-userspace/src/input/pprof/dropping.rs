//! Frames that a file asks its readers to drop: `drop_frames` and `keep_frames`.
//!
//! In: two regular expressions, which a whole name must meet. Out: stacks that end above the first such function, with
//! how much of the weight that is. As in pprof, what no function of the program called stays, and so does the outer part
//! of a location whose inlined function is dropped.

use super::{Made, Reader};
use crate::profile::fold::visible;
use crate::profile::normalized::LocationIndex;
use crate::profile::select::Pattern;
use crate::profile::{Line, Location, Unit};
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Dropping {
    /// Locations by their IDs that have such a function, and what is left of them.
    cut: HashMap<u64, Option<LocationIndex>>,
    /// As the file has it.
    pattern: String,
    /// Why it is not followed.
    problem: Option<String>,
    weight: u64,
}

impl Dropping {
    pub(super) fn new(reader: &Reader<'_>, made: &mut Made) -> Self {
        let [drop, keep] =
            [reader.message.drop_frames, reader.message.keep_frames].map(|at| reader.text(at));
        let mut dropping = Self {
            pattern: drop.to_owned(),
            ..Self::default()
        };
        if drop.is_empty() {
            return dropping;
        }
        let whole = |pattern: &str| Pattern::parse(&format!("^(?:{pattern})$"));
        let (drop, keep) = match (whole(drop), whole(keep)) {
            (Ok(drop), Ok(keep)) => (
                drop,
                Some(keep).filter(|_| !reader.text(reader.message.keep_frames).is_empty()),
            ),
            (Err(problem), _) | (_, Err(problem)) => {
                dropping.problem = Some(problem);
                return dropping;
            }
        };
        let is_dropped = |name: &str| {
            let name = without_arguments(name);
            drop.is_met_by(name) && !keep.as_ref().is_some_and(|keep| keep.is_met_by(name))
        };
        for (id, index) in &made.locations {
            let location = *made.profile.location_at(*index);
            let lines = made.profile.lines_at(&location);
            let name = |line: &Line| &made.profile.function_at(line.function).name;
            let Some(at) = lines.iter().rposition(|line| is_dropped(name(line))) else {
                continue;
            };
            let left = lines[at + 1..].to_vec();
            let left = (!left.is_empty()).then(|| {
                let lines = made.profile.lines(left);
                made.profile.location(Location { lines, ..location })
            });
            dropping.cut.insert(*id, left);
        }
        dropping
    }

    /// Ends a stack, from the leaf on, above the outermost function that is dropped.
    pub(super) fn cut(&mut self, ids: &[u64], locations: &mut Vec<LocationIndex>, weight: u64) {
        let Some(first) = ids.iter().rposition(|id| !self.cut.contains_key(id)) else {
            return;
        };
        let Some(at) = ids[..first]
            .iter()
            .rposition(|id| self.cut.contains_key(id))
        else {
            return;
        };
        self.weight = self.weight.saturating_add(weight);
        let left = self.cut[&ids[at]];
        locations.drain(..=at);
        if let Some(left) = left {
            locations.insert(0, left);
        }
    }

    /// The request, and what was done of it.
    pub(super) fn told(&self, unit: &Unit) -> Option<String> {
        let pattern = visible(&self.pattern);
        match &self.problem {
            Some(problem) => Some(format!(
                "nothing, though the file asks to drop {pattern}: {problem}"
            )),
            None if self.weight == 0 => None,
            None => Some(format!(
                "frames in stacks of {} {}, as the file asks: {pattern}",
                unit.shown(self.weight),
                visible(unit.noun())
            )),
        }
    }
}

/// A name up to its arguments, which pprof leaves out before it looks at a name.
fn without_arguments(name: &str) -> &str {
    let name = name.strip_prefix('.').unwrap_or(name);
    let is_argument = |at: usize| {
        let is_part = |part: &str| name[at..].starts_with(part);
        let is_name =
            is_part("(anonymous namespace)") || (is_part("()") && name[..at].ends_with("operator"));
        !is_name
    };
    let mut places = name.match_indices('(').map(|(at, _)| at);
    places
        .find(|at| is_argument(*at))
        .map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_no_part_of_what_is_dropped() {
        for (name, expected) in [
            ("f(int)", "f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("a::operator()(int)", "a::operator()"),
            (".f", "f"),
        ] {
            assert_eq!(without_arguments(name), expected);
        }
    }
}
