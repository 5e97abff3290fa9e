use super::*;
use crate::profile::fold::{FoldStyle, fold};
use crate::profile::{Unit, Window};

#[test]
fn a_function_is_known_with_a_line_behind_it_too() {
    assert!(is_scheduler("schedule (core.c:7063)"));
    assert!(is_scheduler("__schedule.isra.0 (core.c:1)"));
    assert!(!is_scheduler("scheduled (core.c:1)"));
}

/// Folds a stack whose frames are marked as in `sh;main;_k:schedule;_m:[runnable]`.
fn finished(stack: &str, how: Finish) -> String {
    let mut profile = Profile::new(Unit::Nanoseconds, Window::default());
    let stack = stack
        .split(';')
        .map(|text| {
            let (name, kind) = match text.split_at_checked(3) {
                Some(("_k:", name)) => (name, FrameKind::Kernel),
                Some(("_m:", name)) => (name, FrameKind::Mark),
                Some(("_p:", name)) => (name, FrameKind::Process),
                Some(("_l:", name)) => (name, FrameKind::Label),
                _ => (text, FrameKind::User),
            };
            let name = name.to_owned();
            profile.intern(Frame { name, kind })
        })
        .collect();
    profile.push(Sample {
        stack,
        weight: 7_000,
        count: 1,
    });
    let profile = finish(&profile, how);
    assert_eq!((profile.total_weight(), profile.total_count()), (7_000, 1));
    let mut text = Vec::new();
    fold(&profile, FoldStyle::default(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

const PLAIN: Finish = Finish {
    scheduler: false,
    reasons: false,
    kernel: true,
    ran: false,
    wakers: Wakers::None,
};
const REASONED: Finish = Finish {
    scheduler: false,
    reasons: true,
    kernel: true,
    ran: false,
    wakers: Wakers::None,
};

#[test]
fn the_stack_ends_at_what_called_the_scheduler() {
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
            finished(&format!("sh;main;{kernel}"), PLAIN),
            format!("sh;main{left} 7\n")
        );
    }
    assert_eq!(finished("sh;schedule", PLAIN), "sh;schedule 7\n");
}

#[test]
fn of_other_tracepoints_only_the_probe_is_cut() {
    let how = Finish {
        scheduler: true,
        ..PLAIN
    };
    let probe = "_k:__traceiter_x;_k:bpf_trace_run4;_k:bpf_prog_01_tracepoint";
    for kernel in ["_k:schedule;_k:__schedule", "_k:do_exit"] {
        let kept = kernel.replace("_k:", "");
        assert_eq!(
            finished(&format!("sh;{kernel};{probe}"), how),
            format!("sh;{kept} 7\n")
        );
    }
}

#[test]
fn waits_are_named_by_what_leads_to_the_scheduler() {
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
        let text = finished(&format!("sh;{kernel}"), REASONED);
        assert!(
            text.ends_with(&format!(";{reason} 7\n")),
            "{kernel}: {text}"
        );
    }
    assert_eq!(finished("sh;main", REASONED), "sh;main;[not known] 7\n");
}

#[test]
fn who_could_have_run_waited_for_nothing_else() {
    let stack = "sh;main;_k:irqentry_exit;_k:schedule;_k:__schedule;_m:[runnable]";
    for how in [PLAIN, REASONED] {
        assert_eq!(finished(stack, how), "sh;main;irqentry_exit;[runnable] 7\n");
    }
}

#[test]
fn beside_threads_that_ran_the_others_are_marked() {
    let how = Finish { ran: true, ..PLAIN };
    for (stack, left) in [
        (
            "sh;main;_k:pipe_read;_k:schedule",
            "sh;main;pipe_read;schedule 7\n",
        ),
        (
            "sh;main;_k:pipe_read;_k:schedule;_m:[blocked]",
            "sh;main;pipe_read;[blocked] 7\n",
        ),
        (
            "sh;main;_k:schedule;_m:[runnable]",
            "sh;main;[runnable] 7\n",
        ),
        (
            "sh;_m:[on-CPU, not sampled]",
            "sh;[on-CPU, not sampled] 7\n",
        ),
    ] {
        assert_eq!(finished(stack, how), left);
    }
    let how = Finish {
        reasons: true,
        ..how
    };
    let waits = "sh;main;_k:ksys_read;_k:vfs_read;_k:pipe_read;_m:[blocked]";
    assert!(finished(waits, how).ends_with(";[read: pipe] 7\n"));
    assert_eq!(
        finished("sh;main;_k:pipe_read", how),
        "sh;main;pipe_read 7\n"
    );
    // Off the CPU alone, nobody needs to be told.
    assert_eq!(finished("sh;main;_m:[blocked]", PLAIN), "sh;main 7\n");
}

