//! The error when there is not one sample.
//!
//! In: the plan, and what the recording knows. Out: a sentence.

use super::findings::{self, Finding};
use crate::plan::{Children, Event, Output, Plan, Target};
use profiler_common::abi::{Class, Counter, Counters};
use std::time::Duration;

/// An event that brought nothing.
pub(crate) struct Nothing<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) event: &'a Event,
    pub(crate) elapsed: Duration,
    /// The CPU time that the named targets used meanwhile.
    pub(crate) cpu_time: Duration,
    /// Whether the recording ended because the targets did.
    pub(crate) target_ended: bool,
    pub(crate) counters: &'a Counters,
    /// Other findings.
    pub(crate) remarks: &'a [Finding],
}

impl Nothing<'_> {
    /// Why there is not one sample, and what to do.
    pub(crate) fn sentence(&self) -> String {
        let seconds = self.elapsed.as_secs_f64();
        let lost = self.counters.sum(Class::Lost);
        let (probe, perf_event) = (&self.event.probe, self.event.perf_event());
        let noun = probe.noun();
        let reason = match &self.plan.target {
            _ if lost > 0 => {
                format!("all {lost} were lost; a larger --map-memory or a lower -F keeps them")
            }
            _ if probe.waits().is_some() => {
                let left_out = self.counters.sum(Class::Filtered);
                let narrow = if left_out > 0 {
                    format!(
                        "all {left_out} times off the CPU were left out, as asked; ask for less"
                    )
                } else {
                    "it was never off the CPU; record for longer, or without --off-cpu".to_owned()
                };
                format!("in {seconds:.1} s, {narrow}")
            }
            _ if self.counters.get(Counter::FilteredFileKind) > 0 => format!(
                "all {} were about other kinds of files; --io-kind all keeps them",
                self.counters.get(Counter::FilteredFileKind)
            ),
            _ if !probe.is_on_event() => {
                format!("there were none in {seconds:.1} s; record for longer, or while there are")
            }
            _ if !perf_event.is_cpu_time() => format!(
                "there were no {} in {seconds:.1} s; record for longer",
                perf_event.name
            ),
            Target::Launched => format!(
                "the command used the CPU too little in its {seconds:.3} s to be sampled; try a higher -F"
            ),
            Target::Processes(ids) | Target::Threads(ids) => {
                let used = self.cpu_time.as_secs_f64();
                let list: Vec<String> = ids.iter().map(u32::to_string).collect();
                let ended = if self.target_ended { " and ended" } else { "" };
                format!(
                    "{} used {used:.2} s of CPU in {seconds:.1} s{ended}; record for longer, while it is busy, with a higher -F{}",
                    list.join(", "),
                    if self.plan.children == Children::None {
                        ", or with its --children"
                    } else {
                        ""
                    },
                )
            }
            Target::Cgroups(target) => format!(
                "nothing in {target} used the CPU in {seconds:.1} s; record for longer, while it is busy, or with a higher -F"
            ),
            // Replaced by the processes that were found.
            Target::Matching(wanted) => format!("no process that {wanted} used the CPU"),
            Target::All if self.counters.get(Counter::FilteredIdle) > 0 => format!(
                "the CPUs were idle for all of the {seconds:.1} s; record while they are busy, or use -I to see the idle task"
            ),
            Target::All => {
                format!("nothing ran in {seconds:.1} s; record for longer, or with a higher -F")
            }
        };
        let filtered: u64 = self.counters.get(Counter::FilteredUserMode)
            + self.counters.get(Counter::FilteredNoUserStack);
        let left_out = if filtered > 0 {
            format!(" ({filtered} samples were left out by -U or -K)")
        } else {
            String::new()
        };
        let own = |output: &&Output| !self.plan.is_shared(output);
        let names = self.event.outputs.iter().filter(own).map(Output::name);
        let names: Vec<String> = names.collect();
        let (of, unwritten) = if names.is_empty() {
            // The others may bring something to write.
            (format!(" of {}", self.event.name()), String::new())
        } else if self.plan.has_one_subject() {
            (String::new(), " Nothing was written.".to_owned())
        } else {
            let unwritten = format!(" Not written: {}.", names.join(", "));
            (format!(" of {}", self.event.name()), unwritten)
        };
        format!(
            "flame-bpf: no {noun}s{of}: {reason}{left_out}.{unwritten}\n{}",
            findings::shown(self.remarks)
        )
    }
}
