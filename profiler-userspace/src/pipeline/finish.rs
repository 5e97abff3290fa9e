//! Conducts the end of a recording: all that was recorded is one window, and each event has outputs of its own.
//!
//! In: a recording that has ended. Out: files, and the closing paragraphs.

use super::Recorded;
use crate::output::sink::{Delivery, Sink};
use crate::output::{self, Section, Style, TextStyle, length};
use crate::pipeline::closing::{self, Report};
use crate::pipeline::facts;
use crate::pipeline::normalize::{self, EventProfile};
use crate::pipeline::recording_info::{RecordingInfo, Stop};
use crate::pipeline::select::select;
use crate::pipeline::shared::Shared;
use crate::pipeline::symbolize::{Code, KernelAnswer, SymbolizedEvent, Symbolizer};
use crate::pipeline::view::{style, viewed};
use crate::pipeline::write::{self, write, write_raw_recordings};
use crate::plan::{Event, Output, Plan};
use crate::probe::Probe;
use crate::profile::{Profile, Window};
use crate::report::findings::{self, Finding};
use crate::report::nothing::Nothing;
use crate::report::{interference, names, stacks, verbose};
use crate::symbolize;
use crate::targets::tasks;
use anyhow::{Context as _, Result};
use profiler_common::abi::{Class, Counters};
use std::time::{Duration, Instant};

/// Symbolizes and writes what was recorded.
///
/// # Errors
/// When an output cannot be written.
pub(crate) fn finish(
    recorded: Recorded,
    plan: &Plan,
    mut recording_info: RecordingInfo,
    sinks: &[Sink],
) -> Result<Report> {
    let Recorded {
        began,
        mut kernel,
        processes,
        mut normalized,
        objects,
        timeline,
        loaded,
    } = recorded;
    let drained = began.elapsed();
    normalized.window = Window {
        start: Duration::ZERO,
        end: recording_info.elapsed,
    };
    if recording_info.stop == Stop::TargetEnded {
        recording_info.remark(Finding::note(format!(
            "the target ended after {:.1} s",
            recording_info.elapsed.as_secs_f64()
        )));
    }
    if let (Some(timeline), Some(asked)) = (&timeline, plan.resolution)
        && timeline.length() > asked
    {
        recording_info.remark(Finding::note(format!(
            "windows are of {}, not of {}: there would be too many; record for a shorter time, or less at once",
            length(timeline.length()),
            length(asked)
        )));
    }
    for sentence in loaded.iter().flat_map(stacks::on_tables) {
        recording_info.remark(sentence);
    }
    let verbosity = plan.verbosity;
    let symbolizer = Symbolizer::new(&plan.naming, &plan.servers, verbosity.quiet);
    let names = symbolizer.kernel(&normalized, &mut kernel);
    let counters = closing::counters(&kernel);
    let known = (&objects, &names.symbols);
    let mut events = normalize::by_event(plan, normalized, known, &counters);
    if let Some(timeline) = &timeline {
        normalize::divide(plan, &mut events, timeline);
    }
    let mut finishing = Finishing {
        plan,
        recording_info,
        symbolizer,
        code: Code {
            processes: &processes,
            objects: &objects,
        },
        kernel: names,
        counters: &counters,
        began,
        drained,
        text: String::new(),
        files: Vec::new(),
        page: Vec::new(),
        shared: Shared::default(),
    };
    if let Some(loaded) = loaded.as_ref().filter(|_| verbosity.verbose > 0) {
        finishing.text.push_str(&verbose::tables(loaded));
    }
    let all_sinks = sinks;
    let mut sinks = sinks;
    let mut wrote = false;
    for profile in events {
        let (own, others) = sinks.split_at(profile.event.outputs.len());
        sinks = others;
        wrote |= finishing.finish(profile, own)?;
    }
    finishing.write_page(all_sinks)?;
    let Finishing {
        mut text,
        mut files,
        shared,
        ..
    } = finishing;
    files.extend(shared.write()?);
    if wrote && !verbosity.quiet {
        let loaded = loaded.as_ref();
        text.push_str(&closing::closing(&kernel, loaded, &counters, files));
    }
    Ok(Report { text, wrote })
}

/// So many functions a recording on a terminal ends with.
const HOTTEST: usize = 10;

/// All that finishing needs, and what there is to say so far.
struct Finishing<'a> {
    plan: &'a Plan,
    recording_info: RecordingInfo,
    symbolizer: Symbolizer<'a>,
    code: Code<'a>,
    kernel: KernelAnswer,
    /// Of all of the kernel half's events.
    counters: &'a [Counters],
    began: Instant,
    /// When there was something to name, from then on.
    drained: Duration,
    text: String,
    /// Files that were written.
    files: Vec<String>,
    /// What goes on the page that several events share.
    page: Vec<(Section, Style)>,
    /// Those that are to be written at the end.
    shared: Shared<'a>,
}

