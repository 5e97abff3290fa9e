//! The first step: from all that was recorded in a window to what each event brought.
//!
//! In: normalized stacks of all events, and the kernel half's counters. Out: a profile of locations for each event, with
//! what was counted. What an interrupt came upon is left out, and samples and spans of wall time are put together.
//! Addresses became locations while the window was recorded, drain by drain: see [`crate::symbolize::Normalizer`].

use super::timeline::Timeline;
use crate::plan::{Event, Plan, Target};
use crate::probe::{Probe, Wall};
use crate::profile::normalized::{NormalizedKey, NormalizedProfile};
use crate::profile::raw::Parts;
use crate::profile::{Unit, wall};
use crate::report::balance::{self, Balance};
use crate::report::findings::{Finding, Summary};
use crate::report::stack_counts::StackCounts;
use crate::report::verbose;
use crate::symbolize::{KernelSymbols, Objects, without_interrupted};
use profiler_common::abi::{Class, Counter, Counters};

/// Profile of one event in a window.
pub(crate) struct EventProfile<'a> {
    /// Its place in the plan.
    pub(crate) number: usize,
    pub(crate) event: &'a Event,
    pub(crate) normalized: NormalizedProfile,
    pub(crate) stacks: StackCounts,
    /// Over how many stacks and processes it spreads.
    pub(crate) extent: String,
    /// Of each of the probe's events in the kernel half.
    pub(crate) counters: Vec<Counters>,
    /// Remarks on how it came about.
    pub(crate) remarks: Vec<Finding>,
}

impl EventProfile<'_> {
    /// Counts as recorded what was drained: later firings are of the next window.
    pub(crate) fn count_drained(&mut self) {
        let event = self.event.probe.spec().counting_event();
        self.counters[event].counters[Counter::Recorded as usize] = self.stacks.firings;
    }

    /// Whether it is what the recording is about.
    pub(crate) fn is_the_subject(&self, plan: &Plan) -> bool {
        self.number == 0 && plan.has_one_subject()
    }

    /// Every counter where details are asked for, by the event's name unless it is the first of the one subject.
    pub(crate) fn details(&self, plan: &Plan) -> String {
        let counters = self.counters.iter().enumerate();
        let text = counters.map(|(number, counters)| {
            let whose = match number == 0 && self.is_the_subject(plan) {
                true => String::new(),
                false => self.event.name() + " ",
            };
            verbose::counters(counters, &whose)
        });
        let is_wanted = plan.verbosity.verbose > 0;
        match is_wanted {
            true => text.collect(),
            false => String::new(),
        }
    }

    /// Whether stderr gets its summary; where less is to be said, only if something was lost.
    pub(crate) fn is_told(&self, plan: &Plan) -> bool {
        !plan.verbosity.quiet || self.counted().sum(Class::Lost) > 0
    }

    /// The counters of the firings that the profile is of.
    pub(crate) fn counted(&self) -> &Counters {
        &self.counters[self.event.probe.spec().counting_event()]
    }

    /// Summary of what was recorded, lost and left out, under a title and with remarks.
    pub(crate) fn balance(&self, plan: &Plan, title: &str, remarks: &[Finding]) -> Summary {
        let balance = Balance {
            subject: title,
            noun: self.event.probe.noun(),
            is_time: self.event.unit() == Unit::Nanoseconds,
            period_ns: self.event.period_ns(),
            is_of_machine: plan.target == Target::All,
            counters: self.counted(),
            extent: &self.extent,
            stacks: &self.stacks,
            idle_is_offered: plan.target == Target::All,
            remarks,
        };
        balance.summary()
    }
}

/// The profile of each event of a plan. `counters`: of all of the kernel half's events.
pub(crate) fn by_event<'a>(
    plan: &'a Plan,
    normalized: NormalizedProfile,
    (objects, kernel): (&Objects, &KernelSymbols),
    counters: &[Counters],
) -> Vec<EventProfile<'a>> {
    let mut all = without_interrupted(normalized, kernel);
    let events = plan.events.iter().zip(plan.kernel_events()).enumerate();
    events
        .map(|(number, (event, kernel_events))| {
            let parts = parts_of(plan, number);
            let mut normalized = match parts {
                Parts::ALL => std::mem::take(&mut all),
                parts => only(&all, parts),
            };
            let counters = counters[kernel_events].to_vec();
            let mut remarks = Vec::new();
            if let Probe::Wall(wall) = &event.probe {
                normalized = attribute(plan, wall, &normalized, &counters, &mut remarks);
            }
            EventProfile {
                number,
                event,
                stacks: StackCounts::of(&normalized),
                extent: balance::extent(&normalized, objects.processes(parts)),
                normalized,
                counters,
                remarks,
            }
        })
        .collect()
}

/// Says of each event's windows what happened in them. Wall time is accounted for as a whole, so it has none.
pub(crate) fn divide(plan: &Plan, events: &mut [EventProfile<'_>], timeline: &Timeline) {
    for (profile, kernel_events) in events.iter_mut().zip(plan.kernel_events()) {
        if matches!(profile.event.probe, Probe::Wall(_)) {
            continue;
        }
        let event = kernel_events.start + profile.event.probe.spec().counting_event();
        profile.normalized.windows = timeline.of_event(event);
    }
}

/// Of what all events brought, what one of them did.
fn parts_of(plan: &Plan, number: usize) -> Parts {
    match &plan.events[number] {
        _ if plan.events.len() == 1 => Parts::ALL,
        event if event.probe.waits().is_some() => Parts::WAITS,
        _ => Parts::of_event(number as u8),
    }
}

/// A profile of these parts alone.
fn only(normalized: &NormalizedProfile, parts: Parts) -> NormalizedProfile {
    normalized.changed(|key, sums| {
        let is_wanted = Parts::of(key.thread_state, key.event).touch(parts);
        is_wanted.then_some((NormalizedKey { event: 0, ..key }, sums))
    })
}

/// Puts samples and spans together to one account of all of the threads' time.
fn attribute(
    plan: &Plan,
    wall: &Wall,
    normalized: &NormalizedProfile,
    counters: &[Counters],
    remarks: &mut Vec<Finding>,
) -> NormalizedProfile {
    let how = wall::ThreadOptions {
        per_thread: plan.capture.per_thread,
        idle_threads: wall.idle_threads,
    };
    let (attributed, sums) = wall::attribute(normalized, how);
    // Its first event is that of samples.
    let samples = counters.first().unwrap_or(&Counters::EMPTY);
    remarks.extend(balance::wall_remarks(&sums, samples));
    attributed
}
