//! As `kernel_load.rs`, of what shows the frames of interpreters.

use flame_bpf::probe::{Function, Io, Locks, Probe, Tracepoint, Waits, Wakers, Wall};
use flame_bpf_tests::{
    INTERPRETED, kernel_test, load_probe, load_runtimes, require, walks_by_tables,
};
use profiler_common::abi::{CallWeight, FileKinds, TargetKind};
use profiler_common::runtime::{RuntimeKind, RuntimeKinds};

/// How many instructions of the program that samples the verifier looked at, with these runtimes.
fn verified(what: &str, runtimes: RuntimeKinds) -> Option<u32> {
    let support = walks_by_tables().expect("asked for before");
    let target = TargetKind::All;
    let kernel = load_runtimes(
        what,
        vec![Probe::OnCpu],
        INTERPRETED,
        target,
        &support,
        runtimes,
    );
    let programs = kernel.verified();
    let mut programs = programs.iter();
    let sampling = programs.find(|loaded| loaded.program.name() == "on_cpu");
    sampling.expect("it is loaded").instructions
}

#[kernel_test]
fn what_belongs_to_runtimes_that_are_not_there_is_not_loaded() {
    require!(walks_by_tables());
    let none = verified("no runtime", RuntimeKinds::NONE);
    let all = verified("all runtimes", RuntimeKinds::ALL);
    for kind in RuntimeKind::ALL {
        let one = verified(&format!("{kind:?}"), kind.into());
        // Where the kernel does not say how many, all are none.
        if none.is_some() {
            assert!(
                none < one && one < all,
                "{kind:?}: {none:?} {one:?} {all:?}"
            );
        }
    }
}

#[kernel_test]
fn the_verifier_accepts_all_runtimes_in_every_probe() {
    let support = require!(walks_by_tables());
    let waits = |wakers| Waits {
        wakers,
        ..Waits::default()
    };
    let probes = [
        Probe::OnCpu,
        Probe::OffCpu(waits(Wakers::None)),
        Probe::OffCpu(waits(Wakers::Above)),
        Probe::OffCpu(waits(Wakers::Alone)),
        Probe::Wall(Wall {
            waits: Waits::default(),
            idle_threads: true,
        }),
        Probe::Tracepoint(Tracepoint {
            category: "sched".to_owned(),
            name: "sched_switch".to_owned(),
        }),
        Probe::Function(Function {
            file: "libc".into(),
            name: "malloc".to_owned(),
        }),
        Probe::Allocations,
        Probe::Calls(CallWeight::One),
        Probe::Calls(CallWeight::Time),
        Probe::Io(Io {
            weight: CallWeight::Bytes,
            kinds: FileKinds::ALL,
            names: true,
        }),
        Probe::Locks(Locks {
            kernel: true,
            user: true,
        }),
    ];
    for probe in probes {
        let what = format!("all runtimes, {probe:?}");
        drop(load_probe(
            &what,
            &probe,
            INTERPRETED,
            TargetKind::Processes,
            &support,
        ));
    }
}
