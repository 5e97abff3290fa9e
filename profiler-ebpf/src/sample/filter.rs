//! Is this task a target?

use crate::{
    platform::{
        config::{self, config},
        maps::TARGETS,
        memory,
        subprog::subprog,
    },
    sample::{cgroup, counters::Outcome},
    task::{self, Ids},
};
use profiler_common::abi::{Counter, Switches, TargetKind};

/// The running task's IDs, or why it is not recorded.
#[inline(always)]
pub(crate) fn current() -> Result<Ids, Counter> {
    let ids = task::current().ok_or(Counter::FilteredNamespace)?;
    if ids.tid == 0 {
        // The idle task belongs to every CPU and to no target.
        let wanted =
            config::has(Switches::INCLUDE_IDLE) && config!(target) == TargetKind::All as u32;
        return if wanted {
            Ok(ids)
        } else {
            Err(Counter::FilteredIdle)
        };
    }
    if config!(target) == TargetKind::Cgroups as u32 {
        return cgroup::wanted(cgroup::current()).map(|()| ids);
    }
    if config!(target) == TargetKind::All as u32 || is_target(id(ids)) {
        Ok(ids)
    } else {
        Err(Counter::FilteredTarget)
    }
}

subprog! {
    /// As [`current`], for programs of which there are many.
    pub(crate) fn current_shared() -> Result<Ids, Outcome> {
        current().map_err(Outcome::from)
    }
}

/// The IDs of the task at a kernel address, if it is to be recorded.
#[inline(always)]
pub(crate) fn task(task: u64) -> Option<Ids> {
    let ids = task::of(task)?;
    if ids.tid == 0 {
        return None;
    }
    let wanted = if config!(target) == TargetKind::Cgroups as u32 {
        cgroup::wanted(cgroup::cgroup_of(task) as u16).is_ok()
    } else {
        config!(target) == TargetKind::All as u32 || is_target(id(ids))
    };
    wanted.then_some(ids)
}

/// Whether a task that is no target may have been one when something began that goes on: it was in another cgroup then.
#[inline(always)]
pub(crate) fn may_have_been() -> bool {
    config!(target) == TargetKind::Cgroups as u32
}

/// Whether the task at a kernel address is of the wanted kind: user or kernel thread.
#[inline(always)]
pub(crate) fn is_wanted_kind(task: u64) -> bool {
    /// The task flag of kernel threads (`include/linux/sched.h`, `PF_KTHREAD`).
    const KERNEL_THREAD: u32 = 0x20_0000;
    let (user, kernel) = (
        config::has(Switches::USER_THREADS_ONLY),
        config::has(Switches::KERNEL_THREADS_ONLY),
    );
    if !user && !kernel {
        return true;
    }
    let flags: u32 = memory::kernel(task + u64::from(config!(layout.task_flags)));
    (flags & KERNEL_THREAD != 0) == kernel
}

/// Updates the targets when task `parent` has made `child`, both kernel addresses: a child of a target
/// becomes one if children are followed, and an ID that a target had and another process now has stops being
/// one.
#[inline(always)]
pub(crate) fn forked(parent: u64, child: u64) {
    let Some(child) = task::of(child) else { return };
    let threads = config!(target) == TargetKind::Threads as u32;
    if !threads && child.tid != child.tgid {
        // A thread: its process counts, and that is not new.
        return;
    }
    let follow = config::has(Switches::FOLLOW_CHILDREN)
        && task::of(parent).is_some_and(|parent| is_target(id(parent)));
    mark(id(child), follow);
}

/// Makes the task at a kernel address a target if it is the command that we launch: it has run its program's file just
/// now, and was a copy of ourselves before.
#[inline(always)]
pub(crate) fn executed(task: u64) {
    if let Some(ids) = task::of(task)
        && ids.tgid == config!(launched)
    {
        mark(ids.tgid, true);
    }
}

/// The ID by which targets are specified.
#[inline(always)]
fn id(ids: Ids) -> u32 {
    if config!(target) == TargetKind::Threads as u32 {
        ids.tid
    } else {
        ids.tgid
    }
}

#[inline(always)]
fn is_target(id: u32) -> bool {
    TARGETS
        .get(id / 64)
        .is_some_and(|word| word.load() & (1 << (id % 64)) != 0)
}

#[inline(always)]
fn mark(id: u32, on: bool) {
    let bit = 1u64 << (id % 64);
    if let Some(word) = TARGETS.get(id / 64) {
        if on {
            word.set(bit);
        } else if word.load() & bit != 0 {
            word.clear(bit);
        }
    }
}