#[test]
fn kernel_frames_may_be_for_the_reason_alone() {
    let how = Finish {
        scheduler: false,
        reasons: true,
        kernel: false,
        ran: false,
        wakers: Wakers::None,
    };
    assert_eq!(
        finished("sh;main;_k:pipe_read;_k:schedule", how),
        "sh;main;[read: pipe] 7\n"
    );
}

#[test]
fn who_ended_a_wait_stands_above_it_or_below_its_name() {
    let above = Finish {
        wakers: Wakers::Above,
        ..PLAIN
    };
    let alone = Finish {
        wakers: Wakers::Alone,
        ..PLAIN
    };
    let wait = "_p:sh;_l:7;main;_k:pipe_read;_k:schedule;_k:__schedule;_m:[blocked]";
    let probe = "_k:__traceiter_sched_waking;_k:bpf_trace_run1;_k:bpf_prog_01_waking";
    let waker = format!("_p:cat;put;_k:pipe_write;_k:try_to_wake_up;{probe}");
    let interrupt =
        format!("_p:vi;main;_k:asm_sysvec_apic_timer_interrupt;_k:hrtimer_wakeup;{probe}");
    for (stack, how, left) in [
        (
            format!("{wait};_m:--;{waker}"),
            above,
            "sh;7;main;pipe_read;--;try_to_wake_up;pipe_write;put;cat 7\n",
        ),
        (
            format!("{wait};_m:--;{waker}"),
            alone,
            "cat;put;pipe_write;try_to_wake_up;sh;7 7\n",
        ),
        (
            format!("{wait};_m:--;{interrupt}"),
            alone,
            "[interrupt];asm_sysvec_apic_timer_interrupt;hrtimer_wakeup;sh;7 7\n",
        ),
        (
            format!("{wait};_m:--;{interrupt}"),
            above,
            "sh;7;main;pipe_read;--;hrtimer_wakeup;asm_sysvec_apic_timer_interrupt;[interrupt] 7\n",
        ),
        (
            format!("{wait};_m:--;_m:[waker not seen]"),
            above,
            "sh;7;main;pipe_read;--;[waker not seen] 7\n",
        ),
        (
            wait.to_owned(),
            above,
            "sh;7;main;pipe_read;--;[not woken] 7\n",
        ),
        (wait.to_owned(), alone, "[not woken];sh;7 7\n"),
        // A program's function that is called as an interrupt is.
        (
            format!("{wait};_m:--;_p:cat;asm_sysvec_x;_k:pipe_write;{probe}"),
            above,
            "sh;7;main;pipe_read;--;pipe_write;asm_sysvec_x;cat 7\n",
        ),
    ] {
        assert_eq!(finished(&stack, how), left, "{stack}");
    }
    for entry in [
        "asm_common_interrupt",
        "fred_sysvec_call_function",
        "common_interrupt",
    ] {
        let waker = format!("_p:vi;_k:do_syscall_64;_k:{entry};_k:complete;{probe}");
        assert_eq!(
            finished(&format!("{wait};_m:--;{waker}"), alone),
            format!("[interrupt];{entry};complete;sh;7 7\n")
        );
    }
    let bare = Finish {
        kernel: false,
        ..above
    };
    assert_eq!(
        finished(&format!("{wait};_m:--;{waker}"), bare),
        "sh;7;main;--;put;cat 7\n"
    );
    assert_eq!(
        finished(&format!("{wait};_m:--;{interrupt}"), bare),
        "sh;7;main;--;[interrupt] 7\n"
    );
    let reasoned = Finish {
        reasons: true,
        ..above
    };
    let read = "_p:sh;main;_k:ksys_read;_k:vfs_read;_k:pipe_read;_k:schedule;_m:[blocked]";
    assert_eq!(
        finished(&format!("{read};_m:--;{waker}"), reasoned),
        "sh;main;ksys_read;vfs_read;pipe_read;[read: pipe];--;try_to_wake_up;pipe_write;put;cat 7\n"
    );
}
