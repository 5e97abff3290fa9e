//! After sampling: the last drain, names, files, and the closing paragraph.

use super::Recorded;
use crate::kernel::Kernel;
use crate::output::Style;
use crate::output::sink::Sink;
use crate::pipeline::deliver::{Named, deliver};
use crate::pipeline::look;
use crate::pipeline::naming::{Brought, Namer, off_cpu_view, origin};
use crate::pipeline::recording_info::{RecordingInfo, Stop};
use crate::pipeline::stored::Told;
use crate::plan::{Event, Plan, Target};
use crate::probe::{Probe, Wall};
use crate::process::Processes;
use crate::profile::normalized::{NormalizedKey, NormalizedProfile};
use crate::profile::raw::Parts;
use crate::profile::{Unit, Window, wall};
use crate::report::balance::{self, Health};
use crate::report::cost::{self, Cost};
use crate::report::findings::{self, Finding};
use crate::report::interference;
use crate::report::names;
use crate::report::nothing::Nothing;
use crate::report::{stacks, verbose};
use crate::symbolize::{self, Objects};
use crate::targets::tasks;
use anyhow::Result;
use profiler_common::abi::{Class, Counters, StackEnd};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What is left to do: say this, and end accordingly.
pub(crate) struct Report {
    /// For stderr.
    pub(crate) text: String,
    /// Whether there was anything to write.
    pub(crate) wrote: bool,
}

/// Symbolizes and writes what was recorded.
pub(crate) fn finish(
    recorded: Recorded,
    plan: &Plan,
    mut recording_info: RecordingInfo,
    sinks: &[Sink],
) -> Result<Report> {
    let Recorded {
        began,
        kernel,
        processes,
        mut normalized,
        objects,
        loaded,
    } = recorded;
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
    for sentence in loaded.iter().flat_map(stacks::on_tables) {
        recording_info.remark(sentence);
    }
    let mut finishing = Finishing {
        plan,
        recording_info,
        kernel,
        processes,
        objects,
        began,
        text: String::new(),
        places: Vec::new(),
    };
    let mut wrote = false;
    for part in finishing.parts(normalized, sinks) {
        wrote |= finishing.finish(part)?;
    }
    let verbosity = plan.verbosity;
    let Finishing {
        mut text,
        places,
        kernel,
        ..
    } = finishing;
    if let Some(loaded) = loaded.as_ref().filter(|_| verbosity.verbose > 0) {
        text.insert_str(0, &verbose::tables(loaded));
    }
    if wrote && !verbosity.quiet {
        let tables = loaded.map_or(0, |loaded| loaded.bytes);
        let cost = Cost::now(kernel.map_bytes() + tables);
        // Of all events, also where one graph is made of what two of them tell.
        let counters: Vec<Counters> = (0..kernel.events())
            .map(|event| kernel.counters(event))
            .collect();
        let mut findings = vec![cost::cost(&counters, &cost)];
        findings.extend(places.into_iter().map(|place| Finding::new("wrote", place)));
        text.push_str(&findings::shown(&findings));
    }
    Ok(Report { text, wrote })
}

/// What one event brought, and where it goes.
struct Part<'a> {
    number: usize,
    event: &'a Event,
    parts: Parts,
    normalized: NormalizedProfile,
    counters: Counters,
    sinks: &'a [Sink],
    /// What there is to remark that concerns this part alone.
    remarks: Vec<Finding>,
}

/// What there is to say of stacks, whatever they are called.
struct Seen {
    samples: usize,
    waited: u64,
    extent: String,
    ends: BTreeMap<StackEnd, u64>,
    fp_fallback: u64,
    cut_short: Option<BTreeMap<(StackEnd, String), u64>>,
}

/// All that finishing needs, and what there is to say so far.
struct Finishing<'a> {
    plan: &'a Plan,
    recording_info: RecordingInfo,
    kernel: Kernel,
    processes: Processes,
    objects: Objects,
    began: Instant,
    text: String,
    /// Files that were written.
    places: Vec<String>,
}

