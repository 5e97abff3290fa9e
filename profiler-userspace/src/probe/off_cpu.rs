//! Threads that leave the CPU and come back.

use super::{AttachPoint, Attachment, ProbeSpec, View, Wakers, waker};
use profiler_common::abi::{CallWeight, ProgramId, States, TaskState};
use std::time::Duration;

/// The tracepoint by which a CPU goes from one thread to another.
pub const SWITCH: &str = "sched_switch";

/// The probe's row.
pub(super) fn spec(waits: &Waits) -> ProbeSpec {
    let switches = Attachment::begins(ProgramId::OffCpu, AttachPoint::tracepoint(SWITCH));
    // Wakers first, so that no wait ends unseen.
    let programs = waker::programs(waits.wakers).chain([switches]).collect();
    let spec = ProbeSpec {
        view: View {
            wakers: waits.wakers,
            ..View::WAITING
        },
        ..ProbeSpec::new("wait", programs)
    };
    spec.timed(CallWeight::Time).titled(match waits.wakers {
        Wakers::None => "off-CPU",
        Wakers::Alone => "wake-ups",
        Wakers::Above => "off-CPU and wake-ups",
    })
}

/// Which of the times off the CPU are wanted, and how they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The states in which threads leave the CPU.
    pub states: States,
    /// The shortest time off the CPU.
    pub shortest: Duration,
    /// The longest time off the CPU.
    pub longest: Duration,
    /// How often a wait of each thread is looked at, which then stands for others; zero: all are.
    pub wait_sample_period: Duration,
    /// Which threads.
    pub threads: ThreadKind,
    /// Whether a frame at the leaf says what was waited for.
    pub reasons: bool,
    /// Whether it is shown who ended them.
    pub wakers: Wakers,
}

impl Waits {
    /// The states in which threads leave the CPU for waits that can be shown so.
    pub const fn all_states(wakers: Wakers) -> States {
        match wakers {
            Wakers::None => States::ALL,
            // Runnable threads are not woken.
            Wakers::Alone | Wakers::Above => States::ALL.without(TaskState::Runnable),
        }
    }
}

/// Which threads are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// All of them.
    Both,
    /// Those of programs.
    User,
    /// Those of the kernel.
    Kernel,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            states: States::ALL,
            shortest: Duration::ZERO,
            longest: Duration::MAX,
            wait_sample_period: Duration::ZERO,
            threads: ThreadKind::Both,
            reasons: false,
            wakers: Wakers::None,
        }
    }
}
