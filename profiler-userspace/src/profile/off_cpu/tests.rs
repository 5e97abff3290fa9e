use super::*;
use crate::profile::fold::{self, FoldStyle};
use crate::profile::{
    Function, Labels, LabelsIndex, Line, Location, Sample, Unit, Waker, Wakers, Window,
};

/// A thread's labels and stacks, from frames that are marked as in `_p:sh;main;_k:schedule`.
fn thread(
    profile: &mut Profile,
    frames: &[&str],
) -> (LabelsIndex, [Option<NormalizedStackIndex>; 2]) {
    let mut labels = Labels::default();
    let mut stacks = [Vec::new(), Vec::new()];
    for text in frames {
        let (name, place, kind) = match text.split_at_checked(3) {
            Some(("_p:", name)) => {
                labels.comm = Some(name.to_owned());
                continue;
            }
            Some(("_l:", name)) => {
                labels.tid = Some(name.parse().unwrap());
                continue;
            }
            Some(("_k:", name)) => (name, 1, FrameKind::Kernel),
            Some(("_m:", name)) => (name, 1, FrameKind::Mark),
            _ => (*text, 0, FrameKind::User),
        };
        let name = name.to_owned();
        let function = profile.function(Function::named(name));
        let lines = profile.lines([Line { function, line: 0 }]);
        stacks[place].push(profile.location(Location::new(None, 0, kind, lines)));
    }
    let stacks = stacks.map(|mut locations| {
        locations.reverse();
        (!locations.is_empty()).then(|| profile.stack(&NormalizedStack::whole(locations)))
    });
    (profile.labels(labels), stacks)
}

/// Folds a stack whose frames are marked as in `_p:sh;main;_k:schedule`, behind which may stand what the thread did, as
/// in `;_s:runnable`, and behind `;--;` who ended its wait.
fn shown(stack: &str, how: OffCpuView) -> String {
    let mut profile = Profile::new(Unit::Nanoseconds, Window::default());
    let (own, waker) = match stack.split_once(";--") {
        Some((own, waker)) => (own, Some(waker)),
        None => (stack, None),
    };
    let mut own: Vec<&str> = own.split(';').collect();
    let thread_state = match own.last().and_then(|last| last.strip_prefix("_s:")) {
        Some("running") => ThreadState::Running,
        Some("ran") => ThreadState::Ran,
        Some("runnable") => ThreadState::Runnable,
        _ if waker.is_some() => ThreadState::Woken,
        _ => ThreadState::Blocked,
    };
    own.pop_if(|last| last.starts_with("_s:"));
    let (labels, [user, kernel]) = thread(&mut profile, &own);
    let waker = waker.filter(|waker| !waker.is_empty()).map(|waker| {
        let frames: Vec<&str> = waker[1..].split(';').collect();
        let (labels, [user, kernel]) = thread(&mut profile, &frames);
        profile.waker(Waker {
            labels,
            user,
            kernel,
            interrupt: false,
        })
    });
    profile.push(Sample {
        labels,
        user,
        kernel,
        thread_state,
        reason: None,
        waker,
        window: crate::profile::WindowIndex::default(),
        weight: 7_000,
        count: 1,
    });
    let profile = view(profile, how);
    assert_eq!((profile.total_weight(), profile.total_count()), (7_000, 1));
    fold::text(&profile, FoldStyle::default())
}

const PLAIN: OffCpuView = OffCpuView::PLAIN;
const REASONED: OffCpuView = OffCpuView {
    reasons: true,
    ..PLAIN
};

#[test]
fn a_stack_ends_at_the_caller_of_the_scheduler() {
    let probe = "_k:__traceiter_sched_switch;_k:bpf_trace_run4;_k:bpf_prog_0123_off_cpu;_k:bpf_get_stack_raw_tp";
    for (kernel, left) in [
        (
            format!("_k:pipe_read;_k:schedule;_k:__schedule;{probe}"),
            ";pipe_read",
        ),
        (
            format!(
                "_k:do_wait;_k:schedule_timeout;_k:schedule;_k:__schedule.constprop.0;_k:__schedule;{probe}"
            ),
            ";do_wait",
        ),
        (format!("_k:schedule;_k:__schedule;{probe}"), ""),
        ("_k:pipe_read".to_owned(), ";pipe_read"),
        // A function of a program that is called as the kernel's is.
        (
            "schedule;_k:pipe_read;_k:io_schedule".to_owned(),
            ";schedule;pipe_read",
        ),
    ] {
        assert_eq!(
            shown(&format!("_p:sh;main;{kernel}"), PLAIN),
            format!("sh;main{left} 7\n")
        );
    }
    assert_eq!(shown("_p:sh;schedule", PLAIN), "sh;schedule 7\n");
}

