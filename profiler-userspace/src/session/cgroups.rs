//! Cgroups of a recording, from the plan to each sample.
//!
//! In: what is asked for; cgroups that the kernel half meets. Out: their names, for the processes in them, and verdicts: the
//! kernel half records in a cgroup until it is told not to. What was recorded until then in those that nobody asked for is taken out here, and
//! counted.

use crate::cgroups::{Cgroups, Hierarchy, HierarchyKind, Resolved, resolve};
use crate::kernel::{CgroupEvent, Kernel};
use crate::plan::{CgroupTarget, Plan, Target};
use crate::process::Processes;
use crate::profile::cgroup::Cgroup;
use crate::profile::raw::{Parts, RawProfile, RawSample};
use anyhow::Result;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Cgroups to tell apart.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    cgroups: Cgroups,
    /// Those that are there before the recording begins, where only some are recorded, by their IDs.
    there: Vec<(u64, Arc<Cgroup>)>,
    /// Numbers of those that are not recorded.
    unwanted: HashSet<u16>,
}

impl Watched {
    /// Those of the plan, which gets to know who is in them; none where the kernel has no cgroups.
    ///
    /// # Errors
    /// When something is asked for that is not there.
    pub(super) fn of(plan: &mut Plan) -> Result<Option<Self>> {
        let watched = |cgroups, there| Self {
            cgroups,
            there,
            unwanted: HashSet::new(),
        };
        if let Target::Cgroups(CgroupTarget { wanted, pids }) = &mut plan.target {
            let resolved = resolve(wanted)?;
            let Resolved { cgroups, there, .. } = resolved;
            *pids = resolved.pids;
            return Ok(Some(watched(cgroups, there)));
        }
        let hierarchy = Hierarchy::all().into_iter().next();
        Ok(hierarchy.map(|hierarchy| watched(Cgroups::new(hierarchy, None), Vec::new())))
    }

    /// The kind of the hierarchy that they are in.
    pub(super) fn kind(&self) -> HierarchyKind {
        self.cgroups.kind().clone()
    }

    /// Tells the kernel half of those that are there, before it samples.
    pub(super) fn begin(&mut self, kernel: &mut Kernel, processes: &mut Processes) -> Result<()> {
        if self.cgroups.is_in_namespace()
            && let Some(own) = kernel.own_cgroup()?
        {
            self.cgroups.note_own(&own.names);
            self.meet(kernel, processes, &own);
            if self.cgroups.has_wanted() {
                // They have the host's paths from now on.
                self.there = self.cgroups.all();
            }
        }
        for (id, cgroup) in std::mem::take(&mut self.there) {
            if let Some(number) = kernel.cgroup_number(id) {
                self.note(kernel, processes, number, Some(cgroup));
            }
        }
        Ok(())
    }

    /// Takes in a cgroup that the kernel half has met.
    pub(super) fn meet(&mut self, kernel: &Kernel, processes: &mut Processes, event: &CgroupEvent) {
        if !processes.has_cgroup(event.number) {
            let cgroup = self.cgroups.meet(event.id, &event.names, event.is_cut);
            self.note(kernel, processes, event.number, Some(cgroup));
        }
    }

    fn note(
        &mut self,
        kernel: &Kernel,
        processes: &mut Processes,
        number: u16,
        cgroup: Option<Arc<Cgroup>>,
    ) {
        let is_wanted = cgroup.as_ref().is_none_or(|it| self.cgroups.wants(it));
        if !is_wanted {
            self.unwanted.insert(number);
        }
        kernel.decide_cgroup(number, is_wanted);
        processes.note_cgroup(number, cgroup);
    }

    /// Names the cgroups of what was drained that nothing was reported of, and takes out samples that are not wanted.
    pub(super) fn settle(
        &mut self,
        kernel: &mut Kernel,
        processes: &mut Processes,
        raw: &mut RawProfile,
    ) {
        let of_samples = raw.samples.iter().map(|sample| sample.who.cgroup);
        let of_wakers = raw.wakers.iter().map(|waker| waker.who.cgroup);
        let numbers: BTreeSet<u16> = of_samples.chain(of_wakers).collect();
        for number in numbers {
            // Their threads slept all the while, or the queue was full.
            if !processes.has_cgroup(number) {
                let id = kernel.cgroup_id(number);
                let cgroup = id.and_then(|id| self.cgroups.find(id));
                self.note(kernel, processes, number, cgroup);
            }
        }
        if !self.cgroups.has_wanted() {
            return;
        }
        raw.leave_out(|sample| {
            let number = sample.who.cgroup;
            let is_unknown = processes.cgroup(number).is_none();
            let is_unwanted = is_unknown || self.unwanted.contains(&number);
            if is_unwanted {
                kernel.leave_out(event_of(sample), sample.count, is_unknown);
            }
            is_unwanted
        });
    }
}

/// The event that counts a sample; none for what lasts.
fn event_of(sample: &RawSample) -> Option<u8> {
    (Parts::of(sample.thread_state, sample.event) != Parts::WAITS).then_some(sample.event)
}
