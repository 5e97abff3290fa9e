//! The verifier accepts every program, in every configuration that switches other code on.
//!
//! The instruction counts are printed; `docs/kernel.md` records them.

#![expect(
    clippy::print_stdout,
    reason = "instruction counts are for the reader of the test log"
)]

use flame_bpf::kernel::{Kernel, Request, Support};
use flame_bpf::probe::{Function, Io, Locks, Probe, ThreadKind, Tracepoint, Waits, Wakers, Wall};
use flame_bpf_tests::{kernel_turn, require, walks_by_tables};
use profiler_common::abi::{CallWeight, FileKinds, MAX_TRACKS, Switches, TargetKind};

const BOTH: Switches = Switches::USER_STACKS.with(Switches::KERNEL_STACKS);

/// How stacks are walked unless told otherwise.
const AUTO: Switches = BOTH
    .with(Switches::UNWIND_ROWS)
    .with(Switches::FRAME_POINTERS);

fn load(what: &str, switches: Switches, target: TargetKind, support: &Support) -> Kernel {
    load_probe(what, &Probe::OnCpu, switches, target, support)
}

fn load_probe(
    what: &str,
    probe: &Probe,
    switches: Switches,
    target: TargetKind,
    support: &Support,
) -> Kernel {
    load_probes(what, vec![probe.clone()], switches, target, support)
}

/// Every second of the probes weighs its period.
fn load_probes(
    what: &str,
    probes: Vec<Probe>,
    switches: Switches,
    target: TargetKind,
    support: &Support,
) -> Kernel {
    let request = Request {
        switches,
        target,
        ids: Vec::new(),
        map_memory: 32 << 20,
        unwind_memory: 256 << 20,
        probes,
        weighed: 0b1010_1010,
    };
    let kernel = Kernel::load(request, support)
        .unwrap_or_else(|error| panic!("{what}: {error}: {:?}", std::error::Error::source(&error)));
    for program in kernel.verified() {
        println!(
            "{what}: {} {:?} instructions",
            program.name, program.instructions
        );
    }
    kernel
}

fn programs(kernel: &Kernel) -> Vec<String> {
    let mut names: Vec<String> = kernel
        .verified()
        .into_iter()
        .map(|program| program.name)
        .collect();
    names.sort();
    names
}

#[test]
fn the_whole_machine_needs_no_tracepoint() {
    let _turn = require!(kernel_turn());
    let kernel = load("whole machine", BOTH, TargetKind::All, &Support::detect());
    assert_eq!(programs(&kernel), ["code_key", "on_cpu"]);
}

#[test]
fn unwind_tables_need_a_program_that_knows_files() {
    let _turn = require!(kernel_turn());
    let support = require!(walks_by_tables());
    let mut kernel = load("by rows", AUTO, TargetKind::All, &support);
    assert_eq!(programs(&kernel), ["code_key", "on_cpu"]);
    assert!(kernel.take_tables().is_some() && kernel.take_tables().is_none());
    let rows_alone = BOTH.with(Switches::UNWIND_ROWS);
    let kernel = load("by rows alone", rows_alone, TargetKind::All, &support);
    assert_eq!(programs(&kernel), ["code_key", "on_cpu"]);
}

#[test]
fn the_kernel_knows_a_file_whoever_maps_it() {
    let _turn = require!(kernel_turn());
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
    let here = the_kernel_knows_a_file_whoever_maps_it as fn() as usize as u64;
    assert_eq!(kernel.code_key_at(here), Some(own));
    assert_eq!(kernel.code_key_at(8), None);
}

#[test]
fn named_targets_need_the_tracepoint_too() {
    let _turn = require!(kernel_turn());
    let support = Support::detect();
    for target in [TargetKind::Processes, TargetKind::Threads] {
        let switches = BOTH.with(Switches::FOLLOW_CHILDREN);
        let kernel = load(&format!("{target:?}"), switches, target, &support);
        assert_eq!(programs(&kernel), ["code_key", "fork", "on_cpu"]);
    }
}