#[test]
fn tracepoint_stacks_lose_only_the_probes_frames() {
    let how = OffCpuView {
        scheduler: true,
        ..PLAIN
    };
    let probe = "_k:__traceiter_x;_k:bpf_trace_run4;_k:bpf_prog_01_tracepoint";
    for kernel in ["_k:schedule;_k:__schedule", "_k:do_exit"] {
        let kept = kernel.replace("_k:", "");
        assert_eq!(
            shown(&format!("_p:sh;{kernel};{probe}"), how),
            format!("sh;{kept} 7\n")
        );
    }
}

#[test]
fn wait_reasons_come_from_the_callers_of_the_scheduler() {
    for (kernel, reason) in [
        (
            "_k:do_futex;_k:futex_wait;_k:schedule;_k:__schedule",
            "[futex]",
        ),
        (
            "_k:do_epoll_wait;_k:ep_poll;_k:schedule_hrtimeout_range",
            "[epoll]",
        ),
        (
            "_k:hrtimer_nanosleep;_k:do_nanosleep;_k:schedule",
            "[sleep]",
        ),
        (
            "_k:ksys_read;_k:vfs_read;_k:pipe_read;_k:schedule",
            "[read: pipe]",
        ),
        ("_k:ksys_read;_k:vfs_read;_k:anon_pipe_read", "[read: pipe]"),
        (
            "_k:ksys_read;_k:vfs_read;_k:filemap_read;_k:io_schedule",
            "[read: file]",
        ),
        (
            "_k:ksys_read;_k:vfs_read;_k:asm_exc_page_fault;_k:handle_mm_fault",
            "[page fault]",
        ),
        ("_k:unheard_of", "[other]"),
    ] {
        let text = shown(&format!("_p:sh;{kernel}"), REASONED);
        assert!(
            text.ends_with(&format!(";{reason} 7\n")),
            "{kernel}: {text}"
        );
    }
    assert_eq!(shown("_p:sh;main", REASONED), "sh;main;[not known] 7\n");
}

#[test]
fn a_runnable_thread_has_no_other_reason() {
    let stack = "_p:sh;main;_k:irqentry_exit;_k:schedule;_k:__schedule;_s:runnable";
    for how in [PLAIN, REASONED] {
        assert_eq!(shown(stack, how), "sh;main;irqentry_exit;[runnable] 7\n");
    }
}

#[test]
fn blocked_stacks_are_marked_beside_running_ones() {
    let how = OffCpuView { ran: true, ..PLAIN };
    for (stack, left) in [
        (
            "_p:sh;main;_k:pipe_read;_k:schedule;_s:running",
            "sh;main;pipe_read;schedule 7\n",
        ),
        (
            "_p:sh;main;_k:pipe_read;_k:schedule",
            "sh;main;pipe_read;[blocked] 7\n",
        ),
        (
            "_p:sh;main;_k:schedule;_s:runnable",
            "sh;main;[runnable] 7\n",
        ),
        ("_p:sh;_s:ran", "sh;[on-CPU, not sampled] 7\n"),
    ] {
        assert_eq!(shown(stack, how), left);
    }
    let how = OffCpuView {
        reasons: true,
        ..how
    };
    let waits = "_p:sh;main;_k:ksys_read;_k:vfs_read;_k:pipe_read";
    assert!(shown(waits, how).ends_with(";[read: pipe] 7\n"));
    assert_eq!(
        shown("_p:sh;main;_k:pipe_read;_s:running", how),
        "sh;main;pipe_read 7\n"
    );
    // Off the CPU alone, nobody needs to be told.
    assert_eq!(shown("_p:sh;main", PLAIN), "sh;main 7\n");
}

