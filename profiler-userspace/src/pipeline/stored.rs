//! A recording as a raw one.
//!
//! In: what a session normalized, and the facts. Out: an [`RawRecording`] that lacks but its closing.

use crate::profile::OffCpuView;
use crate::profile::{Origin, Unit};
use crate::raw_recording::{Facts, RawRecording};
use crate::symbolize::Stored;
use std::time::SystemTime;

/// What is known when a recording has ended.
pub(crate) struct Told<'a> {
    pub(crate) host: &'a str,
    pub(crate) title: &'a str,
    pub(crate) noun: &'a str,
    pub(crate) perf_event: String,
    pub(crate) unit: Unit,
    pub(crate) origin: Origin,
    pub(crate) off_cpu: Option<OffCpuView>,
}

impl Told<'_> {
    /// A raw recording of what was stored.
    pub(crate) fn raw_recording(self, stored: Stored, closing: String) -> RawRecording {
        let machine = rustix::system::uname();
        let now = SystemTime::now();
        let elapsed = stored.normalized.window.end;
        RawRecording {
            facts: Facts {
                writer: concat!("flame-bpf ", env!("CARGO_PKG_VERSION")).to_owned(),
                title: self.title.to_owned(),
                noun: self.noun.to_owned(),
                event: self.perf_event,
                unit: self.unit,
                host: self.host.to_owned(),
                kernel: machine.release().to_string_lossy().into_owned(),
                command_line: std::env::args_os().collect(),
                started: now.checked_sub(elapsed).unwrap_or(now),
                period_ns: self.origin.period_ns,
                activity: self.origin.activity,
                off_cpu: self.off_cpu,
            },
            normalized: stored.normalized,
            objects: stored.objects,
            closing: Some(closing),
        }
    }
}
