//! Loading the kernel half without attaching it: what the verifier says in one configuration or another.

#![expect(
    clippy::print_stdout,
    reason = "instruction counts are for the reader of the test log"
)]

use crate::feature::broken;
use flame_bpf::cgroups::HierarchyKind;
use flame_bpf::kernel::{Kernel, Request, Support};
use flame_bpf::probe::Probe;
use profiler_common::abi::{Switches, TargetKind};
use profiler_common::runtime::RuntimeKinds;

/// User and kernel stacks.
pub const BOTH: Switches = Switches::USER_STACKS.with(Switches::KERNEL_STACKS);

/// How stacks are walked unless told otherwise.
pub const AUTO: Switches = BOTH
    .with(Switches::UNWIND_ROWS)
    .with(Switches::FRAME_POINTERS);

/// As [`AUTO`], with the frames of interpreters.
pub const INTERPRETED: Switches = AUTO.with(Switches::RUNTIMES).with(Switches::GUESS);

/// A request for probes with as much memory as usual, of no target in particular.
pub fn request(probes: Vec<Probe>, switches: Switches, target: TargetKind) -> Request {
    Request {
        switches,
        target,
        ids: Vec::new(),
        cgroups: Some(HierarchyKind::Unified),
        map_memory: 32 << 20,
        unwind_memory: 256 << 20,
        probes,
        weighed: 0,
        waits_vary: false,
    }
}

/// Loads the programs of on-CPU sampling, and prints what the verifier saw of each; `what` is told with it.
///
/// # Panics
/// The kernel rejects one.
#[track_caller]
pub fn load(what: &str, switches: Switches, target: TargetKind, support: &Support) -> Kernel {
    load_probe(what, &Probe::OnCpu, switches, target, support)
}

/// As [`load`], of any probe.
///
/// # Panics
/// As [`load`].
#[track_caller]
pub fn load_probe(
    what: &str,
    probe: &Probe,
    switches: Switches,
    target: TargetKind,
    support: &Support,
) -> Kernel {
    load_probes(what, vec![probe.clone()], switches, target, support)
}

/// As [`load`], of several probes in one run. Every second of them weighs its period.
///
/// # Panics
/// As [`load`].
#[track_caller]
pub fn load_probes(
    what: &str,
    probes: Vec<Probe>,
    switches: Switches,
    target: TargetKind,
    support: &Support,
) -> Kernel {
    load_runtimes(what, probes, switches, target, support, RuntimeKinds::ALL)
}

/// As [`load_probes`], with what shows the frames of these runtimes, if `switches` ask for frames of interpreters.
///
/// # Panics
/// As [`load`].
#[track_caller]
pub fn load_runtimes(
    what: &str,
    probes: Vec<Probe>,
    switches: Switches,
    target: TargetKind,
    support: &Support,
    runtimes: RuntimeKinds,
) -> Kernel {
    let request = Request {
        weighed: 0b1010_1010,
        ..request(probes, switches, target)
    };
    let loaded = Kernel::load(request, support).and_then(|mut kernel| {
        kernel.load_probes(runtimes)?;
        Ok(kernel)
    });
    let kernel = loaded.unwrap_or_else(|error| {
        let cause = std::error::Error::source(&error);
        broken(&format!("{what}: {error}: {cause:?}"))
    });
    for program in kernel.verified() {
        println!(
            "{what}: {} {:?} instructions",
            program.program.name(),
            program.instructions
        );
    }
    kernel
}

/// The names of the programs that were loaded, in order.
pub fn programs(kernel: &Kernel) -> Vec<String> {
    let mut names: Vec<String> = kernel
        .verified()
        .into_iter()
        .map(|loaded| loaded.program.name().to_owned())
        .collect();
    names.sort();
    names
}

/// Features of a kernel that has no `bpf_loop`, and so walks by frame pointers alone.
pub fn without_loops() -> Support {
    Support {
        bpf_loop: Some(false),
        ..Support::detect()
    }
}
