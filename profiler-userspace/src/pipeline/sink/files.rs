//! Sink of a recording whose outputs are written at its end: it is one window, and each event has outputs of its own.
//!
//! In: the one window. Out: files, and what there is to say of each event.

use super::shared::Shared;
use crate::output::sink::{Delivery, Sink};
use crate::output::{self, Section, Style, TextStyle};
use crate::pipeline::facts;
use crate::pipeline::normalize::{self, EventProfile};
use crate::pipeline::recording_info::{RecordingInfo, Stop};
use crate::pipeline::select::select;
use crate::pipeline::source;
use crate::pipeline::symbolize::SymbolizedEvent;
use crate::pipeline::view::{style, viewed};
use crate::pipeline::window::{Ended, Report, WindowProfile, WindowSink};
use crate::pipeline::write::{self, write, write_raw_recordings};
use crate::plan::{Event, Output, Plan};
use crate::probe::Probe;
use crate::profile::Profile;
use crate::report::findings::{self, Finding};
use crate::report::nothing::Nothing;
use crate::report::{interference, names, verbose};
use crate::symbolize::{self, NameCache};
use crate::targets::tasks;
use anyhow::{Context as _, Result};
use std::time::Duration;

/// The outputs of a plan, one event after the other.
pub(crate) struct Files {
    pub(crate) sinks: Vec<Sink>,
    /// Where source to show is looked for.
    pub(crate) source: source::Directories,
}

impl WindowSink for Files {
    fn length(&self) -> Option<Duration> {
        None
    }

    fn window(&mut self, _: &mut WindowProfile<'_>) -> Result<()> {
        anyhow::bail!("the whole recording is one window")
    }

    fn end(self: Box<Self>, mut ended: Ended<'_>) -> Result<Report> {
        let plan = ended.last.plan;
        let mut events = std::mem::take(&mut ended.last.events);
        if let Some(timeline) = &ended.timeline {
            normalize::divide(plan, &mut events, timeline);
        }
        let mut finishing = Finishing {
            plan,
            names: (plan.events.len() > 1).then(NameCache::default),
            ended: &ended,
            report: Report::default(),
            page: Vec::new(),
            shared: Shared::default(),
            directories: &self.source,
        };
        let mut sinks = self.sinks.as_slice();
        for profile in events {
            let (own, others) = sinks.split_at(profile.event.outputs.len());
            sinks = others;
            finishing.finish(profile, own)?;
        }
        finishing.write_page(&self.sinks)?;
        let Finishing {
            mut report, shared, ..
        } = finishing;
        report.files.extend(shared.write()?);
        Ok(report)
    }
}

/// So many functions a recording on a terminal ends with.
const HOTTEST: usize = 10;

/// All that finishing needs, and what there is to say so far.
struct Finishing<'a> {
    plan: &'a Plan,
    /// None where one event alone asks.
    names: Option<NameCache>,
    ended: &'a Ended<'a>,
    report: Report,
    /// Sections of the page that several events share.
    page: Vec<(Section, Style)>,
    /// Those that are to be written at the end.
    shared: Shared<'a>,
    directories: &'a source::Directories,
}

