//! Sink of a recording whose windows are written as soon as they are over.
//!
//! In: windows. Out: a raw recording for each event, which grows, and is whole after each of them. Nothing of a window
//! is kept in memory but names, and which stacks its file has.

use crate::output::sink::{Growing, Sink};
use crate::pipeline::facts;
use crate::pipeline::normalize::EventProfile;
use crate::pipeline::recording_info::RecordingInfo;
use crate::pipeline::timeline;
use crate::pipeline::window::{Ended, Report, WindowProfile, WindowSink};
use crate::pipeline::write;
use crate::plan::Plan;
use crate::raw_recording::Writer;
use crate::symbolize::NameCache;
use crate::text::number::{counted, grouped};
use anyhow::{Context as _, Result};
use std::time::Duration;

/// The raw recordings of a plan, one for each event.
pub(crate) struct GrowingFiles {
    length: Duration,
    host: String,
    files: Vec<GrowingFile>,
    names: NameCache,
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
            names: NameCache::default(),
            busy_ns: timeline::busy_ns(),
        }
    }
}

impl WindowSink for GrowingFiles {
    fn length(&self) -> Option<Duration> {
        Some(self.length)
    }

    fn window(&mut self, window: &mut WindowProfile<'_>) -> Result<()> {
        let busy_ns = timeline::busy_ns();
        let busy = busy_ns.saturating_sub(std::mem::replace(&mut self.busy_ns, busy_ns));
        self.names.begin_window();
        for profile in std::mem::take(&mut window.events) {
            let file = &mut self.files[profile.number];
            file.window(profile, window, (&self.host, &self.names), busy)?;
        }
        Ok(())
    }

    fn names(&self) -> Option<&NameCache> {
        Some(&self.names)
    }

    fn end(mut self: Box<Self>, mut ended: Ended<'_>) -> Result<Report> {
        self.window(&mut ended.last)?;
        let windows = counted(ended.last.number, "window");
        let mut report = Report::default();
        for (mut all, grown) in ended.events().into_iter().zip(self.files) {
            let (mut file, writer) = grown.begun.context("a window was written")?;
            all.extent = format!("{windows}, {} bytes", grouped(file.bytes()));
            all.count_drained();
            let summary = ended.summary(&all, &mut report);
            file.add(|out| writer.end(summary.lines(), out))?;
            report.wrote |= all.stacks.firings > 0;
            report.files.push(write::name(&grown.sink));
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
        (host, names): (&str, &NameCache),
        busy_ns: u64,
    ) -> Result<()> {
        profile.count_drained();
        let (plan, event) = (window.plan, profile.event);
        let normalized = std::mem::take(&mut profile.normalized);
        let totals = timeline::totals(normalized.window, profile.counted(), busy_ns);
        let symbolized = window.symbolized(event, normalized, Some(names));
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
