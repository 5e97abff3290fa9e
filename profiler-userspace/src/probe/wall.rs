//! All of the threads' time: where they run, by samples, and where they wait.

use super::{AttachPoint, Attachment, ProbeSpec, SWITCH, Timed, View, Waits};
use profiler_common::abi::{CallWeight, ProgramId};

/// The tracepoint by which a thread is ready to run again.
const WAKEUP: &str = "sched_wakeup";

/// The event of samples of what runs.
const SAMPLES: usize = 0;

/// The event of spans: on a CPU, waiting for one, and blocked.
const SPANS: usize = 1;

/// The probe's row.
pub(super) fn spec() -> ProbeSpec {
    let woken = Attachment::follows(ProgramId::Woken, AttachPoint::tracepoint(WAKEUP));
    let switches = Attachment::begins(ProgramId::OffCpu, AttachPoint::tracepoint(SWITCH));
    let samples = Attachment::begins(ProgramId::OnCpu, AttachPoint::PerfEvent);
    let of = |event| {
        move |attachment| Attachment {
            event,
            ..attachment
        }
    };
    let programs = [woken, switches].map(of(SPANS)).into_iter();
    let programs = programs.chain([samples].map(of(SAMPLES))).collect();
    let spec = ProbeSpec::new("span", programs);
    ProbeSpec {
        events: 2,
        timed: Some(Timed {
            weight: CallWeight::Time,
            event: SPANS,
        }),
        view: View::ALL_TIME,
        ..spec.timed(CallWeight::Time).titled("wall")
    }
}

/// How all of the threads' time is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wall {
    /// How waits are shown. All of them are wanted.
    pub waits: Waits,
    /// Whether threads are shown that slept from the beginning to the end.
    pub idle_threads: bool,
}
