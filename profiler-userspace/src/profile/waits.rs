//! Kernel stacks of threads that left the CPU, made readable.
//!
//! In: a profile whose kernel stacks end where the probe looked, inside the scheduler. Out: the same
//! weights, on stacks that end at what called the scheduler, and where asked for a frame at the leaf
//! that says what was waited for. Never: touches a user frame.

mod reason;

use super::{Frame, FrameId, FrameKind, Profile, Sample};
use profiler_common::abi::Doing;

/// The leaf of a thread that could have run, and had no CPU.
pub const RUNNABLE: &str = "[runnable]";

/// The leaf of a thread that waited for something to happen, where there are stacks of threads that ran beside it.
pub const BLOCKED: &str = "[blocked]";

/// What the thread did whose stack has this leaf, where the leaf tells.
pub fn doing(leaf: &Frame) -> Doing {
    match (leaf.kind, leaf.name.as_str()) {
        (FrameKind::Mark, RUNNABLE) => Doing::Runnable,
        (FrameKind::Mark, name) if name == BLOCKED || reason::is_reason(name) => Doing::Blocked,
        _ => Doing::Running,
    }
}

/// What is made of kernel stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Whether the scheduler's frames stay, and only the probe's are cut.
    pub scheduler: bool,
    /// Whether a frame at the leaf says what was waited for.
    pub reasons: bool,
    /// Whether kernel frames stay.
    pub kernel: bool,
    /// Whether stacks without a mark are of threads that ran, and stay as they are.
    pub ran: bool,
}

/// Ends every kernel stack of `profile` at what called the scheduler.
#[must_use]
pub fn finish(profile: &Profile, how: Finish) -> Profile {
    let mut finished = Profile::new(profile.unit.clone(), profile.window);
    for sample in profile.samples() {
        let stack = finished_stack(profile, sample, how)
            .into_iter()
            .map(|frame| finished.intern(frame))
            .collect();
        finished.push(Sample {
            stack,
            weight: sample.weight,
            count: sample.count,
        });
    }
    finished
}

fn finished_stack(profile: &Profile, sample: &Sample, how: Finish) -> Vec<Frame> {
    let frame = |id: &FrameId| profile.frame(*id);
    let mut stack: Vec<Frame> = sample.stack.iter().map(|id| frame(id).clone()).collect();
    let last = stack
        .iter()
        .rposition(|frame| frame.kind != FrameKind::Mark);
    let mut marks = stack.split_off(last.map_or(0, |last| last + 1));
    let blocked = marks.pop_if(|leaf| leaf.name == BLOCKED);
    let runnable = marks.last().is_some_and(|leaf| leaf.name == RUNNABLE);
    let ran = how.ran && blocked.is_none() && !runnable;
    let first = stack
        .iter()
        .rposition(|frame| frame.kind != FrameKind::Kernel)
        .map_or(0, |last| last + 1);
    let kernel = stack.split_off(first);
    let end = kernel.len()
        - if ran {
            0
        } else if how.scheduler {
            probe_frames(&kernel)
        } else {
            scheduler_frames(&kernel)
        };
    let kernel = &kernel[..end];
    let reason = if !marks.is_empty() {
        None
    } else if how.reasons && !ran {
        Some(Frame {
            name: reason::reason(kernel).to_owned(),
            kind: FrameKind::Mark,
        })
    } else {
        blocked.filter(|_| how.ran)
    };
    if how.kernel {
        stack.extend_from_slice(kernel);
    }
    stack.extend(marks);
    stack.extend(reason);
    stack
}

/// A probe is so many frames deep at most: the tracepoint, what it calls, a trampoline, the program.
const DEEPEST: usize = 12;

/// How many frames at the leaf are the probe's own.
fn probe_frames(kernel: &[Frame]) -> usize {
    const PROBES: [&str; 6] = [
        "__traceiter_",
        "__bpf_trace_",
        "bpf_trace_run",
        "bpf_trampoline_",
        "bpf_prog_",
        "bpf_get_stack",
    ];
    let is_probe = |frame: &Frame| PROBES.iter().any(|start| frame.name.starts_with(start));
    let near = kernel.iter().rev().take(DEEPEST);
    near.zip(1..)
        .filter(|(frame, _)| is_probe(frame))
        .last()
        .map_or(0, |(_, depth)| depth)
}

/// How many frames at the leaf are the probe's or the scheduler's own.
fn scheduler_frames(kernel: &[Frame]) -> usize {
    let near = kernel.iter().rev().take(DEEPEST);
    let Some(switch) = near.clone().position(|frame| plain(&frame.name) == SWITCH) else {
        // Seen from outside, the stack of a thread that waits begins at the scheduler's caller.
        return near.take_while(|frame| is_scheduler(&frame.name)).count();
    };
    let beyond = kernel.iter().rev().skip(switch + 1);
    switch + 1 + beyond.take_while(|frame| is_scheduler(&frame.name)).count()
}

/// The function in which the one thread is exchanged for the other.
const SWITCH: &str = "__schedule";

/// Whether a function does no more than ask for that exchange.
fn is_scheduler(name: &str) -> bool {
    SCHEDULER.contains(&plain(name))
}

/// The functions that only lead to the scheduler. The last one is among them because the kernel itself
/// takes it for one, and leaves it out when it walks the stack of another thread.
const SCHEDULER: &[&str] = &[
    "schedule",
    "__schedule",
    "__schedule_loop",
    "schedule_idle",
    "schedule_preempt_disabled",
    "schedule_rtlock",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "preempt_schedule_notrace",
    "preempt_schedule_thunk",
    "preempt_schedule_notrace_thunk",
    "__cond_resched",
    "io_schedule",
    "io_schedule_timeout",
    "schedule_timeout",
    "schedule_timeout_interruptible",
    "schedule_timeout_uninterruptible",
    "schedule_timeout_killable",
    "schedule_timeout_idle",
    "schedule_hrtimeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "do_nanosleep",
];

/// A function's name without what compilers put behind it, and without a line.
fn plain(name: &str) -> &str {
    name.split(['.', ' ']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
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
                let (name, kind) = match (text.strip_prefix("_k:"), text.strip_prefix("_m:")) {
                    (Some(name), _) => (name, FrameKind::Kernel),
                    (_, Some(name)) => (name, FrameKind::Mark),
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
    };
    const REASONED: Finish = Finish {
        scheduler: false,
        reasons: true,
        kernel: true,
        ran: false,
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
        };
        assert_eq!(
            finished("sh;main;_k:pipe_read;_k:schedule", how),
            "sh;main;[read: pipe] 7\n"
        );
    }
}
