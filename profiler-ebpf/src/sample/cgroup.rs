//! The cgroup of a task, as a number, and whether it is wanted.
//!
//! In: a task's kernel structures. Out: the number of a slot of [`CGROUPS`]. Each cgroup of the hierarchy that user space chose
//! has one, from when a task is first seen in it; it is never given to another. Never: says what a cgroup is called.

use crate::{
    platform::{
        config::{self, config},
        loops::{Turn, repeat_anywhere},
        maps::{CGROUPS, Cgroup},
        memory,
        subprog::subprog,
    },
    task,
};
use core::{hint::black_box, ops::ControlFlow};
use profiler_common::{
    abi::{CGROUP_SLOTS, CROWDED_CGROUP, CgroupState, Counter, Switches},
    intern::{Hash, PROBES},
};

/// The number of the running task's cgroup; zero where cgroups are not told apart.
#[inline(always)]
pub(crate) fn current() -> u16 {
    if !config::has(Switches::CGROUPS) {
        return 0;
    }
    let task = task::current_address();
    if config::has(Switches::CGROUP_CONTROLLER) {
        cgroup_of(task) as u16
    } else {
        // Four reads less, where nanoseconds count.
        number(task, task::unified_cgroup()) as u16
    }
}

subprog! {
    /// That of the task at a kernel address.
    pub(crate) fn cgroup_of(task: u64) -> u32 {
        if !config::has(Switches::CGROUPS) {
            return 0;
        }
        number(task, memory::kernel(node(task) + u64::from(config!(cgroups.node_id))))
    }
}

/// Where the kernel keeps the directory of a task's cgroup.
#[inline(always)]
fn node(task: u64) -> u64 {
    let set: u64 = memory::kernel(task + u64::from(config!(cgroups.task_cgroups)));
    let named: u64 = memory::kernel(set + u64::from(config!(cgroup_in_set)));
    let cgroup: u64 = if config::has(Switches::CGROUP_CONTROLLER) {
        memory::kernel(named + u64::from(config!(cgroups.state_cgroup)))
    } else {
        named
    };
    memory::kernel(cgroup + u64::from(config!(cgroups.cgroup_node)))
}

/// The number of the cgroup that a task is in and that has this ID.
#[inline(always)]
fn number(task: u64, id: u64) -> u32 {
    // Nearly all are where they are looked for first.
    let place = hash(id).slot(0, CGROUP_SLOTS - 1);
    match CGROUPS.get(place) {
        Some(slot) if slot.id.load() == id && id != 0 => place + 1,
        _ => search_cgroup(task, id),
    }
}

#[inline(always)]
fn hash(id: u64) -> Hash {
    Hash::new(config!(seed)).with(id)
}

subprog! {
    /// The same, which may get a slot now.
    fn search_cgroup(task: u64, id: u64) -> u32 {
        if id == 0 {
            return 0;
        }
        let mut search = Search {
            hash: hash(id),
            id,
            node: node(task),
            found: u64::from(CROWDED_CGROUP),
        };
        repeat_anywhere(PROBES, PROBES, &mut search);
        // Hidden from the compiler, which would drop the number.
        black_box(search.found) as u32
    }
}

/// One slot after the other, up to that of the cgroup or a free one, which it gets.
struct Search {
    hash: Hash,
    id: u64,
    node: u64,
    found: u64,
}

impl Turn for Search {
    #[inline(always)]
    fn turn(&mut self, index: u32) -> ControlFlow<()> {
        let place = self.hash.slot(index, CGROUP_SLOTS - 1);
        let Some(slot) = CGROUPS.get(place) else {
            return ControlFlow::Break(());
        };
        let mut there = slot.id.load();
        if there == 0 {
            if slot.id.take(self.id) {
                slot.node.store(self.node);
                there = self.id;
            } else {
                there = slot.id.load();
            }
        }
        if there != self.id {
            return ControlFlow::Continue(());
        }
        self.found = u64::from(place + 1);
        ControlFlow::Break(())
    }
}

/// The slot of the cgroup of this number.
#[inline(always)]
pub(crate) fn of(number: u16) -> Option<&'static Cgroup> {
    CGROUPS.get(u32::from(number).wrapping_sub(1))
}

/// Whether a task in the cgroup of this number is to be recorded, or why not. One that user space has not heard of yet is
/// recorded: if it turns out to be none that was asked for, user space leaves it out.
#[inline(always)]
pub(crate) fn wanted(number: u16) -> Result<(), Counter> {
    let Some(slot) = of(number) else {
        return Err(Counter::LostCgroup);
    };
    if CgroupState(slot.state.load()).has(CgroupState::UNWANTED) {
        Err(Counter::FilteredTarget)
    } else {
        Ok(())
    }
}
