//! The table of probes: what triggers a sample, and what its weight means.
//!
//! In: nothing. Out: for each probe its programs and what they are attached to, its subject in titles,
//! and the unit of its weights. Never: asks the machine whether it has any of it.

use crate::profile::Unit;
pub use crate::profile::waits::Wakers;
use profiler_common::abi::{CallWeight, FileKinds, States, TaskState};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The tracepoint by which a CPU goes from one thread to another.
pub const SWITCH: &str = "sched_switch";

/// The tracepoint by which a thread is ready to run again.
pub const WAKEUP: &str = "sched_wakeup";

/// The tracepoint by which a thread is being woken, in the midst of what wakes it.
pub const WAKING: &str = "sched_waking";

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
    /// A program's calling a function.
    Function(Function),
    /// Requests for memory.
    Allocations,
    /// System calls, each of them, or the time in them.
    Calls(CallWeight),
    /// System calls that read, write and sync, and page faults for which a file is read.
    Io(Io),
    /// Waiting for locks.
    Locks(Locks),
}

/// Which reads, writes and syncs are wanted, and how they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// What they weigh.
    pub weight: CallWeight,
    /// Of which kinds of files. Mapped files are [`FileKinds::FILES`], but for devices.
    pub kinds: FileKinds,
    /// Whether a frame at the leaf has the file's name.
    pub names: bool,
}

/// Which locks are wanted; never none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locks {
    /// Those of the kernel.
    pub kernel: bool,
    /// Those of programs.
    pub user: bool,
}

/// What a BPF program is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// The plan's event, on each CPU.
    PerfEvent,
    /// Each occurrence of an event of the kernel's own, on each CPU.
    Occurrence(Occurrence),
    /// The tracepoint of this name.
    Tracepoint(String),
    /// The functions that the recording found.
    Functions,
}

/// An event that the kernel itself counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// What messages call it.
    pub name: &'static str,
    /// Its number (`include/uapi/linux/perf_event.h`, `enum perf_sw_ids`).
    pub number: u64,
}

/// Which page faults are looked at, for whether a page had to be read for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFaults {
    /// None.
    None,
    /// Those that the kernel calls major.
    Major,
    /// Also those that wait for a page which is being read already, where these are minor.
    Waiting,
}

impl PageFaults {
    /// As [`Probe::programs`].
    pub fn programs(self) -> Vec<(&'static str, Hook)> {
        let tracepoint = |program, name: &str| (program, Hook::Tracepoint(name.to_owned()));
        let major = Occurrence {
            name: "major-faults",
            number: 6,
        };
        let mut programs = vec![
            tracepoint("fault_begin", "page_fault_user"),
            tracepoint("fault_in_kernel", "page_fault_kernel"),
            ("fault_major", Hook::Occurrence(major)),
        ];
        match self {
            Self::None => programs.clear(),
            Self::Major => {}
            Self::Waiting => {
                programs.push(tracepoint("fault_locks", "mmap_lock_acquire_returned"));
                programs.push(tracepoint("fault_unlocks", "mmap_lock_released"));
            }
        }
        programs
    }
}

/// A function of a program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The file, or the name of a file that the target has mapped.
    pub file: PathBuf,
    /// The function's name, as the linker knows it or as graphs show it.
    pub name: String,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.file_name().unwrap_or(self.file.as_os_str());
        write!(f, "{}:{}", file.to_string_lossy(), self.name)
    }
}

/// How all of the threads' time is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wall {
    /// How waits are shown. All of them are wanted.
    pub waits: Waits,
    /// Whether threads are shown that slept from the beginning to the end.
    pub idle_threads: bool,
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
    /// How often a wait of each thread is looked at, which then stands for others; zero: all are.
    pub look_period: Duration,
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
            // Who could go on is not woken.
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
            look_period: Duration::ZERO,
            threads: ThreadKind::Both,
            reasons: false,
            wakers: Wakers::None,
        }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.weight {
            CallWeight::Time => "I/O time",
            CallWeight::Bytes => "I/O bytes",
            CallWeight::One => "I/O operations",
        };
        let named = [
            (FileKinds::FILES, "files"),
            (FileKinds::SOCKETS, "sockets"),
            (FileKinds::PIPES, "pipes"),
        ];
        let kinds: Vec<&str> = named
            .into_iter()
            .filter(|(kind, _)| self.kinds.has(*kind))
            .map(|(_, name)| name)
            .collect();
        if self.kinds == FileKinds::ALL {
            f.write_str(what)
        } else {
            write!(f, "{what} of {}", kinds.join(", "))
        }
    }
}

impl Probe {
    /// The names of the BPF programs that take samples, and what they are attached to, in the order in which
    /// that is done.
    pub fn programs(&self) -> Vec<(&'static str, Hook)> {
        let tracepoint = |name: &str| Hook::Tracepoint(name.to_owned());
        match self {
            Self::OnCpu => vec![("on_cpu", Hook::PerfEvent)],
            Self::OffCpu(waits) => {
                // First, so that no wait ends unseen.
                let wakers = waits.wakers != Wakers::None;
                let waking = wakers.then(|| ("waking", tracepoint(WAKING)));
                let switches = ("off_cpu", tracepoint(SWITCH));
                waking.into_iter().chain([switches]).collect()
            }
            Self::Wall(_) => vec![
                ("woken", tracepoint(WAKEUP)),
                ("off_cpu", tracepoint(SWITCH)),
                ("on_cpu", Hook::PerfEvent),
            ],
            Self::Tracepoint(named) => vec![("tracepoint", tracepoint(&named.name))],
            Self::Function(_) => vec![("function", Hook::Functions)],
            Self::Allocations => vec![
                ("thread_end", tracepoint("sched_process_exit")),
                ("allocation", Hook::Functions),
            ],
            Self::Calls(CallWeight::One) => vec![("call", tracepoint("sys_enter"))],
            Self::Calls(_) | Self::Io(_) => self.timed(true, false),
            Self::Locks(locks) => self.timed(locks.user, locks.kernel),
        }
    }

