//! The balance of a recording: firings recorded, lost and left out.
//!
//! In: counters and what was counted of the stacks. Out: a [`Summary`], for stderr and for the outputs that can carry it.

use super::findings::{Finding, Summary};
use super::stack_counts::StackCounts;
use super::{losses, stacks};
use crate::profile::normalized::NormalizedProfile;
use crate::profile::wall::Sums;
use crate::text::number::{counted, seconds};
use foldhash::HashSet;
use profiler_common::abi::{Class, Counters};
use std::time::Duration;

/// Over how many whole stacks, of user and kernel frames, and how many processes a profile spreads.
pub(crate) fn extent(normalized: &NormalizedProfile, processes: usize) -> String {
    let whole = normalized.samples();
    let whole: HashSet<_> = whole
        .map(|(key, _)| (key.user, key.kernel, key.waker))
        .collect();
    format!(
        "{} in {}",
        counted(whole.len() as u64, "distinct stack"),
        counted(processes as u64, "process")
    )
}

/// All that a recording, or a window of it, can say of what was sampled.
pub(crate) struct Balance<'a> {
    /// Subject of the samples, as in a title.
    pub(crate) subject: &'a str,
    /// Name of one firing.
    pub(crate) noun: &'a str,
    /// Whether weights are time, in nanoseconds.
    pub(crate) is_time: bool,
    /// How much CPU time a sample stands for, if it does, in nanoseconds.
    pub(crate) period_ns: Option<u64>,
    /// Whether the whole machine was looked at.
    pub(crate) is_of_machine: bool,
    /// The kernel half's counters.
    pub(crate) counters: &'a Counters,
    /// Numbers of the stacks and processes that they spread over, as text.
    pub(crate) extent: &'a str,
    /// Counts of the stacks.
    pub(crate) stacks: &'a StackCounts,
    /// Whether idle CPUs could have been recorded, had it been asked for.
    pub(crate) idle_is_offered: bool,
    /// Other findings.
    pub(crate) remarks: &'a [Finding],
}

impl Balance<'_> {
    /// Findings on what was recorded, lost and left out: the part that belongs into outputs.
    pub(crate) fn summary(&self) -> Summary {
        let mut findings = Vec::new();
        // Of waits, those that sleep all the time have the most.
        if self.is_of_machine && !self.is_time {
            findings.extend(self.stacks.busiest.finding(self.period_ns));
        }
        findings.push(self.recorded());
        findings.extend(losses::lost(self.counters, self.noun));
        findings.extend(losses::left_out(self.counters, self.idle_is_offered));
        findings.extend(losses::open_waits(self.counters, self.noun));
        findings.extend(stacks::incomplete(&self.stacks.ends, self.stacks.fallbacks));
        findings.extend(losses::dropped_events(self.counters));
        findings.extend(losses::dropped_functions(self.counters));
        findings.extend(self.remarks.iter().cloned());
        Summary {
            title: self.subject.to_owned(),
            findings,
        }
    }

    fn recorded(&self) -> Finding {
        let count = counted(self.counters.sum(Class::Recorded), self.noun);
        let time = match self.is_time {
            true => format!(
                ", {} in all",
                seconds(Duration::from_nanos(self.stacks.weight))
            ),
            false => String::new(),
        };
        Finding::new("recorded", format!("{count}{time}, {}", self.extent))
    }
}

/// Where all of the threads' time went; `samples` are the counters of the samples that say where they ran.
pub(crate) fn wall_remarks(sums: &Sums, samples: &Counters) -> Vec<Finding> {
    let mut findings = vec![Finding::new(
        "time",
        format!(
            "{} ran for {}, were blocked for {} and waited for a CPU for {}",
            counted(sums.threads as u64, "thread"),
            seconds(sums.ran),
            seconds(sums.blocked),
            seconds(sums.runnable),
        ),
    )];
    let recorded = counted(samples.sum(Class::Recorded), "sample");
    let not_sampled = if sums.not_sampled > Duration::ZERO {
        format!(
            "; {} of it has none, in threads that ran little",
            seconds(sums.not_sampled)
        )
    } else {
        String::new()
    };
    findings.push(Finding::new(
        "time",
        format!("CPU time is attributed by {recorded}{not_sampled}"),
    ));
    findings.extend(losses::each_loss(samples, "sample"));
    if sums.unattributed > 0 {
        findings.push(Finding::new(
            "left out",
            format!(
                "{} of threads whose switches were not seen",
                counted(sums.unattributed, "sample")
            ),
        ));
    }
    if sums.idle.0 > 0 {
        findings.push(Finding::new(
            "left out",
            format!(
                "{} that slept throughout, {} in all (--no-idle-threads)",
                counted(sums.idle.0 as u64, "thread"),
                seconds(sums.idle.1)
            ),
        ));
    }
    findings
}

#[cfg(test)]
mod tests;