#[test]
fn every_switch_is_accepted() {
    let _turn = require!(kernel_turn());
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

/// What a kernel offers that has no `bpf_loop`, and so walks by frame pointers alone.
fn without_loops() -> Support {
    Support {
        bpf_loop: Some(false),
        ..Support::detect()
    }
}

#[test]
fn a_kernel_without_loops_walks_by_frame_pointers() {
    let _turn = require!(kernel_turn());
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

#[test]
fn a_kernel_without_type_information_still_samples_the_whole_machine() {
    let _turn = require!(kernel_turn());
    let support = Support {
        layout: None,
        mapping: None,
        ..Support::detect()
    };
    let kernel = load("without BTF", BOTH, TargetKind::Processes, &support);
    assert_eq!(programs(&kernel), ["on_cpu"]);
}

#[test]
fn another_pid_namespace_is_accepted() {
    let _turn = require!(kernel_turn());
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

#[test]
fn maps_stay_below_the_limit_that_was_given() {
    let _turn = require!(kernel_turn());
    let support = Support::detect();
    for mebibytes in [3u64, 8, 32] {
        let request = Request {
            switches: BOTH,
            target: TargetKind::All,
            ids: Vec::new(),
            map_memory: mebibytes << 20,
            unwind_memory: 256 << 20,
            probes: vec![Probe::OnCpu],
            weighed: 0,
        };
        let kernel = Kernel::load(request, &support).unwrap();
        assert!(kernel.map_bytes() <= mebibytes << 20, "{mebibytes} MiB");
    }
}

#[test]
fn off_the_cpu_every_switch_is_accepted() {
    let _turn = require!(kernel_turn());
    let support = Support::detect();
    for (what, switches) in [
        ("both stacks", BOTH),
        ("user stacks", Switches::USER_STACKS),
        ("kernel stacks", Switches::KERNEL_STACKS),
        (
            "tables",
            BOTH.with(Switches::UNWIND_ROWS)
                .with(Switches::FRAME_POINTERS)
                .with(Switches::PER_THREAD),
        ),
    ] {
        let probe = Probe::OffCpu(Waits {
            threads: ThreadKind::User,
            ..Waits::default()
        });
        let what = format!("off-CPU, {what}");
        let mut kernel = load_probe(&what, &probe, switches, TargetKind::Processes, &support);
        let loaded = programs(&kernel);
        for name in ["asleep", "fork", "off_cpu"] {
            assert!(
                loaded.iter().any(|loaded| loaded == name),
                "{name} of {loaded:?}"
            );
        }
        // Nobody is a target, so nobody is asleep.
        kernel.attach_hooks(&[]).expect("the tracepoint is there");
        assert_eq!(kernel.asleep().expect("tasks can be gone through"), []);
    }
}

/// Loads the programs of a probe by every way to walk, and says what the verifier saw.
#[track_caller]
fn assert_accepted(probe: &Probe, names: &[&str]) {
    for (what, switches, support) in [
        ("user stacks", Switches::USER_STACKS, Support::detect()),
        ("tables", AUTO.with(Switches::PER_THREAD), Support::detect()),
        ("without loops", AUTO, without_loops()),
    ] {
        let kernel = load_probe(what, probe, switches, TargetKind::Processes, &support);
        let loaded = programs(&kernel);
        for name in names {
            assert!(
                loaded.iter().any(|loaded| loaded == name),
                "{name} of {loaded:?}"
            );
        }
    }
}

#[test]
fn functions_are_accepted() {
    let _turn = require!(kernel_turn());
    let function = Function {
        file: "libc".into(),
        name: "malloc".to_owned(),
    };
    assert_accepted(&Probe::Function(function), &["function"]);
    assert_accepted(&Probe::Allocations, &["allocation", "thread_end"]);
}

#[test]
fn calls_and_locks_are_accepted() {
    let _turn = require!(kernel_turn());
    assert_accepted(&Probe::Calls(CallWeight::One), &["call"]);
    let of_calls = ["call_begin", "call_end", "thread_end"];
    assert_accepted(&Probe::Calls(CallWeight::Time), &of_calls);
    for weight in [CallWeight::Time, CallWeight::Bytes, CallWeight::One] {
        let (kinds, names) = (FileKinds::FILES, weight == CallWeight::Bytes);
        let io = Io {
            weight,
            kinds,
            names,
        };
        let of_faults = ["fault_begin", "fault_in_kernel", "fault_major"];
        let all = [&of_calls[..], &of_faults].concat();
        assert_accepted(&Probe::Io(io), &all);
    }
    let locks = Locks {
        kernel: true,
        user: true,
    };
    assert_accepted(&Probe::Locks(locks), &["lock_begin", "lock_end"]);
}

#[test]
fn page_faults_are_looked_at_where_they_can_be() {
    let _turn = require!(kernel_turn());
    let with_one_lock = |support: &Support| {
        let mut faults = support.faults.clone()?;
        faults.task_switches = 0;
        Ok(faults)
    };
    let here = require!(walks_by_tables());
    let of_faults = |kinds, faults| {
        let io = Io {
            weight: CallWeight::Time,
            kinds,
            names: true,
        };
        let support = Support {
            faults,
            ..here.clone()
        };
        let kernel = load_probe("faults", &Probe::Io(io), AUTO, TargetKind::All, &support);
        let loaded = programs(&kernel).into_iter();
        loaded
            .filter(|name| name.starts_with("fault_"))
            .collect::<Vec<_>>()
    };
    let lacking = Err("a tracepoint".to_owned());
    let none: [&str; 0] = [];
    assert_eq!(of_faults(FileKinds::FILES, lacking), none);
    assert_eq!(of_faults(FileKinds::PIPES, here.faults.clone()), none);
    assert_eq!(
        of_faults(FileKinds::ALL, with_one_lock(&here)),
        ["fault_begin", "fault_in_kernel", "fault_major"]
    );
    let two_locks = here.faults.as_ref();
    if two_locks.is_ok_and(|layout| layout.task_switches != 0) {
        let all = [
            "fault_begin",
            "fault_in_kernel",
            "fault_locks",
            "fault_major",
            "fault_unlocks",
        ];
        assert_eq!(of_faults(FileKinds::FILES, here.faults.clone()), all);
    }
}

#[test]
fn a_kernel_without_type_information_has_no_switches() {
    let _turn = require!(kernel_turn());
    let support = Support {
        layout: None,
        ..Support::detect()
    };
    let request = Request {
        switches: BOTH,
        target: TargetKind::All,
        ids: Vec::new(),
        map_memory: 32 << 20,
        unwind_memory: 256 << 20,
        probes: vec![Probe::OffCpu(Waits::default())],
        weighed: 0,
    };
    let refusal = Kernel::load(request, &support)
        .err()
        .expect("no types, no switches");
    assert!(
        refusal.to_string().contains("type information"),
        "{refusal}"
    );
}

#[test]
fn switches_beside_samples_need_the_programs_of_both() {
    let _turn = require!(kernel_turn());
    let probes = vec![Probe::OnCpu, Probe::OffCpu(Waits::default())];
    let kernel = load_probes("beside", probes, BOTH, TargetKind::All, &Support::detect());
    assert_eq!(
        programs(&kernel),
        ["asleep", "code_key", "off_cpu", "on_cpu"]
    );
    assert!(kernel.map_bytes() <= 32 << 20);
}

#[test]
fn every_track_has_a_program_that_is_accepted() {
    let _turn = require!(kernel_turn());
    let tracepoint = Probe::Tracepoint(Tracepoint {
        category: "sched".to_owned(),
        name: "sched_switch".to_owned(),
    });
    let namespaced = Support {
        // Of no task: what matters here is that the code is switched on.
        pid_namespace: Some(1),
        ..Support::detect()
    };
    let all = BOTH
        .with(Switches::PER_THREAD)
        .with(Switches::PER_CPU)
        .with(Switches::INCLUDE_IDLE);
    for (probe, program) in [(Probe::OnCpu, "on_cpu"), (tracepoint, "tracepoint")] {
        for (what, switches, support) in [
            ("tables", AUTO, Support::detect()),
            ("frame pointers", all, namespaced.clone()),
            ("user stacks", Switches::USER_STACKS, Support::detect()),
            ("without loops", AUTO, without_loops()),
        ] {
            let probes = vec![probe.clone(); MAX_TRACKS];
            let what = format!("tracks, {what}");
            let kernel = load_probes(&what, probes, switches, TargetKind::Processes, &support);
            assert!(kernel.map_bytes() <= 32 << 20);
            let loaded = programs(&kernel);
            let of_tracks = loaded.iter().filter(|name| name.starts_with(program));
            assert_eq!(of_tracks.count(), MAX_TRACKS, "{what}: {loaded:?}");
        }
    }
}

#[test]
fn all_of_the_time_needs_wake_ups_too() {
    let _turn = require!(kernel_turn());
    let support = Support::detect();
    for switches in [BOTH, AUTO] {
        let request = Request {
            switches: switches
                .with(Switches::PER_THREAD)
                .with(Switches::FOLLOW_CHILDREN),
            target: TargetKind::Processes,
            ids: Vec::new(),
            map_memory: 32 << 20,
            unwind_memory: 256 << 20,
            probes: vec![Probe::Wall(Wall {
                waits: Waits::default(),
                idle_threads: true,
            })],
            weighed: 0,
        };
        let kernel = Kernel::load(request, &support)
            .unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)));
        let loaded = programs(&kernel);
        for name in ["asleep", "fork", "off_cpu", "on_cpu", "woken"] {
            assert!(loaded.iter().any(|one| one == name), "{name} of {loaded:?}");
        }
    }
}

