//! Errors, from the answers of aya and the kernel. Pure, but for a look at this process's rights.

use super::Error;
use crate::machine::{Rights, Trouble};
use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use profiler_common::abi::ProgramId;
use std::io;

/// The object lacks this.
pub(super) fn missing(name: &'static str) -> Error {
    Error::Loader {
        step: "looking into the BPF object",
        detail: format!("it has no {name}"),
    }
}

/// Whether the kernel's answer means "not you".
pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied)
}

/// Why an object could not be loaded.
pub(super) fn loading(error: EbpfError) -> Error {
    match error {
        EbpfError::MapError(MapError::CreateError { name, io_error }) => {
            if is_refusal(&io_error) {
                privilege("making BPF maps".into(), &io_error)
            } else {
                map(name, io_error)
            }
        }
        other => Error::Loader {
            step: "loading the BPF object",
            detail: chain(&other),
        },
    }
}

/// Why a map was not made.
pub(super) fn map(name: String, source: io::Error) -> Error {
    let what = format!("the BPF map {name}");
    if is_out_of_descriptors(&source) {
        return out_of_descriptors(what, &source);
    }
    Error::Unfit {
        what: format!("cannot make {what}: {source}"),
        trouble: Trouble::advice(
            "memory is short, or limited",
            "use a smaller --map-memory, raise the limit of its cgroup, or, before Linux 5.11, `ulimit -l`",
        ),
    }
}

/// `what` could not be made because this process has too many files open.
fn out_of_descriptors(what: String, source: &io::Error) -> Error {
    Error::Unfit {
        what: format!("cannot make {what}: {source}"),
        trouble: Trouble::descriptors("this process may not open more files"),
    }
}

/// Whether this process has as many files open as it may.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::MFILE)
}

/// A refusal for want of privilege.
pub(super) fn privilege(what: String, source: &io::Error) -> Error {
    Error::Unfit {
        what: format!("{what} is not permitted: {source}"),
        trouble: Rights::look().why_refused(),
    }
}

/// Why a program was not loaded, or not run.
pub(super) fn rejected(program: ProgramId, error: ProgramError) -> Error {
    let name = program.name();
    match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            if is_refusal(&io_error) && log.is_empty() {
                return privilege(format!("loading the BPF program {name}"), &io_error);
            }
            if is_out_of_descriptors(&io_error) {
                return out_of_descriptors(format!("the BPF program {name}"), &io_error);
            }
            let lines: Vec<&str> = log.lines().collect();
            Error::Program {
                name,
                log: lines[lines.len().saturating_sub(12)..].join("\n"),
                source: io_error,
            }
        }
        ProgramError::SyscallError(error) if is_refusal(&error.io_error) => {
            privilege(format!("running the BPF program {name}"), &error.io_error)
        }
        other => Error::Loader {
            step: "loading a BPF program",
            detail: chain(&other),
        },
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
