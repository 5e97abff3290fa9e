//! The line that every window of a recording passes, wherever it goes.
//!
//! In: normalized stacks, drained at the end of a window. Out: the profile of each event in it, with the kernel's
//! names, for a [`WindowSink`]; and at the end the closing text. Nothing of a window is kept but sums.

use crate::kernel::Kernel;
use crate::output::length;
use crate::pipeline::normalize::{self, EventProfile};
use crate::pipeline::recording_info::{RecordingInfo, Stop};
use crate::pipeline::symbolize::{Code, SymbolizedEvent, Symbolizer};
use crate::pipeline::timeline::Timeline;
use crate::pipeline::write::wrote;
use crate::plan::{Event, Plan, Target};
use crate::process::Processes;
use crate::profile::normalized::NormalizedProfile;
use crate::profile::{Profile, Window};
use crate::report::cost::{self, Cost};
use crate::report::findings::{self, Finding, Summary};
use crate::report::stack_counts::StackCounts;
use crate::report::{names, stacks, verbose};
use crate::symbolize::{KernelNameCache, KernelSymbols, NameCache, Objects, RecordingContents};
use crate::unwind::loader::Loaded;
use anyhow::Result;
use foldhash::HashSet;
use profiler_common::abi::Counters;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Destination of a recording's windows.
pub(crate) trait WindowSink: Send {
    /// Length of the windows; none where the whole recording is one.
    fn length(&self) -> Option<Duration>;

    /// Takes a window that is over, while the recording goes on.
    ///
    /// # Errors
    /// When it cannot be written.
    fn window(&mut self, window: &mut WindowProfile<'_>) -> Result<()>;

    /// The names that are kept for later windows; none where none are.
    fn names(&self) -> Option<&NameCache> {
        None
    }

    /// Takes the last window, and ends.
    ///
    /// # Errors
    /// When something cannot be written.
    fn end(self: Box<Self>, ended: Ended<'_>) -> Result<Report>;
}

/// Events of a window, before programs' code has names.
pub(crate) struct WindowProfile<'a> {
    pub(crate) plan: &'a Plan,
    /// Its number, from 1.
    pub(crate) number: u64,
    /// When it ended, from the recording's beginning on.
    pub(crate) until: Duration,
    pub(crate) events: Vec<EventProfile<'a>>,
    pub(crate) objects: Objects,
    pub(crate) processes: &'a Processes,
    pub(crate) kernel: KernelSymbols,
    symbolizer: Symbolizer<'a>,
    /// Counters of all of the kernel half's events, from the recording's beginning on.
    pub(crate) counters: Vec<Counters>,
}

impl WindowProfile<'_> {
    fn code(&self) -> Code<'_> {
        Code {
            processes: self.processes,
            objects: &self.objects,
        }
    }

    /// An event's stacks with names, for a profile. `names`: those that others ask for, too.
    pub(crate) fn named(
        &self,
        event: &Event,
        normalized: NormalizedProfile,
        names: &NameCache,
    ) -> Profile {
        (self.symbolizer).profile(event, normalized, self.code(), &self.kernel, names)
    }

    /// The part of an event's stacks that a raw recording keeps. `names`: those that others ask for, too.
    pub(crate) fn stored(
        &self,
        normalized: &NormalizedProfile,
        names: &NameCache,
    ) -> RecordingContents {
        (self.symbolizer).kept(normalized, self.code(), &self.kernel, names)
    }

    /// An event's stacks with names, as far as its outputs want them. `names`: those that others ask for, too.
    pub(crate) fn symbolized(
        &self,
        event: &Event,
        normalized: NormalizedProfile,
        names: Option<&NameCache>,
    ) -> SymbolizedEvent {
        (self.symbolizer).event(event, normalized, self.code(), &self.kernel, names)
    }
}

/// A recording that has ended, before anything in its last window has a name.
pub(crate) struct Recorded {
    /// When its end began.
    pub(crate) began: Instant,
    /// The kernel half, detached: it still has the counters, and names kernel functions.
    pub(crate) kernel: Kernel,
    pub(crate) processes: Processes,
    pub(crate) normalized: NormalizedProfile,
    pub(crate) objects: Objects,
    /// None where no output tells of windows.
    pub(crate) timeline: Option<Timeline>,
    /// None where stacks were walked by frame pointers alone.
    pub(crate) loaded: Option<Loaded>,
}

/// Facts of a recording that has ended, over all of its windows.
pub(crate) struct Ended<'a> {
    pub(crate) last: WindowProfile<'a>,
    pub(crate) recording_info: RecordingInfo,
    /// Counts of stacks, by event.
    stacks: Vec<StackCounts>,
    pub(crate) timeline: Option<Timeline>,
    /// When its end began, and how long draining took from then on.
    pub(crate) began: Instant,
    pub(crate) drained: Duration,
}

