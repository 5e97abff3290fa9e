//! Page faults for which a file is read.

use super::{AttachPoint, Attachment, Occurrence};
use profiler_common::abi::ProgramId;

/// Which page faults are examined: a fault counts if a page had to be read for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFaults {
    /// None.
    None,
    /// Those that the kernel calls major.
    Major,
    /// Also those that wait for a page which is being read already, where these are minor.
    Waiting,
}

/// The event of a page fault for which a page had to be read.
const MAJOR: Occurrence = Occurrence {
    name: "major-faults",
    number: 6,
};

impl PageFaults {
    /// The programs that examine them, in the order in which they are attached.
    pub fn programs(self) -> Vec<Attachment> {
        let at = |program, name| Attachment::follows(program, AttachPoint::tracepoint(name));
        let mut programs = vec![
            at(ProgramId::FaultBegin, "page_fault_user"),
            at(ProgramId::FaultInKernel, "page_fault_kernel"),
            Attachment::begins(ProgramId::FaultMajor, AttachPoint::Occurrence(MAJOR)),
        ];
        match self {
            Self::None => programs.clear(),
            Self::Major => {}
            Self::Waiting => programs.extend([
                at(ProgramId::FaultLocks, "mmap_lock_acquire_returned"),
                at(ProgramId::FaultUnlocks, "mmap_lock_released"),
            ]),
        }
        programs
    }
}
