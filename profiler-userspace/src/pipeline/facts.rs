//! Facts that a raw recording begins with.
//!
//! In: the plan of a recording, and what turned out. Out: a [`RawRecording`] of what was kept of a window.

use crate::plan::{Event, Plan};
use crate::profile::{Machine, Origin};
use crate::raw_recording::{Facts, RawRecording};
use crate::symbolize::{self, RecordingContents};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where the samples of an event come from, the first of which could have been taken that long ago.
pub(crate) fn origin(event: &Event, host: &str, elapsed: Duration) -> Origin {
    let kernel = rustix::system::uname();
    Origin {
        event: Some(event.name().into()),
        machine: Some(Arc::new(Machine {
            host: host.to_owned(),
            kernel: kernel.release().to_string_lossy().into_owned(),
            kernel_build_id: symbolize::running_kernel()
                .map(|id| id.bytes().into())
                .unwrap_or_default(),
        })),
        started: SystemTime::now().checked_sub(elapsed),
        period_ns: event.period_ns(),
        activity: event.probe.view().activity,
    }
}

/// A raw recording of what was kept of an event in a window that ends now, with what is said at its end.
pub(crate) fn raw_recording(
    plan: &Plan,
    event: &Event,
    (host, title): (&str, &str),
    stored: RecordingContents,
    closing: String,
) -> RawRecording {
    let origin = origin(event, host, stored.normalized.window.end);
    let machine = origin.machine.map(Arc::unwrap_or_clone).unwrap_or_default();
    RawRecording {
        facts: Facts {
            writer: concat!("flame-bpf ", env!("CARGO_PKG_VERSION")).to_owned(),
            title: title.to_owned(),
            noun: event.probe.noun().to_owned(),
            event: event.name(),
            unit: event.unit(),
            host: host.to_owned(),
            kernel: machine.kernel,
            kernel_build_id: machine.kernel_build_id,
            command_line: std::env::args_os().collect(),
            started: origin.started.unwrap_or_else(SystemTime::now),
            period_ns: origin.period_ns,
            activity: origin.activity,
            off_cpu: event.probe.off_cpu_view(plan.capture.kernel_stacks),
        },
        normalized: stored.normalized,
        objects: stored.objects,
        closing: Some(closing),
    }
}
