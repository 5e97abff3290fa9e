//! Kernel stacks of threads that left the CPU, made readable.
//!
//! In: a profile whose kernel stacks end where the probe looked, inside the scheduler. Out: the same
//! weights, on stacks that end at what called the scheduler, and where asked for a frame at the leaf
//! that says what was waited for. Never: touches a user frame.

mod reason;

use super::{Frame, FrameKind, Profile, Sample};
use profiler_common::abi::ThreadState;

/// The leaf of a thread that could have run, and had no CPU.
pub const RUNNABLE: &str = "[runnable]";

/// The leaf of a thread that waited for something to happen, where there are stacks of threads that ran beside it.
pub const BLOCKED: &str = "[blocked]";

/// Stands between the stack of a thread that waited and that of the one that ended the wait.
pub const WOKEN_BY: &str = "--";

/// Stands for who ended a wait, where nobody was seen to.
pub const WAKER_UNSEEN: &str = "[waker not seen]";

/// Stands for who would end a wait that has not ended.
const NOT_WOKEN: &str = "[not woken]";

/// Stands for who ended a wait, where that was no thread.
const INTERRUPT: &str = "[interrupt]";

/// What the thread did whose stack has this leaf, where the leaf tells.
pub fn thread_state(leaf: &Frame) -> ThreadState {
    match (leaf.kind, leaf.name.as_str()) {
        (FrameKind::Mark, RUNNABLE) => ThreadState::Runnable,
        (FrameKind::Mark, name) if name == BLOCKED || reason::is_reason(name) => {
            ThreadState::Blocked
        }
        _ => ThreadState::Running,
    }
}

/// How it is shown who ended waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakers {
    /// Not at all.
    #[default]
    None,
    /// With their stacks, under the names of who waited.
    Alone,
    /// With their stacks, upside down above those of who waited.
    Above,
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
    /// How it is shown who ended waits.
    pub wakers: Wakers,
}

/// Ends every kernel stack of `profile` at what called the scheduler.
#[must_use]
pub fn finish(profile: &Profile, how: Finish) -> Profile {
    let mut finished = Profile::new(profile.unit.clone(), profile.window);
    for sample in profile.samples() {
        let whole = sample.stack.iter().map(|id| profile.frame(*id).clone());
        let stack = finished_stack(whole.collect(), how)
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

fn finished_stack(mut stack: Vec<Frame>, how: Finish) -> Vec<Frame> {
    if how.wakers == Wakers::None {
        return finished_wait(stack, how);
    }
    let waker = match stack.iter().position(is_separator) {
        Some(separator) => finished_waker(stack.split_off(separator).split_off(1), how),
        None => vec![mark(NOT_WOKEN)],
    };
    if how.wakers == Wakers::Alone {
        let labels = [FrameKind::Process, FrameKind::Label];
        let woken = stack
            .into_iter()
            .filter(|frame| labels.contains(&frame.kind));
        return waker.into_iter().chain(woken).collect();
    }
    let mut stack = finished_wait(stack, how);
    stack.push(mark(WOKEN_BY));
    stack.extend(waker.into_iter().rev());
    stack
}

/// Whether a frame stands between a wait and its waker.
pub fn is_separator(frame: &Frame) -> bool {
    frame.kind == FrameKind::Mark && frame.name == WOKEN_BY
}

fn mark(name: &str) -> Frame {
    Frame {
        name: name.to_owned(),
        kind: FrameKind::Mark,
    }
}

/// The stack of who ended a wait, from its process to what it did.
fn finished_waker(mut stack: Vec<Frame>, how: Finish) -> Vec<Frame> {
    let kernel = |frame: &Frame| frame.kind == FrameKind::Kernel;
    let first = stack.iter().position(kernel).unwrap_or(stack.len());
    let mut frames = stack.split_off(first);
    frames.truncate(frames.len() - probe_frames(&frames));
    if let Some(entry) = frames.iter().position(|frame| is_interrupt(&frame.name)) {
        // Whatever ran had nothing to do with it.
        stack = vec![mark(INTERRUPT)];
        frames.drain(..entry);
    }
    if how.kernel {
        stack.extend(frames);
    }
    stack
}

/// Whether a kernel function is where interrupts come in (`arch/x86/include/asm/idtentry.h`; the last two by FRED, in
/// `arch/x86/entry/entry_fred.c`).
pub fn is_interrupt(name: &str) -> bool {
    const ENTRIES: [&str; 5] = [
        "asm_sysvec_",
        "asm_common_interrupt",
        "asm_exc_nmi",
        "fred_sysvec_",
        "common_interrupt",
    ];
    ENTRIES.iter().any(|start| name.starts_with(start))
}

/// A stack that ends at what called the scheduler.
fn finished_wait(mut stack: Vec<Frame>, how: Finish) -> Vec<Frame> {
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
        Some(mark(reason::reason(kernel)))
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
mod tests;
