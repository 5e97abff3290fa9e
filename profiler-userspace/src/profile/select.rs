//! A part of a profile: samples of some owners, through some functions, with some frames.
//!
//! In: a [`Profile`], and a [`Selection`]. Out: the samples that are wanted, on the frames that are wanted, and what was
//! left out and why: the weights of both are those of the profile. Frames are looked at as pprof does: a pattern is met by
//! a function's name, its source file, or the file that its code is in; here also by what else a stack reads as, such as
//! the process and `[runnable]`.
//! Never: scales or moves a weight.

mod matches;
mod pattern;
mod stacks;
#[cfg(test)]
mod tests;

pub use pattern::{Pattern, Who};

use super::cgroup::CgroupPattern;
use super::model::{Labels, LabelsIndex, Profile, Sample};
use super::normalized::NormalizedStackIndex;
use super::off_cpu_view::Wakers;
use foldhash::HashSet;
use matches::Matches;
use stacks::Stacks;

/// Part of a profile that is wanted. All of it by default. Where several patterns are given for one thing, any of them will do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Only samples of these processes; of all if empty.
    pub processes: Vec<Who>,
    /// Only samples of these threads; of all if empty.
    pub threads: Vec<Who>,
    /// Only samples of these CPUs; of all if empty.
    pub cpus: Vec<u32>,
    /// Only samples in these cgroups; in all if empty.
    pub cgroups: Vec<CgroupPattern>,
    /// Only samples in whose stack a frame meets this; all if empty.
    pub focus: Vec<Pattern>,
    /// No samples in whose stack a frame meets this.
    pub ignore: Vec<Pattern>,
    /// No frames that meet this. What they called stays.
    pub hide: Vec<Pattern>,
    /// Stacks begin at the outermost frame that meets this; samples without one are left out.
    pub root_at: Vec<Pattern>,
    /// Whether a function that calls itself is one frame.
    pub collapse_recursion: bool,
    /// Only frames of what runtimes run; native and kernel time is that of the innermost of them. Samples without one are
    /// left out.
    pub runtime_only: bool,
}

/// Why samples were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Of another process.
    Process,
    /// Of another thread.
    Thread,
    /// Of another CPU.
    Cpu,
    /// In another cgroup.
    Cgroup,
    /// No frame meets the focus.
    Focus,
    /// A frame is to be ignored.
    Ignore,
    /// No frame is where stacks are to begin.
    RootAt,
    /// No frame is of what a runtime runs.
    Native,
}

/// Samples that were left out for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Why.
    pub reason: Reason,
    /// How much of the profile's weight.
    pub weight: u64,
    /// How many firings.
    pub count: u64,
}

/// Outcome of a selection.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Samples that are wanted.
    pub profile: Profile,
    /// Samples that were left out, a reason once. The first reason counts, in the order of [`Reason`].
    pub left_out: Vec<LeftOut>,
    /// How much of the weight is on stacks of which frames were hidden.
    pub hidden: u64,
}

/// Why nothing can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No sample has such a label.
    #[error("the profile has no {0}")]
    NoLabel(&'static str),
}

impl Selection {
    /// Whether it is all of a profile.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Selects.
    ///
    /// # Errors
    /// When owners are named in a way in which the profile has no labels.
    pub fn of(&self, profile: Profile) -> Result<Selected, SelectError> {
        let owners = self.owners(&profile)?;
        let is_alone = profile
            .off_cpu
            .is_some_and(|view| view.wakers == Wakers::Alone);
        let mut matches = Matches::new(&profile, self);
        let mut selecting = Selecting {
            owners: profile
                .labels
                .iter()
                .map(|labels| OwnerMatch::new(self, labels))
                .collect(),
            stacks: Stacks::new(self, &profile),
            profile,
            is_alone,
            left_out: Vec::new(),
            hidden: 0,
        };
        let samples = std::mem::take(&mut selecting.profile.samples);
        for mut sample in samples {
            let reason = owners
                .reason(&sample)
                .or_else(|| matches.reason(&selecting.profile, &sample));
            let reason = reason.or_else(|| selecting.change(&mut sample).err());
            match reason {
                Some(reason) => selecting.leave_out(reason, &sample),
                None => selecting.profile.push(sample),
            }
        }
        let owners = std::mem::take(&mut selecting.owners);
        if !self.root_at.is_empty() {
            selecting
                .profile
                .change_owners(is_alone, |at, labels| owners[at].rooted(labels));
        }
        if owners.iter().any(|owner| owner.is_hidden) {
            for of_wakers in [false, true] {
                selecting
                    .profile
                    .change_owners(of_wakers, |at, labels| match owners.get(at) {
                        Some(owner) if owner.is_hidden => Labels {
                            comm: None,
                            process: None,
                            ..labels
                        },
                        _ => labels,
                    });
            }
        }
        Ok(Selected {
            profile: selecting.profile,
            left_out: selecting.left_out,
            hidden: selecting.hidden,
        })
    }

