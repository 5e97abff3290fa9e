//! Conducts a recording in windows: what a stretch of time brought is written as soon as it is over.
//!
//! In: the plan of a recording, and its session, window by window. Out: a file that grows, and that is whole after each of
//! them; and at the end what there is to say. Nothing of a window is kept in memory but which stacks the file has.

use super::Recorded;
use crate::kernel::Kernel;
use crate::output::sink::{Growing, Sink};
use crate::pipeline::closing::{self, Report};
use crate::pipeline::facts;
use crate::pipeline::normalize::{self, EventProfile};
use crate::pipeline::recording_info::RecordingInfo;
use crate::pipeline::symbolize::{Code, Symbolizer};
use crate::pipeline::timeline;
use crate::pipeline::write;
use crate::plan::Plan;
use crate::profile::Window;
use crate::profile::normalized::NormalizedProfile;
use crate::raw_recording::Writer;
use crate::report::stack_counts::StackCounts;
use crate::report::{stacks, verbose};
use crate::text::number::{counted, grouped};
use anyhow::{Context as _, Result};
use profiler_common::abi::{Class, Counter, Counters};
use std::time::Duration;

/// The windows of a recording that is under way.
pub(crate) struct Windows<'a> {
    plan: &'a Plan,
    sinks: &'a [Sink],
    length: Duration,
    title: String,
    host: String,
    written: Written,
}

/// What was written so far.
#[derive(Default)]
pub(crate) struct Written {
    file: Option<(Growing, Writer)>,
    windows: u64,
    /// When the last of them ended, from the beginning on.
    until: Duration,
    /// How long all CPUs had been busy by then.
    busy_ns: u64,
    /// The kernel's counters by then.
    counters: Counters,
    /// Of all windows.
    stacks: StackCounts,
}

impl<'a> Windows<'a> {
    /// Those of a plan, if it has any. Nothing is written yet.
    pub(crate) fn of(
        plan: &'a Plan,
        recording_info: &RecordingInfo,
        sinks: &'a [Sink],
    ) -> Option<Self> {
        let length = plan.window?;
        let event = plan.events.first()?;
        let title =
            (plan.title.clone()).unwrap_or_else(|| recording_info.timeless_title(plan, event));
        Some(Self {
            plan,
            sinks,
            length,
            title,
            host: recording_info.host.clone(),
            written: Written {
                busy_ns: timeline::busy_ns(),
                ..Written::default()
            },
        })
    }

    /// Whether a window is over when the recording has lasted so long.
    pub(crate) fn is_over(&self, elapsed: Duration) -> bool {
        elapsed >= self.written.until + self.length
    }

    /// What was written, for when the recording has ended.
    pub(crate) fn written(self) -> Written {
        self.written
    }

    /// Writes the window that ends now: `until` from the recording's beginning.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(
        &mut self,
        mut normalized: NormalizedProfile,
        code: Code<'_>,
        kernel: &mut Kernel,
        until: Duration,
    ) -> Result<()> {
        let (plan, written) = (self.plan, &mut self.written);
        let window = Window {
            start: Duration::ZERO,
            end: until.saturating_sub(written.until),
        };
        normalized.window = window;
        let symbolizer = Symbolizer::new(&plan.naming, &plan.servers, plan.verbosity.quiet);
        let names = symbolizer.kernel(&normalized, kernel);
        let all = kernel.counters(0);
        let counters = [all.since(&written.counters)];
        let known = (code.objects, &names.symbols);
        let events = normalize::by_event(plan, normalized, known, &counters);
        let mut profile = events.into_iter().next().context("a plan has an event")?;
        // What came since the drain is the next window's.
        profile.counters[0].counters[Counter::Recorded as usize] = profile.stacks.firings;
        let (event, normalized) = (profile.event, std::mem::take(&mut profile.normalized));
        let symbolized = symbolizer.event(event, normalized, code, &names);
        let closing = profile.balance(plan, &self.title, &symbolized.on_stored);
        let stored = symbolized.stored.context("there is no raw recording")?;
        let told = (&*self.host, &*self.title);
        let raw_recording = facts::raw_recording(plan, event, told, stored, closing.lines());
        let busy_ns = timeline::busy_ns();
        let busy = busy_ns.saturating_sub(std::mem::replace(&mut written.busy_ns, busy_ns));
        let totals = timeline::totals(window, profile.counted(), busy);
        match &mut written.file {
            Some((file, writer)) => file.add(|out| writer.window(&raw_recording, &totals, out))?,
            None => {
                let sink = self.sinks.first().context("there is an output")?;
                written.file = Some(sink.grow(|out| {
                    let mut writer = Writer::begin(&raw_recording.facts, out)?;
                    writer.window(&raw_recording, &totals, out)?;
                    Ok(writer)
                })?);
            }
        }
        written.windows += 1;
        written.until = until;
        written.counters = all;
        written.stacks.add(profile.stacks);
        Ok(())
    }
}

/// Writes the last window, and ends the file.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn finish(
    recorded: Recorded,
    plan: &Plan,
    mut recording_info: RecordingInfo,
    sinks: &[Sink],
    written: Written,
) -> Result<Report> {
    let Recorded {
        mut kernel,
        processes,
        normalized,
        objects,
        loaded,
        ..
    } = recorded;
    let mut windows = Windows::of(plan, &recording_info, sinks).context("a plan has windows")?;
    windows.written = written;
    let code = Code {
        processes: &processes,
        objects: &objects,
    };
    windows.write(normalized, code, &mut kernel, recording_info.elapsed)?;
    for sentence in loaded.iter().flat_map(stacks::on_tables) {
        recording_info.remark(sentence);
    }
    let event = plan.events.first().context("a plan has an event")?;
    let Written {
        file,
        windows: count,
        stacks,
        ..
    } = windows.written;
    let (mut file, writer) = file.context("a window was written")?;
    let mut counters = kernel.counters(0);
    counters.counters[Counter::Recorded as usize] = stacks.firings;
    let wrote = stacks.firings > 0;
    let extent = format!(
        "{}, {} bytes",
        counted(count, "window"),
        grouped(file.bytes())
    );
    let all = EventProfile {
        number: 0,
        event,
        normalized: NormalizedProfile::default(),
        stacks,
        extent,
        counters: vec![counters],
        remarks: [recording_info.remarks.as_slice(), &recording_info.of_waits].concat(),
    };
    let summary = all.balance(plan, &recording_info.title(plan, event), &all.remarks);
    file.add(|out| writer.end(summary.lines(), out))?;
    let mut text = String::new();
    if plan.verbosity.verbose > 0 {
        text.extend(loaded.as_ref().map(verbose::tables));
        text.push_str(&verbose::counters(&counters, ""));
    }
    if !plan.verbosity.quiet || counters.sum(Class::Lost) > 0 {
        text.push_str(&summary.shown());
    }
    if !plan.verbosity.quiet {
        let files = sinks.iter().map(write::name).collect();
        let loaded = loaded.as_ref();
        text.push_str(&closing::closing(&kernel, loaded, &[counters], files));
    }
    Ok(Report { text, wrote })
}
