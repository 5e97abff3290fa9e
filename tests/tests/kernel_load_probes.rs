//! As `kernel_load.rs`, of probes other than on-CPU, and of several in one run.

use flame_bpf::kernel::{Kernel, Support};
use flame_bpf::probe::{Function, Io, Locks, Probe, ThreadKind, Tracepoint, Waits, Wakers, Wall};
use flame_bpf_tests::{
    AUTO, BOTH, kernel_test, load_probe, load_probes, programs, request, require, walks_by_tables,
    without_loops,
};
use profiler_common::abi::{CallWeight, FileKinds, MAX_EVENTS, Switches, TargetKind};

#[kernel_test]
fn the_verifier_accepts_every_off_cpu_switch() {
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
        // There is no target, so no thread is asleep.
        kernel
            .attach_programs(&[])
            .expect("the tracepoint is there");
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

#[kernel_test]
fn the_verifier_accepts_uprobes() {
    let function = Function {
        file: "libc".into(),
        name: "malloc".to_owned(),
    };
    assert_accepted(&Probe::Function(function), &["function"]);
    assert_accepted(&Probe::Allocations, &["allocation", "thread_end"]);
}

#[kernel_test]
fn the_verifier_accepts_system_calls_and_locks() {
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

#[kernel_test]
fn page_ins_are_recorded_where_the_kernel_supports_it() {
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

#[kernel_test]
fn a_kernel_without_btf_refuses_off_cpu() {
    let support = Support {
        layout: None,
        ..Support::detect()
    };
    let request = request(vec![Probe::OffCpu(Waits::default())], BOTH, TargetKind::All);
    let refusal = Kernel::load(request, &support)
        .err()
        .expect("no types, no switches");
    assert!(
        refusal.to_string().contains("type information"),
        "{refusal}"
    );
}

#[kernel_test]
fn off_cpu_beside_on_cpu_loads_the_programs_of_both() {
    let probes = vec![Probe::OnCpu, Probe::OffCpu(Waits::default())];
    let kernel = load_probes("beside", probes, BOTH, TargetKind::All, &Support::detect());
    assert_eq!(
        programs(&kernel),
        ["asleep", "code_key", "off_cpu", "on_cpu"]
    );
    assert!(kernel.map_bytes() <= 32 << 20);
}

#[kernel_test]
fn perf_events_share_a_program_and_tracepoints_have_one_each() {
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
    for (probe, program, count) in [
        (Probe::OnCpu, "on_cpu", 1),
        (tracepoint, "tracepoint", MAX_EVENTS),
    ] {
        for (what, switches, support) in [
            ("tables", AUTO, Support::detect()),
            ("frame pointers", all, namespaced.clone()),
            ("user stacks", Switches::USER_STACKS, Support::detect()),
            ("without loops", AUTO, without_loops()),
        ] {
            let probes = vec![probe.clone(); MAX_EVENTS];
            let what = format!("events, {what}");
            let kernel = load_probes(&what, probes, switches, TargetKind::Processes, &support);
            assert!(kernel.map_bytes() <= 32 << 20);
            let loaded = programs(&kernel);
            let of_events = loaded.iter().filter(|name| name.starts_with(program));
            assert_eq!(of_events.count(), count, "{what}: {loaded:?}");
        }
    }
}

#[kernel_test]
fn wall_time_loads_the_wake_up_programs() {
    let support = Support::detect();
    for switches in [BOTH, AUTO] {
        let switches = switches
            .with(Switches::PER_THREAD)
            .with(Switches::FOLLOW_CHILDREN);
        let wall = Probe::Wall(Wall {
            waits: Waits::default(),
            idle_threads: true,
        });
        let kernel = load_probe("wall", &wall, switches, TargetKind::Processes, &support);
        let loaded = programs(&kernel);
        for name in ["asleep", "fork", "off_cpu", "on_cpu", "woken"] {
            assert!(loaded.iter().any(|one| one == name), "{name} of {loaded:?}");
        }
    }
}

#[kernel_test]
fn the_verifier_accepts_every_waker_mode() {
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