impl<'a> Ended<'a> {
    /// All windows of each event, without their samples and extent.
    pub(crate) fn events(&self) -> Vec<EventProfile<'a>> {
        let plan = self.last.plan;
        let of_kernel = plan.kernel_events().zip(&self.stacks);
        let events = plan.events.iter().zip(of_kernel).enumerate();
        events
            .map(|(number, (event, (kernel_events, stacks)))| EventProfile {
                number,
                event,
                normalized: NormalizedProfile::default(),
                stacks: stacks.clone(),
                extent: String::new(),
                counters: self.last.counters[kernel_events].to_vec(),
                remarks: self.recording_info.remarks_on(number, event),
            })
            .collect()
    }

    /// Summary of all windows of an event, which the report tells of.
    pub(crate) fn summary(&self, all: &EventProfile<'_>, report: &mut Report) -> Summary {
        let plan = self.last.plan;
        let title = self.recording_info.title(plan, all.event);
        let summary = all.balance(plan, &title, &all.remarks);
        report.text.push_str(&all.details(plan));
        if all.is_told(plan) {
            report.summaries.push(summary.clone());
        }
        summary
    }
}

/// Result of a recording's end.
#[derive(Default)]
pub(crate) struct Report {
    /// For stderr.
    pub(crate) text: String,
    /// The summary of each event, behind that.
    pub(crate) summaries: Vec<Summary>,
    /// The functions that were sampled most, behind all else.
    pub(crate) hottest: String,
    /// Whether there was anything to write.
    pub(crate) wrote: bool,
    /// Names of the files that were written.
    pub(crate) files: Vec<String>,
}

/// The windows of a recording that is under way.
pub(crate) struct Pipeline {
    plan: Arc<Plan>,
    sink: Box<dyn WindowSink>,
    kernel_names: KernelNameCache,
    /// How many windows have ended.
    windows: u64,
    /// When the last of them did, from the recording's beginning on.
    until: Duration,
    /// Counters of the kernel half's events by then.
    counters: Vec<Counters>,
    /// Of all windows, by event.
    stacks: Vec<StackCounts>,
}

impl Pipeline {
    /// One that ends in `sink`.
    pub(crate) fn new(plan: Arc<Plan>, sink: Box<dyn WindowSink>) -> Self {
        Self {
            stacks: vec![StackCounts::default(); plan.events.len()],
            plan,
            sink,
            kernel_names: KernelNameCache::default(),
            windows: 0,
            until: Duration::ZERO,
            counters: Vec::new(),
        }
    }

    /// Whether a window is over when the recording has lasted so long.
    pub(crate) fn is_over(&self, elapsed: Duration) -> bool {
        let length = self.sink.length();
        length.is_some_and(|length| elapsed >= self.until + length)
    }

    /// Gives up names that are kept for later windows. Returns how many.
    pub(crate) fn forget(&self) -> usize {
        self.sink.names().map_or(0, NameCache::forget)
    }

    /// Limits looking for names, while sampling goes on, to this share of one CPU.
    pub(crate) fn limit_names(&self, share: f64) {
        if let Some(names) = self.sink.names() {
            names.limit(share);
        }
    }

    /// How often the names of places were not looked for, because that had taken as long as it may.
    pub(crate) fn names_put_off(&self) -> u64 {
        self.sink.names().map_or(0, NameCache::put_off)
    }

    /// The CPU time that looking for names took.
    pub(crate) fn spent_on_names(&self) -> Duration {
        self.sink.names().map_or(Duration::ZERO, NameCache::spent)
    }

