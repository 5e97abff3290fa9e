//! The kernel's coming by a tracepoint.

use super::{AttachPoint, Attachment, ProbeSpec};
use crate::profile::Unit;
use profiler_common::abi::ProgramId;
use std::fmt;

/// The probe's row.
pub(super) fn spec(named: &Tracepoint) -> ProbeSpec {
    let at = AttachPoint::tracepoint(&named.name);
    let spec = ProbeSpec {
        unit: Some(Unit::Events(named.to_string())),
        ..ProbeSpec::new(
            "sample",
            vec![Attachment::begins(ProgramId::Tracepoint, at)],
        )
    };
    spec.titled(named.to_string())
}

/// A place in the kernel that can be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// The category under which it is listed. The kernel finds it by its name alone.
    pub category: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for Tracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.category, self.name)
    }
}