impl Finishing<'_> {
    /// One part for each event.
    fn parts<'a>(&mut self, mut normalized: NormalizedProfile, sinks: &'a [Sink]) -> Vec<Part<'a>>
    where
        Self: 'a,
    {
        let plan = self.plan;
        let mut sinks = sinks;
        let mut parts = Vec::new();
        for (number, event) in plan.events.iter().enumerate() {
            let (own, others) = sinks.split_at(event.outputs.len());
            sinks = others;
            let parts_of_it = if plan.events.len() == 1 {
                Parts::ALL
            } else {
                parts_of(number, event)
            };
            let normalized = if parts_of_it == Parts::ALL {
                std::mem::take(&mut normalized)
            } else {
                only(&normalized, parts_of_it)
            };
            let mut part = Part {
                number,
                event,
                parts: parts_of_it,
                normalized,
                counters: self.kernel.counters(number),
                sinks: own,
                remarks: self.remarks(number, event),
            };
            if let Probe::Wall(wall) = &event.probe {
                self.attribute_wall(&mut part, wall);
            }
            parts.push(part);
        }
        parts
    }

    /// What there is to remark on a event before it is looked at.
    fn remarks(&self, number: usize, event: &Event) -> Vec<Finding> {
        let of_waits = event.probe.waits().map(|_| &self.recording_info.of_waits);
        // Those of the whole recording are not said twice where waits are recorded beside.
        let of_all = (number == 0 || of_waits.is_none()).then_some(&self.recording_info.remarks);
        let all = [of_all, of_waits].into_iter().flatten().flatten();
        let RecordingInfo { elapsed, cpus, .. } = self.recording_info;
        let unseen = interference::within_others(
            &self.plan.events,
            number,
            &self.counters(),
            (elapsed, cpus),
        );
        all.cloned().chain(unseen).collect()
    }

    /// The counters of all events.
    fn counters(&self) -> Vec<Counters> {
        let events = 0..self.kernel.events();
        events.map(|event| self.kernel.counters(event)).collect()
    }

    /// Puts samples and spans together to one account of all of the threads' time.
    fn attribute_wall(&mut self, part: &mut Part<'_>, wall: &Wall) {
        let how = wall::How {
            per_thread: self.plan.capture.per_thread,
            idle_threads: wall.idle_threads,
        };
        let (normalized, sums) = wall::attribute(&part.normalized, how);
        part.remarks
            .splice(0..0, balance::wall_remarks(&sums, &part.counters));
        if self.plan.verbosity.verbose > 0 {
            self.text.push_str(&verbose::counters(&part.counters, ""));
        }
        part.normalized = normalized;
        part.counters = self.kernel.counters(part.number + 1);
    }

    /// Names and writes what one event brought. Says whether there was anything.
    fn finish(&mut self, part: Part<'_>) -> Result<bool> {
        let began = self.began.elapsed();
        let (plan, verbosity) = (self.plan, self.plan.verbosity);
        let Part {
            number,
            event,
            parts,
            normalized,
            counters,
            sinks,
            mut remarks,
        } = part;
        let probe = &event.probe;
        let is_the_subject = number == 0 && plan.has_one_subject();
        if let Probe::OffCpu(waits) = probe {
            let elapsed = self.recording_info.elapsed;
            remarks.extend(names::on_switches(waits, &counters, elapsed));
        }
        let exact = verbosity.verbose > 1;
        let (objects, processes) = (&self.objects, &self.processes);
        let (brought, seen) = Namer {
            plan,
            kernel: &mut self.kernel,
            processes,
            objects,
        }
        .name(event, normalized, |normalized| Seen {
            samples: normalized.samples().len(),
            waited: normalized.total_weight(),
            extent: balance::extent(normalized, objects.processes(parts)),
            ends: symbolize::stack_ends(normalized),
            fp_fallback: symbolize::fp_fallback(normalized),
            cut_short: (verbosity.verbose > 0)
                .then(|| symbolize::cut_short(normalized, objects, processes, exact)),
        });
        let Brought {
            profile,
            stored,
            on_names,
            on_stored,
        } = brought;
        let symbolized = self.began.elapsed();
        let default_title = self.recording_info.title(plan, event);
        let (remarks, remarks_stored) = (
            [remarks.as_slice(), &on_names].concat(),
            [remarks.as_slice(), &on_stored].concat(),
        );
        let is_time = event.unit() == Unit::Nanoseconds;
        let health = |remarks| Health {
            subject: &default_title,
            noun: probe.noun(),
            waited: is_time.then_some(seen.waited),
            counters: &counters,
            extent: &seen.extent,
            ends: &seen.ends,
            fp_fallback: seen.fp_fallback,
            idle_is_offered: plan.target == Target::All,
            remarks,
        };
        let titled = match &plan.title {
            Some(title) if is_the_subject => title.clone(),
            Some(title) => format!("{title} ({})", event.name()),
            None => default_title.clone(),
        };
        let raw_recording = stored.map(|stored| {
            let told = Told {
                host: &self.recording_info.host,
                title: &titled,
                noun: probe.noun(),
                perf_event: event.name(),
                unit: event.unit(),
                origin: origin(event, self.recording_info.elapsed),
                off_cpu: off_cpu_view(plan, probe),
            };
            told.raw_recording(stored, health(&remarks_stored).balance().lines())
        });
        let balance = match profile {
            Some(_) => health(&remarks).balance(),
            None => health(&remarks_stored).balance(),
        };
        if verbosity.verbose > 0 {
            let whose = if is_the_subject && !matches!(probe, Probe::Wall(_)) {
                String::new()
            } else {
                event.name() + " "
            };
            self.text.push_str(&verbose::counters(&counters, &whose));
            if let Some(cut_short) = &seen.cut_short {
                self.text.push_str(&verbose::cut_short(cut_short));
            }
        }
        if seen.samples == 0 {
            let nothing = Nothing {
                plan,
                event,
                elapsed: self.recording_info.elapsed,
                cpu_time: tasks::cpu_time(tasks::ids(&plan.target))
                    .saturating_sub(self.recording_info.cpu_before),
                target_ended: self.recording_info.stop == Stop::TargetEnded,
                counters: &counters,
                remarks: &remarks,
            };
            self.text.push_str(&nothing.told());
            return Ok(false);
        }
        let look = look::usual(probe.activity(), off_cpu_view(plan, probe));
        let style = Style {
            title: titled,
            colors: plan.colors.unwrap_or(look.palette),
            subtitle: plan
                .style
                .subtitle
                .clone()
                .or(look.subtitle.map(str::to_owned)),
            notes: balance.lines(),
            ..plan.style.clone()
        };
        let named = profile.as_ref().map(|profile| Named {
            profile,
            style: &style,
        });
        let places = deliver(
            sinks,
            &event.outputs,
            named.as_ref(),
            raw_recording.as_ref(),
        )?;
        self.places.extend(places);
        if verbosity.verbose > 0 {
            self.text.push_str(&format!(
                "time: drained in {:.1} ms, named in {:.1} ms, written in {:.1} ms\n",
                milliseconds(began),
                milliseconds(symbolized - began),
                milliseconds(self.began.elapsed() - symbolized),
            ));
        }
        if !verbosity.quiet || counters.sum(Class::Lost) > 0 {
            self.text.push_str(&balance.shown());
        }
        Ok(true)
    }
}

/// Of what several events brought, what one of them did.
fn parts_of(number: usize, event: &Event) -> Parts {
    if event.probe.waits().is_some() {
        Parts::WAITS
    } else {
        Parts::of_event(number as u8)
    }
}

/// A profile of these parts alone.
fn only(normalized: &NormalizedProfile, parts: Parts) -> NormalizedProfile {
    normalized.changed(|key, sums| {
        let is_wanted = Parts::of(key.thread_state, key.event).touch(parts);
        is_wanted.then_some((NormalizedKey { event: 0, ..key }, sums))
    })
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
