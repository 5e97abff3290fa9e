//! Facts of a recording beside its samples.
//!
//! In: the plan, and what happens while it is carried out. Out: facts for titles and closing sentences.

use crate::plan::{Event, Plan, TitleFacts};
use crate::report::findings::Finding;
use crate::targets::tasks;
use crate::text::number::counted;
use anyhow::Result;
use std::collections::HashMap;
use std::time::Duration;

/// Why sampling stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The time was up.
    Duration,
    /// A signal asked for it.
    Interrupted,
    /// A signal asked a service to read its options again.
    Reload,
    /// None of the named targets runs any more.
    TargetEnded,
    /// The command has ended.
    CommandEnded,
}

/// Result of looking for threads that slept when the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Before {
    /// Threads whose memory could not be read.
    pub(crate) incomplete: usize,
}

/// Facts that the recording knows and the plan does not.
pub(crate) struct RecordingInfo {
    pub(crate) stop: Stop,
    pub(crate) elapsed: Duration,
    /// On how many CPUs events are sampled.
    pub(crate) cpus: usize,
    pub(crate) host: String,
    comms: HashMap<u32, String>,
    pub(crate) cpu_before: Duration,
    pub(crate) remarks: Vec<Finding>,
    /// Remarks for the part that is about waits.
    pub(crate) of_waits: Vec<Finding>,
}

impl RecordingInfo {
    /// Facts that can be seen before sampling begins.
    pub(crate) fn look(plan: &Plan, cpus: usize) -> Self {
        let named = tasks::ids(&plan.target);
        Self {
            stop: Stop::Duration,
            elapsed: Duration::ZERO,
            cpus,
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            comms: named
                .iter()
                .filter_map(|&id| Some((id, tasks::comm(id)?)))
                .collect(),
            cpu_before: tasks::cpu_time(named),
            remarks: Vec::new(),
            of_waits: Vec::new(),
        }
    }

    /// Notes why and when sampling ended.
    pub(crate) fn ended(&mut self, stop: Stop, elapsed: Duration) {
        self.stop = stop;
        self.elapsed = elapsed;
    }

    /// Takes in the result of looking for threads that were asleep before the recording began.
    pub(crate) fn add_sleepers(&mut self, asleep: Result<Before>) {
        match asleep {
            Ok(before) if before.incomplete > 0 => self.of_waits.push(Finding::note(format!(
                "the memory of {} that slept when the recording began cannot be read; their callers are missing",
                counted(before.incomplete as u64, "thread")
            ))),
            Ok(_) => {}
            Err(error) => self.of_waits.push(Finding::note(format!(
                "threads that slept when the recording began are counted from their first wake-up only: {error:#}"
            ))),
        }
    }

    /// Something that the closing summary should say.
    pub(crate) fn remark(&mut self, finding: Finding) {
        self.remarks.push(finding);
    }

    /// Remarks on an event; those on the whole recording are not said twice where waits are recorded beside.
    pub(crate) fn remarks_on(&self, number: usize, event: &Event) -> Vec<Finding> {
        let of_waits = event.probe.waits().map(|_| &self.of_waits);
        let of_all = (number == 0 || of_waits.is_none()).then_some(&self.remarks);
        let all = of_all.into_iter().chain(of_waits);
        all.flatten().cloned().collect()
    }

    /// Title of graphs unless told otherwise.
    pub(crate) fn title(&self, plan: &Plan, event: &Event) -> String {
        self.titled(plan, event, Some(self.elapsed))
    }

    /// Title of graphs whose time is told elsewhere.
    pub(crate) fn timeless_title(&self, plan: &Plan, event: &Event) -> String {
        self.titled(plan, event, None)
    }

    fn titled(&self, plan: &Plan, event: &Event, elapsed: Option<Duration>) -> String {
        let facts = TitleFacts {
            elapsed,
            host: &self.host,
            comm: &|id| self.comms.get(&id).cloned(),
        };
        plan.default_title(event, &facts)
    }
}