#[test]
fn who_ends_waits_is_looked_at_in_every_way() {
    let _turn = require!(kernel_turn());
    let namespaced = Support {
        // Of no task: what matters here is that the code is switched on.
        pid_namespace: Some(1),
        ..Support::detect()
    };
    for (switches, target, wakers, support) in [
        (BOTH, TargetKind::All, Wakers::Alone, Support::detect()),
        (
            AUTO,
            TargetKind::Processes,
            Wakers::Above,
            Support::detect(),
        ),
        (AUTO, TargetKind::Processes, Wakers::Above, without_loops()),
        (AUTO, TargetKind::Processes, Wakers::Alone, namespaced),
        (
            AUTO.with(Switches::PER_THREAD),
            TargetKind::Threads,
            Wakers::Alone,
            Support::detect(),
        ),
        (
            Switches::USER_STACKS,
            TargetKind::All,
            Wakers::Above,
            Support::detect(),
        ),
        (
            Switches::KERNEL_STACKS,
            TargetKind::All,
            Wakers::Alone,
            without_loops(),
        ),
    ] {
        let probe = Probe::OffCpu(Waits {
            wakers,
            ..Waits::default()
        });
        let kernel = load_probe(&format!("{wakers:?}"), &probe, switches, target, &support);
        assert!(kernel.map_bytes() <= 32 << 20);
        let loaded = programs(&kernel);
        for name in ["asleep", "off_cpu", "waking"] {
            assert!(loaded.iter().any(|one| one == name), "{name} of {loaded:?}");
        }
    }
}
