//! The constants that programs are loaded with.
//!
//! In: what to sample, what the kernel offers, and how large the maps are. Out: a [`Config`]. The verifier knows
//! its values, and drops the code that they switch off. Pure.

use super::size::Sizes;
use super::{Request, Support};
use crate::cgroups::HierarchyKind;
use crate::probe::{PageFaults, Probe, ThreadKind, Wakers};
use profiler_common::abi::{
    CallChoice, CallWeight, Config, FaultLayout, FileKinds, Switches, WantedCalls,
};
use profiler_common::runtime::RuntimeKinds;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The constants, without runtimes: see [`showing`].
pub(super) fn config(request: &Request, support: &Support, sizes: &Sizes) -> Config {
    let rows = Switches::UNWIND_ROWS.with(Switches::USER_STACKS);
    let rows = request.switches.has(rows) && support.can_find_mappings();
    let tell = request.switches.has(Switches::USER_STACKS) && support.can_find_mappings();
    let guess = rows && request.switches.has(Switches::GUESS) && support.bpf_loop != Some(false);
    let waits = request.waits().cloned().unwrap_or_default();
    let cgroups = request.cgroups.as_ref();
    let cgroup_in_set = cgroups.and_then(|kind| support.cgroup_in_set(kind));
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Config {
        seed: RandomState::new().hash_one(std::process::id()),
        switches: request
            .switches
            .without(Switches::UNWIND_ROWS)
            .with_if(Switches::UNWIND_ROWS, rows)
            .with_if(Switches::MAPPING_EVENTS, tell)
            .without(Switches::RUNTIMES)
            .without(Switches::GUESS)
            .with_if(Switches::GUESS, guess)
            .with_if(Switches::TASK_LAYOUT, support.layout.is_some())
            .with_if(Switches::PID_NAMESPACE, support.pid_namespace.is_some())
            .with_if(Switches::PLAIN_LOOPS, support.bpf_loop == Some(false))
            .with_if(
                Switches::STATE_OF_TASK,
                support.switch_tells_state == Some(false),
            )
            .with_if(Switches::CGROUPS, cgroup_in_set.is_some())
            .with_if(
                Switches::CGROUP_CONTROLLER,
                matches!(request.cgroups, Some(HierarchyKind::Controller(_))),
            )
            .with_if(Switches::WALL, request.is_wall())
            .with_if(Switches::WAKERS, request.has_wakers())
            .with_if(Switches::NO_WAIT_STACKS, waits.wakers == Wakers::Alone)
            .with_if(Switches::VARYING_WAITS, request.waits_vary)
            .with_if(
                Switches::FILE_NAMES,
                request.io().is_some_and(|io| io.names),
            )
            .with_if(Switches::SEVERAL_EVENTS, request.events() > 1)
            .with_if(
                Switches::AT_ENTRY,
                request.has(|probe| matches!(probe, Probe::Function(_) | Probe::Allocations)),
            )
            .with_if(
                Switches::USER_THREADS_ONLY,
                waits.threads == ThreadKind::User,
            )
            .with_if(
                Switches::KERNEL_THREADS_ONLY,
                waits.threads == ThreadKind::Kernel,
            ),
        target: request.target as u32,
        launched: request.launched().unwrap_or(0),
        cgroup_in_set: cgroup_in_set.unwrap_or(0),
        cgroups: support.cgroups.unwrap_or_default(),
        namespace_inum: support.pid_namespace.unwrap_or(0),
        tally_capacity: sizes.tallies,
        tally_index_mask: sizes.tally_slots() - 1,
        stack_blocks: sizes.blocks,
        stack_index_mask: sizes.stack_slots() - 1,
        states: waits.states.0,
        shortest_ns: nanoseconds(waits.shortest),
        longest_ns: nanoseconds(waits.longest),
        wait_sample_period_ns: nanoseconds(waits.wait_sample_period),
        calls: calls(request),
        layout: support.layout.unwrap_or_default(),
        mapping: support.mapping.unwrap_or_default(),
        files: support.files.unwrap_or_default(),
        faults: faults(request, support),
        switch_cpu_slots: request.lasting_event() as u32 * sizes.cpus,
        runtimes: RuntimeKinds::NONE,
        cpus: sizes.cpus,
        weighed: request.weighed,
    }
}

/// Whether programs with these constants can show the frames of interpreters, if that is wanted.
pub(super) fn shows_runtimes(config: &Config, request: &Request, support: &Support) -> bool {
    config.switches.has(Switches::UNWIND_ROWS)
        && request.switches.has(Switches::RUNTIMES)
        && support.bpf_loop != Some(false)
        && support.thread_pointer()
}

/// The same constants of programs that show the frames of these runtimes, and have replacements or not.
pub(super) fn showing(config: &Config, runtimes: RuntimeKinds, replacements: bool) -> Config {
    let others = (config.switches)
        .without(Switches::RUNTIMES)
        .without(Switches::REPLACEMENTS);
    Config {
        switches: others
            .with_if(Switches::RUNTIMES, runtimes != RuntimeKinds::NONE)
            .with_if(Switches::REPLACEMENTS, replacements),
        runtimes,
        ..*config
    }
}

/// All zeros where page faults are not looked at, so that nothing is kept of them.
fn faults(request: &Request, support: &Support) -> FaultLayout {
    match (support.page_faults(request.io()), &support.faults) {
        (PageFaults::None, _) | (_, Err(_)) => FaultLayout::default(),
        (PageFaults::Major | PageFaults::Waiting, Ok(layout)) => *layout,
    }
}

fn calls(request: &Request) -> CallChoice {
    let wanted = if request.io().is_some() {
        WantedCalls::Io
    } else if request.has(|probe| matches!(probe, Probe::Locks(_))) {
        WantedCalls::Futex
    } else {
        WantedCalls::All
    };
    let kinds = request.io().map_or(FileKinds::ALL, |io| io.kinds);
    CallChoice {
        wanted: wanted as u32,
        weight: request.timed_weight().unwrap_or(CallWeight::One) as u32,
        kinds: kinds.0,
        reserved: 0,
    }
}
