//! An examination of what can be recorded here. Plain data.

use super::Plan;

/// Recordings that are to be tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Doctoring {
    /// Recordings of on-CPU time, of the whole machine or of the process that was named; nothing goes on without.
    pub sampling: Plan,
    /// Recordings of other things, of a process that is at hand, each with its name.
    pub others: Vec<(String, Plan)>,
    /// Whether the answer is JSON.
    pub json: bool,
}
