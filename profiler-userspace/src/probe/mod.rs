//! The table of probes: what triggers a sample, and what its weight means.
//!
//! In: what was asked for. Out: each probe's row ([`ProbeSpec`]): its programs and what they are attached to, its subject in
//! titles, the unit of its weights. Never: asks the machine whether it has any of it. Each probe's file has the name of
//! the kernel half's.

mod alloc;
mod lock;
mod off_cpu;
mod on_cpu;
mod page_in;
mod spec;
mod syscall;
mod tracepoint;
mod uprobe;
mod view;
mod waker;
mod wall;

pub use crate::profile::Wakers;
pub use lock::Locks;
pub use off_cpu::{SWITCH, ThreadKind, Waits};
pub use page_in::PageFaults;
pub use spec::{AttachPoint, Attachment, Occurrence, ProbeSpec, Timed};
pub use syscall::Io;
pub use tracepoint::Tracepoint;
pub use uprobe::Function;
pub use view::View;
pub use wall::Wall;

use crate::profile::{OffCpuView, Unit};
use profiler_common::abi::CallWeight;

/// Trigger of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A clock or a counter on each CPU. Which one is the plan's event; it decides the unit, too.
    OnCpu,
    /// Threads that leave the CPU and come back.
    OffCpu(Waits),
    /// All of the threads' time: where they run, by samples as of `OnCpu`, and where they wait.
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

impl Probe {
    /// The probe's row.
    pub fn spec(&self) -> ProbeSpec {
        match self {
            Self::OnCpu => on_cpu::spec(),
            Self::OffCpu(waits) => off_cpu::spec(waits),
            Self::Wall(_) => wall::spec(),
            Self::Tracepoint(named) => tracepoint::spec(named),
            Self::Function(function) => uprobe::spec(function),
            Self::Allocations => alloc::spec(),
            Self::Calls(weight) => syscall::spec_of_calls(*weight),
            Self::Io(io) => syscall::spec_of_io(io),
            Self::Locks(locks) => lock::spec(*locks),
        }
    }

    /// Beginning of the title; none where the event decides.
    pub fn subject(&self) -> Option<String> {
        self.spec().subject
    }

    /// Name of one firing in sentences.
    pub fn noun(&self) -> &'static str {
        self.spec().noun
    }

    /// How its graphs look unless the user says otherwise.
    pub fn view(&self) -> View {
        self.spec().view
    }

    /// Changes to its stacks before they are shown, where they have frames of the scheduler or of
    /// the probe itself. `kernel_stacks`: whether kernel frames are shown.
    pub fn off_cpu_view(&self, kernel_stacks: bool) -> Option<OffCpuView> {
        let waits = self.waits();
        (waits.is_some() || !self.is_on_event()).then(|| OffCpuView {
            scheduler: waits.is_none(),
            reasons: waits.is_some_and(|waits| waits.reasons),
            kernel: kernel_stacks,
            ran: matches!(self, Self::Wall(_)),
            wakers: waits.map_or(Wakers::None, |waits| waits.wakers),
        })
    }

    /// Unit of the weights; none where the event decides.
    pub fn unit(&self) -> Option<Unit> {
        self.spec().unit
    }

    /// Whether it is an event that makes the probe fire.
    pub fn is_on_event(&self) -> bool {
        let programs = self.spec().programs;
        programs
            .iter()
            .any(|program| program.at == AttachPoint::PerfEvent)
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