#[test]
fn kernel_frames_can_serve_the_reason_alone() {
    let how = OffCpuView {
        scheduler: false,
        reasons: true,
        kernel: false,
        ran: false,
        wakers: Wakers::None,
    };
    assert_eq!(
        shown("_p:sh;main;_k:pipe_read;_k:schedule", how),
        "sh;main;[read: pipe] 7\n"
    );
}

#[test]
fn a_waker_stands_above_its_wait_or_below_its_name() {
    let above = OffCpuView {
        wakers: Wakers::Above,
        ..PLAIN
    };
    let alone = OffCpuView {
        wakers: Wakers::Alone,
        ..PLAIN
    };
    let wait = "_p:sh;_l:7;main;_k:pipe_read;_k:schedule;_k:__schedule";
    let probe = "_k:__traceiter_sched_waking;_k:bpf_trace_run1;_k:bpf_prog_01_waking";
    let waker = format!("_p:cat;put;_k:pipe_write;_k:try_to_wake_up;{probe}");
    let interrupt =
        format!("_p:vi;main;_k:asm_sysvec_apic_timer_interrupt;_k:hrtimer_wakeup;{probe}");
    for (stack, how, left) in [
        (
            format!("{wait};--;{waker}"),
            above,
            "sh;[tid 7];main;pipe_read;--;try_to_wake_up;pipe_write;put;cat 7\n",
        ),
        (
            format!("{wait};--;{waker}"),
            alone,
            "cat;put;pipe_write;try_to_wake_up;sh;[tid 7] 7\n",
        ),
        (
            format!("{wait};--;{interrupt}"),
            alone,
            "[interrupt];asm_sysvec_apic_timer_interrupt;hrtimer_wakeup;sh;[tid 7] 7\n",
        ),
        (
            format!("{wait};--;{interrupt}"),
            above,
            "sh;[tid 7];main;pipe_read;--;hrtimer_wakeup;asm_sysvec_apic_timer_interrupt;[interrupt] 7\n",
        ),
        (
            format!("{wait};--"),
            above,
            "sh;[tid 7];main;pipe_read;--;[waker not seen] 7\n",
        ),
        (
            wait.to_owned(),
            above,
            "sh;[tid 7];main;pipe_read;--;[not woken] 7\n",
        ),
        (wait.to_owned(), alone, "[not woken];sh;[tid 7] 7\n"),
        // An interrupt upon another BPF program.
        (
            format!(
                "{wait};--;_p:vi;_k:__sys_bpf;_k:bpf_prog_02_read;_k:asm_sysvec_apic_timer_interrupt;_k:hrtimer_wakeup;{probe}"
            ),
            above,
            "sh;[tid 7];main;pipe_read;--;hrtimer_wakeup;asm_sysvec_apic_timer_interrupt;[interrupt] 7\n",
        ),
        // A program's function that is called as an interrupt is.
        (
            format!("{wait};--;_p:cat;asm_sysvec_x;_k:pipe_write;{probe}"),
            above,
            "sh;[tid 7];main;pipe_read;--;pipe_write;asm_sysvec_x;cat 7\n",
        ),
    ] {
        assert_eq!(shown(&stack, how), left, "{stack}");
    }
    for entry in [
        "asm_common_interrupt",
        "fred_sysvec_call_function",
        "common_interrupt",
    ] {
        let waker = format!("_p:vi;_k:do_syscall_64;_k:{entry};_k:complete;{probe}");
        assert_eq!(
            shown(&format!("{wait};--;{waker}"), alone),
            format!("[interrupt];{entry};complete;sh;[tid 7] 7\n")
        );
    }
    let bare = OffCpuView {
        kernel: false,
        ..above
    };
    assert_eq!(
        shown(&format!("{wait};--;{waker}"), bare),
        "sh;[tid 7];main;--;put;cat 7\n"
    );
    assert_eq!(
        shown(&format!("{wait};--;{interrupt}"), bare),
        "sh;[tid 7];main;--;[interrupt] 7\n"
    );
    let reasoned = OffCpuView {
        reasons: true,
        ..above
    };
    let read = "_p:sh;main;_k:ksys_read;_k:vfs_read;_k:pipe_read;_k:schedule";
    assert_eq!(
        shown(&format!("{read};--;{waker}"), reasoned),
        "sh;main;ksys_read;vfs_read;pipe_read;[read: pipe];--;try_to_wake_up;pipe_write;put;cat 7\n"
    );
}
