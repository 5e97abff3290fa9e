//! Wakers, which end waits.

use super::{AttachPoint, Attachment, Wakers};
use profiler_common::abi::ProgramId;

/// The tracepoint by which a thread is being woken, in the midst of what wakes it.
const WAKING: &str = "sched_waking";

/// The program that sees wakers, where these are wanted.
pub(super) fn programs(wakers: Wakers) -> impl Iterator<Item = Attachment> {
    let waking = || Attachment::follows(ProgramId::Waking, AttachPoint::tracepoint(WAKING));
    (wakers != Wakers::None).then(waking).into_iter()
}
