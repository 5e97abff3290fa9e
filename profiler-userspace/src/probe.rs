//! The table of probes: what triggers a sample, and what its weight means.
//!
//! In: nothing. Out: for each probe its program, the tracepoint that it is attached to, its subject in
//! titles, and the unit of its weights. Never: asks the machine whether it has any of it.

use crate::profile::Unit;
use profiler_common::abi::States;
use std::fmt;
use std::time::Duration;

/// The tracepoint by which a CPU goes from one thread to another.
pub const SWITCH: &str = "sched_switch";

/// The tracepoint by which a thread is ready to run again.
pub const WAKEUP: &str = "sched_wakeup";

/// What triggers a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A clock or a counter on each CPU. Which one is the plan's event; it decides the unit, too.
    OnCpu,
    /// Threads that leave the CPU and come back.
    OffCpu(Waits),
    /// All of the threads' time: where they run, told by what `OnCpu` samples, and where they wait.
    Wall(Wall),
    /// The kernel's coming by a tracepoint.
    Tracepoint(Tracepoint),
}

/// How all of the threads' time is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wall {
    /// How waits are shown. All of them are wanted.
    pub waits: Waits,
    /// Whether threads are shown that slept from the beginning to the end.
    pub idle_threads: bool,
}

/// A BPF program of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name in the object.
    pub name: &'static str,
    /// Whether it is attached to a perf event, and not to a tracepoint.
    pub is_event: bool,
}

impl Program {
    /// The one that looks at every switch.
    pub const SWITCHES: Self = Self {
        name: "off_cpu",
        is_event: false,
    };
    /// The one that looks at every wake-up.
    pub const WOKEN: Self = Self {
        name: "woken",
        is_event: false,
    };
}

/// A place in the kernel that can be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// The category under which it is listed. The kernel finds it by its name alone.
    pub category: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for Tracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.category, self.name)
    }
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
    /// Which threads.
    pub threads: ThreadKind,
    /// Whether a frame at the leaf says what was waited for.
    pub reasons: bool,
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
            threads: ThreadKind::Both,
            reasons: false,
        }
    }
}

impl Probe {
    /// The BPF program.
    pub const fn program(&self) -> Program {
        match self {
            Self::OnCpu | Self::Wall(_) => Program {
                name: "on_cpu",
                is_event: true,
            },
            Self::OffCpu(_) => Program::SWITCHES,
            Self::Tracepoint(_) => Program {
                name: "tracepoint",
                is_event: false,
            },
        }
    }

    /// The tracepoint that the program is attached to, where it is one and not an event.
    pub fn tracepoint(&self) -> Option<&str> {
        match self {
            Self::OnCpu | Self::Wall(_) => None,
            Self::OffCpu(_) => Some(SWITCH),
            Self::Tracepoint(tracepoint) => Some(&tracepoint.name),
        }
    }

    /// What the title begins with; none where the event decides.
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::OnCpu => None,
            Self::OffCpu(_) => Some("off-CPU".to_owned()),
            Self::Wall(_) => Some("wall".to_owned()),
            Self::Tracepoint(tracepoint) => Some(tracepoint.to_string()),
        }
    }

    /// What one firing is called in sentences.
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::OnCpu | Self::Tracepoint(_) => "sample",
            Self::OffCpu(_) => "wait",
            Self::Wall(_) => "span",
        }
    }

    /// What weights count; none where the event decides.
    pub fn unit(&self) -> Option<Unit> {
        match self {
            Self::OnCpu => None,
            Self::OffCpu(_) | Self::Wall(_) => Some(Unit::Nanoseconds),
            Self::Tracepoint(tracepoint) => Some(Unit::Events(tracepoint.to_string())),
        }
    }

    /// The waits that are wanted, if it is waits that are recorded.
    pub const fn waits(&self) -> Option<&Waits> {
        match self {
            Self::OnCpu | Self::Tracepoint(_) => None,
            Self::OffCpu(waits) => Some(waits),
            Self::Wall(wall) => Some(&wall.waits),
        }
    }
}