impl<'a> Finishing<'a> {
    /// Names and writes what one event brought.
    fn finish(&mut self, mut profile: EventProfile<'a>, sinks: &'a [Sink]) -> Result<()> {
        let (recording_info, began) = (&self.ended.recording_info, self.ended.began);
        let begun = began.elapsed();
        let (plan, verbosity, event) = (self.plan, self.plan.verbosity, profile.event);
        let remarks = self.remarks(&profile);
        let normalized = std::mem::take(&mut profile.normalized);
        let cut_short = (verbosity.verbose > 0).then(|| {
            let last = &self.ended.last;
            let (objects, processes) = (&last.objects, last.processes);
            symbolize::cut_short(&normalized, objects, processes, verbosity.verbose > 1)
        });
        let SymbolizedEvent {
            profile: symbolized,
            stored,
            on_profile,
            on_stored,
        } = self
            .ended
            .last
            .symbolized(event, normalized, self.names.as_ref());
        let named = began.elapsed();
        let default_title = recording_info.title(plan, event);
        let title = match &plan.title {
            Some(title) if profile.is_the_subject(plan) => title.clone(),
            Some(title) => format!("{title} ({})", event.name()),
            None => default_title.clone(),
        };
        let balance = |names: &[Finding]| {
            let remarks = [remarks.as_slice(), names].concat();
            profile.balance(plan, &default_title, &remarks)
        };
        let raw_recording = stored.map(|stored| {
            let told = (&*recording_info.host, &*title);
            facts::raw_recording(plan, event, told, stored, balance(&on_stored).lines())
        });
        let mut summary = balance(match symbolized {
            Some(_) => &on_profile,
            None => &on_stored,
        });
        self.report.text.push_str(&profile.details(plan));
        self.report
            .text
            .extend(cut_short.as_ref().map(verbose::cut_short));
        if profile.stacks.samples == 0 {
            let remarks = [remarks, on_profile].concat();
            self.report.text.push_str(&self.nothing(&profile, &remarks));
            return Ok(());
        }
        let origin = facts::origin(event, &recording_info.host, recording_info.elapsed);
        let off_cpu = event.probe.off_cpu_view(plan.capture.kernel_stacks);
        let shown = symbolized.map(|symbolized| {
            let mut shown = viewed(symbolized, origin, off_cpu);
            shown.label_frames = plan.capture.label_frames;
            if let Some(part) = plan.capture.root_per {
                shown.root_per(part);
            }
            shown
        });
        let raw_recording = raw_recording.as_ref();
        let places = sinks.iter().zip(&event.outputs);
        let (shared, own): (Vec<_>, Vec<_>) =
            places.partition(|(_, output)| plan.is_shared(output));
        let shown = match shown
            .map(|shown| select(shown, &plan.selection))
            .transpose()
        {
            Ok(selected) => selected.map(|(shown, left_out)| {
                summary.findings.extend(left_out);
                shown
            }),
            Err(error) => {
                // A wrong pattern does not lose what was recorded.
                write_raw_recordings(&own, raw_recording)?;
                return Err(error);
            }
        };
        let source = shown.as_ref().map(|shown| self.directories.find(shown));
        let source = source.unwrap_or_default();
        summary.findings.extend(source.finding);
        let asked = Style {
            source: source.text,
            ..plan.style.clone()
        };
        let style = match &shown {
            Some(shown) => style(&asked, plan.colors, (title, summary.lines()), shown),
            None => asked,
        };
        let hottest = shown
            .as_ref()
            .filter(|_| !verbosity.quiet)
            .and_then(hottest);
        if let Some(shown) = shown.as_ref().filter(|_| is_on_page(event)) {
            let section = Section {
                name: event.name(),
                profile: shown.clone(),
            };
            self.page.push((section, style.clone()));
        }
        for place in shared {
            let shown = shown.as_ref().context("there is a profile")?;
            self.shared.add(place, &event.name(), shown, &style)?;
        }
        self.report
            .files
            .extend(write(&own, shown, &style, raw_recording)?);
        if verbosity.verbose > 0 {
            self.report.text.push_str(&format!(
                "time: drained in {:.1} ms, named in {:.1} ms, written in {:.1} ms\n",
                milliseconds(self.ended.drained),
                milliseconds(named - begun),
                milliseconds(began.elapsed() - named),
            ));
        }
        if profile.is_told(plan) {
            self.report.summaries.push(summary);
        }
        self.report.hottest.extend(hottest);
        self.report.wrote = true;
        Ok(())
    }

    /// Writes the page that several events share, if one is asked for.
    fn write_page(&mut self, sinks: &[Sink]) -> Result<()> {
        let outputs = self.plan.all_outputs().zip(sinks);
        let is_page = |(output, _): &(&Output, _)| matches!(output, Output::SharedPage { .. });
        let place = outputs.into_iter().find(is_page);
        let Some((_, sink)) = place.filter(|_| !self.page.is_empty()) else {
            return Ok(());
        };
        let sections = std::mem::take(&mut self.page);
        if sink.deliver(|out| output::write_page(&sections, out))? == Delivery::Complete {
            self.report.files.push(write::name(sink));
        }
        Ok(())
    }

    /// Remarks on an event beside names.
    fn remarks(&self, profile: &EventProfile<'_>) -> Vec<Finding> {
        let (number, event) = (profile.number, profile.event);
        let (recording_info, counters) = (&self.ended.recording_info, &self.ended.last.counters);
        let all = [
            profile.remarks.clone(),
            recording_info.remarks_on(number, event),
        ];
        let RecordingInfo { elapsed, cpus, .. } = *recording_info;
        let watched = (elapsed, cpus);
        let unseen = interference::within_others(&self.plan.events, number, counters, watched);
        let on_switches = match &event.probe {
            Probe::OffCpu(waits) if !event.varies => {
                names::on_switches(waits, profile.counted(), elapsed)
            }
            _ => None,
        };
        let all = all.into_iter().flatten();
        all.chain(unseen).chain(on_switches).collect()
    }

    /// Why there is not one sample.
    fn nothing(&self, profile: &EventProfile<'_>, remarks: &[Finding]) -> String {
        let recording_info = &self.ended.recording_info;
        let cpu_time = tasks::cpu_time(tasks::ids(&self.plan.target));
        let nothing = Nothing {
            plan: self.plan,
            event: profile.event,
            elapsed: recording_info.elapsed,
            cpu_time: cpu_time.saturating_sub(recording_info.cpu_before),
            target_ended: recording_info.stop == Stop::TargetEnded,
            counters: profile.counted(),
            remarks,
        };
        nothing.sentence()
    }
}

fn is_on_page(event: &Event) -> bool {
    let mut outputs = event.outputs.iter();
    outputs.any(|output| matches!(output, Output::SharedPage { .. }))
}

/// The functions that most time was spent in, for a terminal; nothing elsewhere.
fn hottest(profile: &Profile) -> Option<String> {
    let columns = findings::terminal_columns()?;
    let style = TextStyle {
        columns,
        ..TextStyle::default()
    };
    Some(output::hottest(profile, &style, HOTTEST))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