    /// Which labels are wanted.
    fn owners(&self, profile: &Profile) -> Result<Owners, SelectError> {
        let labels = || {
            profile
                .samples()
                .iter()
                .map(|sample| profile.labels_at(sample.labels))
        };
        let is_id = |who: &Who| matches!(who, Who::Id(_));
        let need =
            |is_asked: bool, has: fn(&Labels) -> bool, what| match is_asked && !labels().any(has) {
                true => Err(SelectError::NoLabel(what)),
                false => Ok(()),
            };
        need(
            self.processes.iter().any(is_id),
            |of| of.pid.is_some(),
            "process IDs",
        )?;
        need(
            self.threads.iter().any(is_id),
            |of| of.tid.is_some(),
            "thread IDs; record with --per-thread",
        )?;
        need(
            !self.cpus.is_empty(),
            |of| of.cpu.is_some(),
            "CPUs; record with --per-cpu",
        )?;
        need(
            !self.cgroups.is_empty(),
            |of| of.cgroup.is_some(),
            "cgroups; recordings of flame-bpf have them where the kernel tells",
        )?;
        let is_in = |labels: &Labels| {
            let cgroup = labels.cgroup.as_deref();
            cgroup.is_some_and(|cgroup| self.cgroups.iter().any(|it| it.is_met_by(cgroup)))
        };
        // A process may be called as one of its threads is.
        let named = labels().filter(|labels| {
            let names = process_names(labels);
            self.processes.iter().any(|who| who.is_name(&names))
        });
        let named: HashSet<_> = named
            .filter_map(|labels| Some((labels.pid?, labels.start)))
            .collect();
        let reason = |labels: &Labels| {
            let of_named = || {
                labels
                    .pid
                    .is_some_and(|pid| named.contains(&(pid, labels.start)))
            };
            let is_process = |who: &Who| who.is(labels.pid, &process_names(labels)) || of_named();
            let thread = labels.comm.as_deref().or(labels.name());
            if !self.processes.is_empty() && !self.processes.iter().any(is_process) {
                Some(Reason::Process)
            } else if !self.threads.is_empty()
                && !self
                    .threads
                    .iter()
                    .any(|who| who.is(labels.tid, thread.as_slice()))
            {
                Some(Reason::Thread)
            } else if !self.cpus.is_empty()
                && !labels.cpu.is_some_and(|cpu| self.cpus.contains(&cpu))
            {
                Some(Reason::Cpu)
            } else if !self.cgroups.is_empty() && !is_in(labels) {
                Some(Reason::Cgroup)
            } else {
                None
            }
        };
        let reasons = profile.labels.iter().map(reason).collect();
        Ok(Owners(reasons))
    }
}

/// By labels, why their samples are left out.
struct Owners(Vec<Option<Reason>>);

impl Owners {
    fn reason(&self, sample: &Sample) -> Option<Reason> {
        self.0[sample.labels.0 as usize]
    }
}

/// Names by which a process may be selected: its own, that of a runtime without what it runs, and a thread's.
fn process_names(labels: &Labels) -> Vec<&str> {
    let name = labels.process.as_deref();
    let runtime = name.and_then(|name| Some(name.split_once(' ')?.0));
    let runtime = runtime.filter(|name| ["java", "node", "nodejs"].contains(name));
    [name, runtime, labels.comm.as_deref()]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether the name of an owner, which a stack begins with, meets patterns for frames.
#[derive(Clone, Copy)]
struct OwnerMatch {
    is_hidden: bool,
    is_root: bool,
}

impl OwnerMatch {
    fn new(selection: &Selection, labels: &Labels) -> Self {
        let meets = |patterns: &[Pattern]| {
            let name = labels.name();
            name.is_some_and(|name| patterns.iter().any(|pattern| pattern.is_met_by(name)))
        };
        let is_hidden = meets(&selection.hide);
        Self {
            is_hidden,
            is_root: !is_hidden && meets(&selection.root_at),
        }
    }

    /// Labels without what stands before the new root; process IDs stay.
    fn rooted(self, labels: Labels) -> Labels {
        let Labels {
            pid,
            start,
            process,
            comm,
            tid,
            ..
        } = labels;
        match self.is_root {
            true => Labels {
                pid,
                start,
                process,
                comm,
                tid,
                ..Labels::default()
            },
            false => Labels {
                pid,
                start,
                ..Labels::default()
            },
        }
    }
}

/// A selection that is under way.
struct Selecting<'a> {
    /// By labels of the profile as it was.
    owners: Vec<OwnerMatch>,
    stacks: Stacks<'a>,
    profile: Profile,
    /// Whether the stacks that are shown are those of wakers.
    is_alone: bool,
    left_out: Vec<LeftOut>,
    hidden: u64,
}