    /// The programs of what begins and ends. The ends come first, so that none is missed.
    fn timed(&self, calls: bool, locks: bool) -> Vec<(&'static str, Hook)> {
        let of_calls = [("call_end", "sys_exit"), ("call_begin", "sys_enter")];
        let of_locks = [
            ("lock_end", "contention_end"),
            ("lock_begin", "contention_begin"),
        ];
        let of_calls = calls.then_some(of_calls).into_iter().flatten();
        let of_locks = locks.then_some(of_locks).into_iter().flatten();
        std::iter::once(("thread_end", "sched_process_exit"))
            .chain(of_calls)
            .chain(of_locks)
            .map(|(program, name)| (program, Hook::Tracepoint(name.to_owned())))
            .collect()
    }

    /// What a firing weighs that begins with one run of a program and ends with another; none if all
    /// firings are over at once.
    pub const fn timed_weight(&self) -> Option<CallWeight> {
        match self {
            Self::OffCpu(_) | Self::Wall(_) | Self::Locks(_) => Some(CallWeight::Time),
            Self::Calls(CallWeight::One) => None,
            Self::Calls(weight) => Some(*weight),
            Self::Io(io) => Some(io.weight),
            Self::OnCpu | Self::Tracepoint(_) | Self::Function(_) | Self::Allocations => None,
        }
    }

    /// Whether the kernel half keeps something of each thread from one firing to the next.
    pub const fn keeps_threads(&self) -> bool {
        self.timed_weight().is_some() || matches!(self, Self::Allocations)
    }

    /// Whether what was sampled is told at the leaf by a number, and not by a place in the kernel alone.
    pub const fn has_leaf_words(&self) -> bool {
        matches!(self, Self::Calls(_) | Self::Io(_) | Self::Locks(_))
    }

    /// Whether a firing begins with a run of this program.
    pub fn begins_with(&self, program: &str) -> bool {
        !matches!(
            program,
            "call_end"
                | "fault_begin"
                | "fault_in_kernel"
                | "fault_locks"
                | "fault_unlocks"
                | "lock_end"
                | "thread_end"
                | "waking"
                | "woken"
        )
    }

    /// Whether it is an event that makes the probe fire.
    pub const fn is_on_event(&self) -> bool {
        matches!(self, Self::OnCpu | Self::Wall(_))
    }

    /// What the title begins with; none where the event decides.
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::OnCpu => None,
            Self::OffCpu(waits) => Some(
                match waits.wakers {
                    Wakers::None => "off-CPU",
                    Wakers::Alone => "wake-ups",
                    Wakers::Above => "off-CPU and wake-ups",
                }
                .to_owned(),
            ),
            Self::Wall(_) => Some("wall".to_owned()),
            Self::Tracepoint(tracepoint) => Some(tracepoint.to_string()),
            Self::Function(function) => Some(function.to_string()),
            Self::Allocations => Some("memory asked for".to_owned()),
            Self::Calls(CallWeight::One) => Some("system calls".to_owned()),
            Self::Calls(_) => Some("time in system calls".to_owned()),
            Self::Io(io) => Some(io.to_string()),
            Self::Locks(locks) => Some(
                match (locks.kernel, locks.user) {
                    (true, false) => "waiting for kernel locks",
                    (false, true) => "waiting for user locks",
                    _ => "waiting for locks",
                }
                .to_owned(),
            ),
        }
    }

    /// What one firing is called in sentences.
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::OnCpu | Self::Tracepoint(_) => "sample",
            Self::OffCpu(_) | Self::Locks(_) => "wait",
            Self::Function(_) | Self::Calls(_) => "call",
            Self::Io(_) => "operation",
            Self::Wall(_) => "span",
            Self::Allocations => "request",
        }
    }

    /// What weights count; none where the event decides.
    pub fn unit(&self) -> Option<Unit> {
        match self {
            Self::OnCpu => None,
            Self::Tracepoint(tracepoint) => Some(Unit::Events(tracepoint.to_string())),
            Self::Allocations => Some(Unit::Events("bytes".to_owned())),
            _ => Some(match self.timed_weight() {
                Some(CallWeight::Time) => Unit::Nanoseconds,
                Some(CallWeight::Bytes) => Unit::Events("bytes".to_owned()),
                Some(CallWeight::One) | None => Unit::Events(format!("{}s", self.noun())),
            }),
        }
    }

    /// The waits that are wanted, if it is waits that are recorded.
    pub const fn waits(&self) -> Option<&Waits> {
        match self {
            Self::OffCpu(waits) => Some(waits),
            Self::Wall(wall) => Some(&wall.waits),
            _ => None,
        }
    }
}
