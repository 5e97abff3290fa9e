//! Requests for memory.

use super::{AttachPoint, Attachment, ProbeSpec, syscall};
use crate::profile::Unit;
use profiler_common::abi::ProgramId;

/// The probe's row.
pub(super) fn spec() -> ProbeSpec {
    let requests = Attachment::begins(ProgramId::Allocation, AttachPoint::Functions);
    let spec = ProbeSpec {
        keeps_threads: true,
        unit: Some(Unit::Events("bytes".to_owned())),
        ..ProbeSpec::new("request", vec![syscall::thread_end(), requests])
    };
    spec.titled("memory asked for")
}