/// A user stack and a kernel stack.
type Pair = [Option<NormalizedStackIndex>; 2];

impl Selecting<'_> {
    fn leave_out(&mut self, reason: Reason, sample: &Sample) {
        let Sample { weight, count, .. } = *sample;
        match self
            .left_out
            .iter_mut()
            .find(|left_out| left_out.reason == reason)
        {
            Some(left_out) => {
                left_out.weight = left_out.weight.saturating_add(weight);
                left_out.count = left_out.count.saturating_add(count);
            }
            None => self.left_out.push(LeftOut {
                reason,
                weight,
                count,
            }),
        }
    }

    /// Changes the stacks of a sample, unless they have no root.
    fn change(&mut self, sample: &mut Sample) -> Result<(), Reason> {
        let waker = sample.waker.map(|index| *self.profile.waker_at(index));
        let mut hides = false;
        let shown = match self.is_alone {
            true => waker.and_then(|waker| waker.user),
            false => sample.user,
        };
        if !self.stacks.has_wanted_kind(&self.profile, shown) {
            return Err(Reason::Native);
        }
        if self.is_alone {
            // The stacks that are shown are of those who ended the waits.
            if waker.is_none() && self.stacks.cuts() {
                return Err(Reason::RootAt);
            }
        } else {
            let (own, owner) = (
                [sample.user, sample.kernel],
                self.owners[sample.labels.0 as usize],
            );
            hides = owner.is_hidden;
            [sample.user, sample.kernel] = self.pair(own, !owner.is_root, &mut hides)?;
        }
        if let Some(mut waker) = waker {
            let (before, owner) = (
                [waker.user, waker.kernel],
                self.owners[waker.labels.0 as usize],
            );
            hides |= self.is_alone && owner.is_hidden;
            let cuts = self.is_alone && !owner.is_root;
            [waker.user, waker.kernel] = self.pair(before, cuts, &mut hides)?;
            if before != [waker.user, waker.kernel] {
                sample.waker = Some(self.profile.waker(waker));
            }
        }
        if hides {
            self.hidden = self.hidden.saturating_add(sample.weight);
        }
        Ok(())
    }

    /// Two stacks as they are wanted, from their root on if `cuts`. Says whether frames were hidden.
    fn pair(&mut self, pair: Pair, cuts: bool, hides: &mut bool) -> Result<Pair, Reason> {
        let [user, kernel] =
            pair.map(|stack| stack.map(|stack| self.stacks.change(&mut self.profile, stack)));
        for changed in [&user, &kernel].into_iter().flatten() {
            *hides |= changed.hides;
        }
        if !cuts || !self.stacks.cuts() {
            return Ok([user, kernel].map(|changed| changed.and_then(|changed| changed.whole)));
        }
        let from_root =
            |changed: Option<stacks::Changed>| changed.and_then(|changed| changed.from_root);
        match (from_root(user), from_root(kernel)) {
            (Some(user), _) => Ok([Some(user), kernel.and_then(|kernel| kernel.whole)]),
            (None, Some(kernel)) => Ok([None, Some(kernel)]),
            (None, None) => Err(Reason::RootAt),
        }
    }
}

impl Profile {
    /// Has other labels for samples, or for wakers: those that `changed` makes of each, by its number.
    fn change_owners(&mut self, of_wakers: bool, changed: impl Fn(usize, Labels) -> Labels) {
        let all: Vec<_> = self.labels.iter().cloned().enumerate().collect();
        let numbers: Vec<_> = (all.into_iter())
            .map(|(at, labels)| self.labels(changed(at, labels)))
            .collect();
        let of_samples = self.samples.iter_mut().map(|sample| &mut sample.labels);
        let of_wakers_too = self.wakers.iter_mut().map(|waker| &mut waker.labels);
        let change = |labels: &mut LabelsIndex| *labels = numbers[labels.0 as usize];
        match of_wakers {
            true => of_wakers_too.for_each(change),
            false => of_samples.for_each(change),
        }
    }
}
