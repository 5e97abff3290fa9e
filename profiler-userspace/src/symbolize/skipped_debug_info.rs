//! Debug information that was not read, or not as a whole.
//!
//! In: what came of each object's debug information. Out: numbers for the report.

use super::dwarf::QueryOutcome;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where debug information took more than naming may hold, or was not all there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedDebugInfo {
    /// How many objects' debug information was read more than once.
    pub again: usize,
    /// By module, how many places lack lines and inlined functions.
    pub left: BTreeMap<String, usize>,
    /// By module, how many files are missing in which the compiler put parts of it, and one of them.
    pub missing: BTreeMap<String, (usize, PathBuf)>,
}

impl SkippedDebugInfo {
    /// Adds what came of one object.
    pub(super) fn note(&mut self, module: &str, asked: QueryOutcome) {
        self.again += usize::from(asked.again);
        if asked.left > 0 {
            *self.left.entry(module.to_owned()).or_default() += asked.left;
        }
        if asked.missing > 0 {
            let such_as = asked.such_as.unwrap_or_default();
            let known = self.missing.entry(module.to_owned());
            known.or_insert((0, such_as)).0 += asked.missing;
        }
    }
}
