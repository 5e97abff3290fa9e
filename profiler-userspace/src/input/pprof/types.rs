//! Which of the things that a file counts is read.
//!
//! In: sample types and the name of one, if that was asked for. Out: an index, and how much is left out.

use super::Reader;
use crate::input::{Error, text};
use crate::pprof::Profile;
use crate::profile::fold::visible;
use std::borrow::Cow;

pub(super) struct Types<'a> {
    /// Name and unit.
    names: Vec<(&'a str, &'a str)>,
    sums: Vec<u64>,
    /// The one that the file names as usual.
    usual: Option<usize>,
}

impl<'a> Types<'a> {
    pub(super) fn new(message: &Profile, reader: &'a Reader<'_>) -> Self {
        let types = &message.sample_type;
        let sum = |at: usize| {
            let values = message
                .sample
                .iter()
                .filter_map(|sample| sample.value.get(at));
            values.fold(0_u64, |sum, value| sum.saturating_add(value.unsigned_abs()))
        };
        let is_usual = |kind: i64| kind != 0 && kind == message.default_sample_type;
        Self {
            names: types
                .iter()
                .map(|one| (reader.text(one.kind), reader.text(one.unit)))
                .collect(),
            sums: (0..types.len()).map(sum).collect(),
            usual: types.iter().rposition(|one| is_usual(one.kind)),
        }
    }

    /// The type that is asked for, else the usual one, else the heaviest, and of equals the last. One in which nothing
    /// was counted is shown only if it is asked for.
    pub(super) fn chosen(&self, wanted: Option<&str>) -> Result<usize, Error> {
        let names = || self.names.iter().map(|(name, _)| *name);
        if let Some(wanted) = wanted {
            let at = names().position(|name| name == wanted);
            return at.ok_or_else(|| text::no_such_type(wanted, names()));
        }
        let heaviest = (0..self.sums.len()).max_by_key(|at| self.sums[*at]);
        let usual = self.usual.filter(|at| self.sums[*at] > 0);
        usual
            .or(heaviest)
            .ok_or_else(|| Error::whole("it has no sample type"))
    }

    /// All types but this one, and how much they count; and this one's name.
    pub(super) fn others(&self, chosen: usize) -> (Vec<String>, Cow<'a, str>) {
        let others = (self.names.iter().zip(&self.sums).enumerate())
            // The number of firings comes along.
            .filter(|(at, ((kind, _), _))| *at != chosen && !self.is_count(kind))
            .map(|(_, ((kind, unit), sum))| match *unit {
                "" | "count" => format!("{} ({sum})", visible(kind)),
                unit => format!("{} ({sum} {})", visible(kind), visible(unit)),
            });
        (others.collect(), visible(self.names[chosen].0))
    }

    /// Whether a type is how often that fired which another type weighs.
    fn is_count(&self, kind: &str) -> bool {
        let of = kind.strip_suffix("_samples");
        kind == "samples" || of.is_some_and(|of| self.names.iter().any(|(name, _)| *name == of))
    }
}
