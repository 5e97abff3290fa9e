//! Sink of a recording whose windows are written as soon as they are over.
//!
//! In: windows. Out: a raw recording for each event, which grows, and is whole after each of them. Nothing of a window is kept
//! in memory but which stacks its file has.

use crate::output::sink::{Growing, Sink};
use crate::pipeline::facts;
use crate::pipeline::normalize::EventProfile;
use crate::pipeline::recording_info::RecordingInfo;
use crate::pipeline::timeline;
use crate::pipeline::window::{Ended, Report, WindowProfile, WindowSink};
use crate::pipeline::write;
use crate::plan::Plan;
use crate::raw_recording::Writer;
use crate::text::number::{counted, grouped};
use anyhow::{Context as _, Result};
use std::time::Duration;

/// The raw recordings of a plan, one for each event.
pub(crate) struct GrowingFiles {
    length: Duration,
    host: String,
    files: Vec<GrowingFile>,
    /// How long all CPUs had been busy when the last window ended.
    busy_ns: u64,
}

struct GrowingFile {
    sink: Sink,
    title: String,
    /// None before the first window.
    begun: Option<(Growing, Writer)>,
}

impl GrowingFiles {
    /// Those of a plan whose windows are so long. Nothing is written yet.
    pub(crate) fn new(
        length: Duration,
        plan: &Plan,
        recording_info: &RecordingInfo,
        sinks: Vec<Sink>,
    ) -> Self {
        let files = plan
            .events
            .iter()
            .zip(sinks)
            .map(|(event, sink)| GrowingFile {
                sink,
                title: recording_info.timeless_title(plan, event),
                begun: None,
            });
        Self {
            length,
            host: recording_info.host.clone(),
            files: files.collect(),
            busy_ns: timeline::busy_ns(),
        }
    }
}

impl WindowSink for GrowingFiles {
    fn length(&self) -> Option<Duration> {
        Some(self.length)
    }

    fn window(&mut self, mut window: WindowProfile<'_>) -> Result<()> {
        let busy_ns = timeline::busy_ns();
        let busy = busy_ns.saturating_sub(std::mem::replace(&mut self.busy_ns, busy_ns));
        for profile in std::mem::take(&mut window.events) {
            let file = &mut self.files[profile.number];
            file.window(profile, &window, &self.host, busy)?;
        }
        Ok(())
    }

    fn end(mut self: Box<Self>, last: WindowProfile<'_>, ended: Ended<'_>) -> Result<Report> {
        self.window(last)?;
        let (plan, recording_info) = (ended.plan, &ended.recording_info);
        let windows = counted(ended.windows, "window");
        let bytes =
            |number: usize| (self.files[number].begun.as_ref()).map_or(0, |(file, _)| file.bytes());
        let extent = |number| format!("{windows}, {} bytes", grouped(bytes(number)));
        let mut report = Report {
            text: String::new(),
            wrote: false,
            files: (self.files.iter())
                .map(|file| write::name(&file.sink))
                .collect(),
        };
        let events = ended.events(extent);
        for (mut all, file) in events.into_iter().zip(self.files) {
            all.count_drained();
            let title = recording_info.title(plan, all.event);
            let summary = all.balance(plan, &title, &all.remarks);
            let (mut file, writer) = file.begun.context("a window was written")?;
            file.add(|out| writer.end(summary.lines(), out))?;
            report.wrote |= all.stacks.firings > 0;
            report.text.push_str(&all.details(plan));
            report.text.push_str(&all.shown(plan, &summary));
        }
        Ok(report)
    }
}

impl GrowingFile {
    /// Writes an event's part of a window, during which all CPUs were busy for so long.
    fn window(
        &mut self,
        mut profile: EventProfile<'_>,
        window: &WindowProfile<'_>,
        host: &str,
        busy_ns: u64,
    ) -> Result<()> {
        profile.count_drained();
        let (plan, event) = (window.plan, profile.event);
        let normalized = std::mem::take(&mut profile.normalized);
        let totals = timeline::totals(normalized.window, profile.counted(), busy_ns);
        let symbolized =
            (window.symbolizer).event(event, normalized, window.code(), &window.kernel);
        let closing = profile.balance(plan, &self.title, &symbolized.on_stored);
        let stored = symbolized.stored.context("there is no raw recording")?;
        let told = (host, &*self.title);
        let raw_recording = facts::raw_recording(plan, event, told, stored, closing.lines());
        match &mut self.begun {
            Some((file, writer)) => file.add(|out| writer.window(&raw_recording, &totals, out))?,
            None => {
                self.begun = Some(self.sink.grow(|out| {
                    let mut writer = Writer::begin(&raw_recording.facts, out)?;
                    writer.window(&raw_recording, &totals, out)?;
                    Ok(writer)
                })?);
            }
        }
        Ok(())
    }
}