    /// Passes on the window that ends now: `until` from the recording's beginning.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn window(
        &mut self,
        drained: (NormalizedProfile, Objects),
        processes: &Processes,
        kernel: &mut Kernel,
        until: Duration,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let mut window = self.next(&plan, drained, processes, kernel, until);
        self.sink.window(&mut window)
    }

    fn next<'a>(
        &mut self,
        plan: &'a Plan,
        (mut normalized, objects): (NormalizedProfile, Objects),
        processes: &'a Processes,
        kernel: &mut Kernel,
        until: Duration,
    ) -> WindowProfile<'a> {
        normalized.window = Window::until(until.saturating_sub(self.until));
        let is_quiet = plan.verbosity.quiet || plan.live || plan.service.is_some();
        let symbolizer = Symbolizer::new(&plan.naming, &plan.servers, is_quiet);
        let symbols = symbolizer.kernel(&normalized, kernel, &mut self.kernel_names);
        let events = 0..kernel.events();
        let counters: Vec<Counters> = events.map(|event| kernel.counters(event)).collect();
        self.counters.resize(counters.len(), Counters::EMPTY);
        let both = counters.iter().zip(&self.counters);
        let counted: Vec<Counters> = both.map(|(now, before)| now.since(before)).collect();
        let events = normalize::by_event(plan, normalized, (&objects, &symbols), &counted);
        for (sum, profile) in self.stacks.iter_mut().zip(&events) {
            sum.add(profile.stacks.clone());
        }
        self.windows += 1;
        self.until = until;
        self.counters.clone_from(&counters);
        WindowProfile {
            plan,
            number: self.windows,
            until,
            events,
            objects,
            processes,
            kernel: symbols,
            symbolizer,
            counters,
        }
    }

    /// Passes on the last window. Returns the closing text.
    ///
    /// # Errors
    /// When an output cannot be written.
    pub(crate) fn end(
        mut self,
        recorded: Recorded,
        mut recording_info: RecordingInfo,
    ) -> Result<Report> {
        let Recorded {
            began,
            mut kernel,
            processes,
            normalized,
            objects,
            timeline,
            loaded,
        } = recorded;
        let drained = began.elapsed();
        let plan = Arc::clone(&self.plan);
        let elapsed = recording_info.elapsed;
        if recording_info.stop == Stop::TargetEnded && self.sink.length().is_none() {
            let seconds = elapsed.as_secs_f64();
            let text = format!("the target ended after {seconds:.1} s");
            recording_info.remark(Finding::note(text));
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
        let loaded = loaded.as_ref();
        // With cgroups for a target they are lost.
        let without_cgroup = match plan.target {
            Target::Cgroups(_) => 0,
            _ => kernel.without_cgroup(),
        };
        if let Some(finding) = names::on_cgroups(without_cgroup) {
            recording_info.remark(finding);
        }
        if let Some(finding) = names::on_contexts(&processes.unread_contexts()) {
            recording_info.remark(finding);
        }
        let of_tables = |loaded| stacks::on_tables(loaded, &plan.memory);
        for sentence in loaded.into_iter().flat_map(of_tables) {
            recording_info.remark(sentence);
        }
        let last = self.next(
            &plan,
            (normalized, objects),
            &processes,
            &mut kernel,
            elapsed,
        );
        let counters = last.counters.clone();
        let own_share = (self.stacks.first()).and_then(|stacks| stacks.busiest.own_share());
        let ended = Ended {
            last,
            recording_info,
            stacks: self.stacks,
            timeline,
            began,
            drained,
        };
        let mut report = self.sink.end(ended)?;
        if let Some(loaded) = loaded.filter(|_| plan.verbosity.verbose > 0) {
            report.text.insert_str(0, &verbose::tables(loaded));
        }
        if (report.wrote || !report.files.is_empty()) && !plan.verbosity.quiet {
            let tables = loaded.map_or(0, |loaded| loaded.bytes);
            let cost = Cost::now(kernel.map_bytes() + tables);
            let mut findings = vec![cost::cost(&counters, &cost, own_share)];
            findings.extend(wrote(std::mem::take(&mut report.files)));
            match report.summaries.last_mut() {
                Some(summary) => summary.findings.extend(findings),
                None => report.text.push_str(&findings::shown(&findings)),
            }
        }
        report.finish(plan.verbosity.verbose > 0);
        Ok(report)
    }
}

impl Report {
    /// Puts the summaries behind the text, each note once, and what was sampled most behind them.
    fn finish(&mut self, is_verbose: bool) {
        let mut told: HashSet<String> = HashSet::default();
        for mut summary in std::mem::take(&mut self.summaries) {
            (summary.findings)
                .retain(|finding| !finding.is_note() || told.insert(finding.text.clone()));
            self.text.push_str(&match is_verbose {
                true => summary.shown(),
                false => summary.shown_in_brief(),
            });
        }
        self.text.push_str(&self.hottest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_said_once_for_all_events() {
        let summary = |title: &str| Summary {
            title: title.to_owned(),
            findings: vec![
                Finding::new("recorded", "1 sample"),
                Finding::note("Lua 5.1"),
            ],
        };
        let mut report = Report {
            summaries: vec![summary("one"), summary("two")],
            hottest: "table\n".to_owned(),
            ..Report::default()
        };
        report.finish(false);
        assert_eq!(report.text.matches("Lua 5.1").count(), 1, "{}", report.text);
        assert_eq!(
            report.text.matches("1 sample").count(),
            2,
            "{}",
            report.text
        );
        assert!(report.text.ends_with("table\n"), "{}", report.text);
    }
}
