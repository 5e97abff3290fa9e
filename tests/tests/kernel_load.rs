//! The verifier accepts every program, in every configuration that switches other code on.
//!
//! The instruction counts are printed; `docs/internals/architecture.md` records them. Those of probes other than
//! on-CPU are in `kernel_load_probes.rs`.

use flame_bpf::kernel::{Kernel, Request, Support};
use flame_bpf::probe::{Locks, Probe, Waits, Wakers, Wall};
use flame_bpf::unwind::loader::CodeKeys as _;
use flame_bpf_tests::{
    AUTO, BOTH, kernel_test, load, load_probe, programs, request, require, walks_by_tables,
    without_loops,
};
use profiler_common::abi::{CallWeight, Switches, TargetKind};

#[kernel_test]
fn the_whole_machine_is_sampled_without_tracepoints() {
    let kernel = load("whole machine", BOTH, TargetKind::All, &Support::detect());
    assert_eq!(programs(&kernel), ["code_key", "on_cpu"]);
}

#[kernel_test]
fn unwind_tables_need_the_program_that_identifies_files() {
    let support = require!(walks_by_tables());
    let mut kernel = load("by rows", AUTO, TargetKind::All, &support);
    assert_eq!(programs(&kernel), ["code_key", "on_cpu"]);
    assert!(kernel.take_tables().is_some() && kernel.take_tables().is_none());
    let rows_alone = BOTH.with(Switches::UNWIND_ROWS);
    let kernel = load("by rows alone", rows_alone, TargetKind::All, &support);
    assert_eq!(programs(&kernel), ["code_key", "on_cpu"]);
}

#[kernel_test]
fn a_file_has_one_key_whoever_maps_it() {
    let support = require!(walks_by_tables());
    let mut kernel = load("by rows", AUTO, TargetKind::All, &support);
    let mut key = |path: &std::path::Path| kernel.code_key(&std::fs::File::open(path).unwrap());
    let copied = tempfile::NamedTempFile::new().unwrap();
    let ours = std::env::current_exe().unwrap();
    std::fs::copy(&ours, copied.path()).unwrap();
    let own = key(&ours).expect("a file can be mapped");
    let copy = key(copied.path()).expect("a file can be mapped");
    assert_ne!(own, copy);
    assert_eq!(key(&ours), Some(own));
    assert_eq!(key(std::path::Path::new("/proc/self/exe")), Some(own));
    // Written again, it is another file.
    std::fs::write(copied.path(), "short").unwrap();
    let rewritten = key(copied.path()).expect("a file can be mapped");
    assert_eq!(
        (rewritten.device, rewritten.inode),
        (copy.device, copy.inode)
    );
    assert_ne!(rewritten.modified, copy.modified);
    assert_eq!(key(std::path::Path::new("/dev/null")), None);
    // Our own code, where the kernel itself mapped it.
    let here = a_file_has_one_key_whoever_maps_it as fn() as usize as u64;
    assert_eq!(kernel.code_key_at(here), Some(own));
    assert_eq!(kernel.code_key_at(8), None);
}

#[kernel_test]
fn named_targets_load_the_fork_tracepoint() {
    let support = Support::detect();
    for target in [TargetKind::Processes, TargetKind::Threads] {
        let switches = BOTH.with(Switches::FOLLOW_CHILDREN);
        let kernel = load(&format!("{target:?}"), switches, target, &support);
        assert_eq!(programs(&kernel), ["code_key", "fork", "on_cpu"]);
    }
}

#[kernel_test]
fn the_verifier_accepts_every_switch() {
    let support = Support::detect();
    for (what, switches) in [
        ("user stacks", Switches::USER_STACKS),
        ("kernel stacks", Switches::KERNEL_STACKS),
        (
            "all labels",
            BOTH.with(Switches::PER_THREAD)
                .with(Switches::PER_CPU)
                .with(Switches::INCLUDE_IDLE),
        ),
    ] {
        drop(load(what, switches, TargetKind::All, &support));
    }
}

#[kernel_test]
fn a_kernel_without_bpf_loop_walks_by_frame_pointers() {
    let support = without_loops();
    let target = TargetKind::Processes;
    let mut kernel = load("without loops", AUTO, target, &support);
    assert_eq!(programs(&kernel), ["fork", "on_cpu"]);
    assert!(kernel.take_tables().is_none());
    let waits = Probe::OffCpu(Waits::default());
    drop(load_probe("without loops", &waits, AUTO, target, &support));
    let everything = Probe::Wall(Wall {
        waits: Waits::default(),
        idle_threads: true,
    });
    drop(load_probe(
        "without loops",
        &everything,
        AUTO,
        target,
        &support,
    ));
}

#[kernel_test]
fn a_kernel_without_btf_still_samples_the_whole_machine() {
    let support = Support {
        layout: None,
        mapping: None,
        ..Support::detect()
    };
    let kernel = load("without BTF", BOTH, TargetKind::Processes, &support);
    assert_eq!(programs(&kernel), ["on_cpu"]);
}

#[kernel_test]
fn the_verifier_accepts_another_pid_namespace() {
    let support = Support {
        // Of no task: what matters here is that the code is switched on.
        pid_namespace: Some(1),
        ..Support::detect()
    };
    let switches = BOTH.with(Switches::FOLLOW_CHILDREN);
    let kernel = load("PID namespace", switches, TargetKind::Processes, &support);
    assert_eq!(programs(&kernel), ["code_key", "fork", "on_cpu"]);
    let waits = |wakers| {
        Probe::OffCpu(Waits {
            wakers,
            ..Waits::default()
        })
    };
    let everything = Probe::Wall(Wall {
        waits: Waits::default(),
        idle_threads: true,
    });
    for probe in [
        waits(Wakers::None),
        everything,
        Probe::Calls(CallWeight::One),
        Probe::Calls(CallWeight::Time),
        Probe::Locks(Locks {
            kernel: true,
            user: true,
        }),
        Probe::Allocations,
        waits(Wakers::Above),
        waits(Wakers::Alone),
    ] {
        let what = format!("PID namespace, {probe:?}");
        drop(load_probe(
            &what,
            &probe,
            switches,
            TargetKind::Processes,
            &support,
        ));
    }
}

#[kernel_test]
fn maps_stay_below_the_given_memory_limit() {
    let support = Support::detect();
    for mebibytes in [3u64, 8, 32] {
        let request = Request {
            map_memory: mebibytes << 20,
            ..request(vec![Probe::OnCpu], BOTH, TargetKind::All)
        };
        let kernel = Kernel::load(request, &support).unwrap();
        assert!(kernel.map_bytes() <= mebibytes << 20, "{mebibytes} MiB");
    }
}
