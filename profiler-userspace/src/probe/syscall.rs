//! System calls: each of them, the time in them, and what those move that read and write.

use super::{AttachPoint, Attachment, ProbeSpec};
use profiler_common::abi::{CallWeight, FileKinds, ProgramId};
use std::fmt;

/// The row of system calls of any kind.
pub(super) fn spec_of_calls(weight: CallWeight) -> ProbeSpec {
    let spec = match weight {
        CallWeight::One => {
            let call = Attachment::begins(ProgramId::Call, AttachPoint::tracepoint("sys_enter"));
            ProbeSpec::new("call", vec![call]).titled("system calls")
        }
        CallWeight::Time | CallWeight::Bytes => {
            let programs = [thread_end()].into_iter().chain(programs()).collect();
            let spec = ProbeSpec::new("call", programs).timed(weight);
            spec.titled("time in system calls")
        }
    };
    ProbeSpec {
        names_leaf: true,
        ..spec
    }
}

/// The row of system calls that read, write and sync. The programs for page faults come with what the kernel has of them.
pub(super) fn spec_of_io(io: &Io) -> ProbeSpec {
    let programs = [thread_end()].into_iter().chain(programs()).collect();
    let spec = ProbeSpec::new("operation", programs).timed(io.weight);
    ProbeSpec {
        names_leaf: true,
        ..spec.titled(io.to_string())
    }
}

/// The programs for calls that last. The end comes first, so that none is missed.
pub(super) fn programs() -> [Attachment; 2] {
    [
        Attachment::follows(ProgramId::CallEnd, AttachPoint::tracepoint("sys_exit")),
        Attachment::begins(ProgramId::CallBegin, AttachPoint::tracepoint("sys_enter")),
    ]
}

/// The program by which nothing is kept of threads that have ended.
pub(super) fn thread_end() -> Attachment {
    let at = AttachPoint::tracepoint("sched_process_exit");
    Attachment::follows(ProgramId::ThreadEnd, at)
}

/// Which reads, writes and syncs are wanted, and how they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// Their weight.
    pub weight: CallWeight,
    /// Of which kinds of files. Mapped files are [`FileKinds::FILES`], but for devices.
    pub kinds: FileKinds,
    /// Whether a frame at the leaf has the file's name.
    pub names: bool,
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
