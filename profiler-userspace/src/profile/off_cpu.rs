//! Stacks of threads that left the CPU, made readable.
//!
//! In: a profile whose kernel stacks end where the probe looked, inside the scheduler. Out: the same
//! weights, on stacks that end at what called the scheduler, and where asked for what was waited for, told from these.
//! Never: touches a user stack.

use super::FrameKind;
use super::arch::INTERRUPT_ENTRIES;
use super::model::Profile;
use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use super::off_cpu_view::OffCpuView;
use super::wait_reason::{WaitReason, plain};
use foldhash::HashMap;
use profiler_common::abi::ThreadState;

/// Ends every kernel stack of `profile` at what called the scheduler.
#[must_use]
pub fn view(mut profile: Profile, how: OffCpuView) -> Profile {
    let mut ends: HashMap<(NormalizedStackIndex, bool), Cut> = HashMap::default();
    for at in 0..profile.samples.len() {
        let sample = profile.samples[at];
        let is_wait = matches!(
            sample.thread_state,
            ThreadState::Blocked | ThreadState::Woken
        );
        let ran = how.ran && !is_wait && sample.thread_state != ThreadState::Runnable;
        let cut = sample.kernel.map(|kernel| {
            *ends
                .entry((kernel, ran))
                .or_insert_with(|| cut(&mut profile, kernel, how, ran))
        });
        let says_why = how.reasons && !ran && sample.thread_state != ThreadState::Runnable;
        let says_why = says_why && !has_mark(&profile, sample.kernel, sample.user);
        let sample = &mut profile.samples[at];
        sample.kernel = cut.map(|cut| cut.stack);
        sample.reason = says_why.then(|| cut.map_or(WaitReason::NOT_KNOWN, |cut| cut.reason));
    }
    for at in 0..profile.wakers.len() {
        if let Some(kernel) = profile.wakers[at].kernel {
            let (stack, interrupt) = cut_waker(&mut profile, kernel, how);
            profile.wakers[at].kernel = Some(stack);
            profile.wakers[at].interrupt = interrupt;
        }
    }
    profile.off_cpu = Some(how);
    profile
}

/// Rest of a kernel stack.
#[derive(Clone, Copy)]
struct Cut {
    stack: NormalizedStackIndex,
    reason: WaitReason,
}

fn cut(profile: &mut Profile, kernel: NormalizedStackIndex, how: OffCpuView, ran: bool) -> Cut {
    let stack = profile.stack_at(kernel).to_stack();
    let (marks, frames) = stack.locations.split_at(marks(profile, &stack));
    let names: Vec<&str> = frames.iter().map(|at| profile.name_at(*at)).collect();
    let cut = if ran {
        0
    } else if how.scheduler {
        probe_frames(&names)
    } else {
        scheduler_frames(&names)
    };
    let reason = WaitReason::of(&names[cut..]);
    let frames = if how.kernel { &frames[cut..] } else { &[] };
    let locations = [marks, frames].concat();
    let stack = with(&stack, &locations);
    Cut {
        stack: profile.stack(&stack),
        reason,
    }
}

/// The kernel stack of who ended a wait, and whether it was an interrupt.
fn cut_waker(
    profile: &mut Profile,
    kernel: NormalizedStackIndex,
    how: OffCpuView,
) -> (NormalizedStackIndex, bool) {
    let stack = profile.stack_at(kernel).to_stack();
    let frames = &stack.locations[marks(profile, &stack)..];
    let names: Vec<&str> = frames.iter().map(|at| profile.name_at(*at)).collect();
    let probe = probe_frames(&names);
    // Whatever ran had nothing to do with it.
    let entry = names[probe..].iter().rposition(|name| is_interrupt(name));
    let end = entry.map_or(frames.len(), |entry| probe + entry + 1);
    let frames = if how.kernel { &frames[probe..end] } else { &[] };
    let stack = with(&stack, frames);
    (profile.stack(&stack), entry.is_some())
}

fn with(stack: &NormalizedStack, locations: &[LocationIndex]) -> NormalizedStack {
    NormalizedStack {
        locations: locations.into(),
        ..*stack
    }
}

/// How many locations at the leaf of a stack are none, but say what was sampled.
fn marks(profile: &Profile, stack: &NormalizedStack) -> usize {
    let marks = stack.locations.iter();
    marks
        .take_while(|at| profile.location_at(**at).kind == FrameKind::Mark)
        .count()
}

/// Whether a mark is at the leaf already.
fn has_mark(
    profile: &Profile,
    kernel: Option<NormalizedStackIndex>,
    user: Option<NormalizedStackIndex>,
) -> bool {
    for stack in [kernel, user].into_iter().flatten() {
        let stack = profile.stack_at(stack);
        if let Some(leaf) = stack.locations().next() {
            return profile.location_at(leaf).kind == FrameKind::Mark;
        }
        if stack.end.mark().is_some() {
            return true;
        }
    }
    false
}

/// Whether a kernel function is where interrupts come in.
pub fn is_interrupt(name: &str) -> bool {
    INTERRUPT_ENTRIES
        .iter()
        .any(|start| name.starts_with(start))
}

/// Whether a kernel function is on the way back from an interrupt, where threads are preempted (`kernel/entry/common.c`).
pub fn is_interrupt_exit(name: &str) -> bool {
    const EXITS: [&str; 4] = [
        "irqentry_exit",
        "raw_irqentry_exit",
        "exit_to_user_mode_loop",
        "preempt_schedule_irq",
    ];
    EXITS.iter().any(|start| name.starts_with(start))
}

/// Whether a kernel function is where softirqs are served, at the end of an interrupt or of what kept them off, or in a
/// thread of their own (`kernel/softirq.c`; the first two are one until Linux 6.10).
pub fn is_softirq(name: &str) -> bool {
    [
        "__do_softirq",
        "__softirqentry_text_start",
        "handle_softirqs",
    ]
    .contains(&name)
}

/// A probe is so many frames deep at most: the tracepoint, what it calls, a trampoline, the program.
const DEEPEST: usize = 12;

/// How many of these functions, from the leaf on, are the probe's own.
fn probe_frames(kernel: &[&str]) -> usize {
    const PROBES: [&str; 6] = [
        "__traceiter_",
        "__bpf_trace_",
        "bpf_trace_run",
        "bpf_trampoline_",
        "bpf_prog_",
        "bpf_get_stack",
    ];
    let is_probe = |name: &&str| PROBES.iter().any(|start| name.starts_with(start));
    let near = &kernel[..kernel.len().min(DEEPEST)];
    // An interrupt may come upon another BPF program, such as one that reads maps.
    let upon = near.iter().position(|name| is_interrupt(name));
    let near = &near[..upon.unwrap_or(near.len())];
    near.iter().rposition(is_probe).map_or(0, |last| last + 1)
}

/// How many of them are the probe's or the scheduler's own.
fn scheduler_frames(kernel: &[&str]) -> usize {
    let near = &kernel[..kernel.len().min(DEEPEST)];
    let scheduler = |names: &[&str]| names.iter().take_while(|name| is_scheduler(name)).count();
    match near.iter().position(|name| plain(name) == SWITCH) {
        Some(switch) => switch + 1 + scheduler(&kernel[switch + 1..]),
        // Seen from outside, the stack of a thread that waits begins at the scheduler's caller.
        None => scheduler(near),
    }
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

#[cfg(test)]
mod tests;