impl<'a> Finishing<'a> {
    /// Names and writes what one event brought. Says whether there was anything.
    fn finish(&mut self, mut profile: EventProfile<'a>, sinks: &'a [Sink]) -> Result<bool> {
        let begun = self.began.elapsed();
        let (plan, verbosity, event) = (self.plan, self.plan.verbosity, profile.event);
        let remarks = self.remarks(&profile);
        let is_the_subject = profile.number == 0 && plan.has_one_subject();
        let normalized = std::mem::take(&mut profile.normalized);
        let cut_short = (verbosity.verbose > 0).then(|| {
            let Code { processes, objects } = self.code;
            symbolize::cut_short(&normalized, objects, processes, verbosity.verbose > 1)
        });
        let SymbolizedEvent {
            profile: symbolized,
            stored,
            on_profile,
            on_stored,
        } = (self.symbolizer).event(event, normalized, self.code, &self.kernel);
        let named = self.began.elapsed();
        let default_title = self.recording_info.title(plan, event);
        let title = match &plan.title {
            Some(title) if is_the_subject => title.clone(),
            Some(title) => format!("{title} ({})", event.name()),
            None => default_title.clone(),
        };
        let balance = |names: &[Finding]| {
            let remarks = [remarks.as_slice(), names].concat();
            profile.balance(plan, &default_title, &remarks)
        };
        let raw_recording = stored.map(|stored| {
            let told = (&*self.recording_info.host, &*title);
            facts::raw_recording(plan, event, told, stored, balance(&on_stored).lines())
        });
        let mut summary = balance(match symbolized {
            Some(_) => &on_profile,
            None => &on_stored,
        });
        if verbosity.verbose > 0 {
            self.print_counters(&profile, is_the_subject);
            self.text.extend(cut_short.as_ref().map(verbose::cut_short));
        }
        if profile.stacks.samples == 0 {
            let remarks = [remarks, on_profile].concat();
            self.text.push_str(&self.nothing(&profile, &remarks));
            return Ok(false);
        }
        let origin = facts::origin(event, self.recording_info.elapsed);
        let off_cpu = event.probe.off_cpu_view(plan.capture.kernel_stacks);
        let shown = symbolized.map(|symbolized| {
            let mut shown = viewed(symbolized, origin, off_cpu);
            shown.label_frames = plan.capture.label_frames;
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
                // What was recorded is not lost by a pattern that is wrong.
                write_raw_recordings(&own, raw_recording)?;
                return Err(error);
            }
        };
        let style = match &shown {
            Some(shown) => style(&plan.style, plan.colors, (title, summary.lines()), shown),
            None => plan.style.clone(),
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
        self.files
            .extend(write(&own, shown, &style, raw_recording)?);
        if verbosity.verbose > 0 {
            self.text.push_str(&format!(
                "time: drained in {:.1} ms, named in {:.1} ms, written in {:.1} ms\n",
                milliseconds(self.drained),
                milliseconds(named - begun),
                milliseconds(self.began.elapsed() - named),
            ));
        }
        if !verbosity.quiet || profile.counted().sum(Class::Lost) > 0 {
            self.text.push_str(&summary.shown());
        }
        self.text.extend(hottest);
        Ok(true)
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
            self.files.push(write::name(sink));
        }
        Ok(())
    }

    /// What there is to remark on an event beside names.
    fn remarks(&self, profile: &EventProfile<'_>) -> Vec<Finding> {
        let (number, event) = (profile.number, profile.event);
        let of_waits = event.probe.waits().map(|_| &self.recording_info.of_waits);
        // Those of the whole recording are not said twice where waits are recorded beside.
        let of_all = (number == 0 || of_waits.is_none()).then_some(&self.recording_info.remarks);
        let all = [Some(&profile.remarks), of_all, of_waits];
        let all = all.into_iter().flatten().flatten().cloned();
        let RecordingInfo { elapsed, cpus, .. } = self.recording_info;
        let watched = (elapsed, cpus);
        let unseen = interference::within_others(&self.plan.events, number, self.counters, watched);
        let on_switches = match &event.probe {
            Probe::OffCpu(waits) => names::on_switches(waits, profile.counted(), elapsed),
            _ => None,
        };
        all.chain(unseen).chain(on_switches).collect()
    }

    /// Every counter of the event, by the event's name unless it is the first of the recording's one subject.
    fn print_counters(&mut self, profile: &EventProfile<'_>, is_the_subject: bool) {
        for (number, counters) in profile.counters.iter().enumerate() {
            let whose = match is_the_subject && number == 0 {
                true => String::new(),
                false => profile.event.name() + " ",
            };
            self.text.push_str(&verbose::counters(counters, &whose));
        }
    }

    /// Why there is not one sample.
    fn nothing(&self, profile: &EventProfile<'_>, remarks: &[Finding]) -> String {
        let recording_info = &self.recording_info;
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
