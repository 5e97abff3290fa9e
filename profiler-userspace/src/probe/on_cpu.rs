//! A clock or a counter on each CPU.

use super::{AttachPoint, Attachment, ProbeSpec};
use profiler_common::abi::ProgramId;

/// The probe's row. The plan's event decides what it is called and what its weights count.
pub(super) fn spec() -> ProbeSpec {
    let samples = Attachment::begins(ProgramId::OnCpu, AttachPoint::PerfEvent);
    ProbeSpec {
        unit: None,
        ..ProbeSpec::new("sample", vec![samples])
    }
}
