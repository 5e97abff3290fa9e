//! Waiting for locks.

use super::{AttachPoint, Attachment, ProbeSpec, View, syscall};
use profiler_common::abi::{CallWeight, ProgramId};

/// The probe's row. The ends come first, so that none is missed.
pub(super) fn spec(locks: Locks) -> ProbeSpec {
    let of_kernel = [
        Attachment::follows(
            ProgramId::LockEnd,
            AttachPoint::tracepoint("contention_end"),
        ),
        Attachment::begins(
            ProgramId::LockBegin,
            AttachPoint::tracepoint("contention_begin"),
        ),
    ];
    let of_programs = locks.user.then(syscall::programs).into_iter().flatten();
    let of_kernel = locks.kernel.then_some(of_kernel).into_iter().flatten();
    let programs = [syscall::thread_end()].into_iter().chain(of_programs);
    let spec = ProbeSpec {
        names_leaf: true,
        view: View::WAITING,
        ..ProbeSpec::new("wait", programs.chain(of_kernel).collect())
    };
    spec.timed(CallWeight::Time)
        .titled(match (locks.kernel, locks.user) {
            (true, false) => "waiting for kernel locks",
            (false, true) => "waiting for user locks",
            _ => "waiting for locks",
        })
}

/// Which locks are wanted; never none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locks {
    /// Those of the kernel.
    pub kernel: bool,
    /// Those of programs.
    pub user: bool,
}
