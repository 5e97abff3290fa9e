//! A raw recording in windows: what a stretch of time brought is written as soon as it is over.
//!
//! In: the plan of a recording, and its session, window by window. Out: a file that grows, and that is whole after each of
//! them; and at the end what there is to say. Nothing of a window is kept in memory but which stacks the file has.

use super::Recorded;
use crate::kernel::Kernel;
use crate::output::sink::{Growing, Sink};
use crate::pipeline::finish::Report;
use crate::pipeline::naming::{Namer, off_cpu_view, origin};
use crate::pipeline::recording_info::RecordingInfo;
use crate::pipeline::stored::Told;
use crate::plan::{Event, Plan, Target};
use crate::process::Processes;
use crate::profile::normalized::NormalizedProfile;
use crate::profile::raw::Parts;
use crate::profile::{Unit, Window};
use crate::raw_recording::Writer;
use crate::report::balance::{self, Health};
use crate::report::cost::{self, Cost};
use crate::report::findings::{self, Finding};
use crate::report::text::{self, counted};
use crate::report::{stacks, verbose};
use crate::symbolize::{self, Objects};
use anyhow::{Context as _, Result};
use profiler_common::abi::{Class, Counter, Counters, StackEnd};
use std::collections::BTreeMap;
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
    /// The kernel's counters by then.
    counters: Counters,
    /// Of all windows.
    samples: u64,
    waited: u64,
    ends: BTreeMap<StackEnd, u64>,
    fp_fallback: u64,
}

/// What there is to say of a window's stacks.
struct Seen {
    samples: u64,
    waited: u64,
    extent: String,
    ends: BTreeMap<StackEnd, u64>,
    fp_fallback: u64,
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
            written: Written::default(),
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
    pub(crate) fn write(
        &mut self,
        mut normalized: NormalizedProfile,
        objects: &Objects,
        kernel: &mut Kernel,
        processes: &Processes,
        until: Duration,
    ) -> Result<()> {
        let (plan, written) = (self.plan, &mut self.written);
        let event = plan.events.first().context("a plan has an event")?;
        normalized.window = Window {
            start: Duration::ZERO,
            end: until.saturating_sub(written.until),
        };
        let (brought, seen) = Namer {
            plan,
            kernel,
            processes,
            objects,
        }
        .name(event, normalized, |normalized| Seen {
            samples: normalized.total_count(),
            waited: normalized.total_weight(),
            extent: balance::extent(normalized, objects.processes(Parts::ALL)),
            ends: symbolize::stack_ends(normalized),
            fp_fallback: symbolize::fp_fallback(normalized),
        });
        let all = kernel.counters(0);
        let mut counters = all.since(&written.counters);
        // What came since the drain is the next window's.
        counters.counters[Counter::Recorded as usize] = seen.samples;
        let closing = Health {
            subject: &self.title,
            noun: event.probe.noun(),
            waited: is_time(event).then_some(seen.waited),
            counters: &counters,
            extent: &seen.extent,
            ends: &seen.ends,
            fp_fallback: seen.fp_fallback,
            idle_is_offered: plan.target == Target::All,
            remarks: &brought.on_stored,
        }
        .balance()
        .lines();
        let told = Told {
            host: &self.host,
            title: &self.title,
            noun: event.probe.noun(),
            perf_event: event.name(),
            unit: event.unit(),
            origin: origin(event, until),
            off_cpu: off_cpu_view(plan, &event.probe),
        };
        let stored = brought.stored.context("there is no raw recording")?;
        let raw_recording = told.raw_recording(stored, closing);
        let lost = counters.sum(Class::Lost);
        match &mut written.file {
            Some((file, writer)) => file.add(|out| writer.window(&raw_recording, lost, out))?,
            None => {
                let sink = self.sinks.first().context("there is an output")?;
                written.file = Some(sink.grow(|out| {
                    let mut writer = Writer::begin(&raw_recording.facts, out)?;
                    writer.window(&raw_recording, lost, out)?;
                    Ok(writer)
                })?);
            }
        }
        written.windows += 1;
        written.until = until;
        written.counters = all;
        written.samples += seen.samples;
        written.waited = written.waited.saturating_add(seen.waited);
        written.fp_fallback += seen.fp_fallback;
        for (end, count) in seen.ends {
            *written.ends.entry(end).or_default() += count;
        }
        Ok(())
    }
}

/// Writes the last window, and ends the file.
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
    let until = recording_info.elapsed;
    windows.write(normalized, &objects, &mut kernel, &processes, until)?;
    for sentence in loaded.iter().flat_map(stacks::on_tables) {
        recording_info.remark(sentence);
    }
    let event = plan.events.first().context("a plan has an event")?;
    let Written {
        file,
        windows: count,
        samples,
        waited,
        ends,
        fp_fallback,
        ..
    } = windows.written;
    let mut counters = kernel.counters(0);
    counters.counters[Counter::Recorded as usize] = samples;
    let (mut file, writer) = file.context("a window was written")?;
    let extent = format!(
        "{}, {} bytes",
        counted(count, "window"),
        text::grouped(file.bytes())
    );
    let remarks = [&*recording_info.remarks, &*recording_info.of_waits].concat();
    let closing = Health {
        subject: &recording_info.title(plan, event),
        noun: event.probe.noun(),
        waited: is_time(event).then_some(waited),
        counters: &counters,
        extent: &extent,
        ends: &ends,
        fp_fallback,
        idle_is_offered: plan.target == Target::All,
        remarks: &remarks,
    }
    .balance();
    file.add(|out| writer.end(closing.lines(), out))?;
    let mut text = String::new();
    if plan.verbosity.verbose > 0 {
        text.extend(loaded.as_ref().map(verbose::tables));
        text.push_str(&verbose::counters(&counters, ""));
    }
    if !plan.verbosity.quiet || counters.sum(Class::Lost) > 0 {
        text.push_str(&closing.shown());
    }
    if !plan.verbosity.quiet {
        let tables = loaded.map_or(0, |loaded| loaded.bytes);
        let cost = Cost::now(kernel.map_bytes() + tables);
        let mut findings = vec![cost::cost(&[counters], &cost)];
        let names = sinks.iter().map(|sink| sink.name().display().to_string());
        findings.extend(names.map(|name| Finding::new("wrote", name)));
        text.push_str(&findings::shown(&findings));
    }
    Ok(Report {
        text,
        wrote: samples > 0,
    })
}

fn is_time(event: &Event) -> bool {
    event.unit() == Unit::Nanoseconds
}
