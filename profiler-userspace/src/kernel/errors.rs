//! Errors, from the answers of aya and the kernel. Pure, but for a look at the kernel's lockdown.

use super::Error;
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
                privilege("making BPF maps".into(), io_error)
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
    if is_out_of_descriptors(&source) {
        let what = format!("the BPF map {name}");
        Error::OutOfDescriptors { what, source }
    } else {
        Error::Map { name, source }
    }
}

/// Whether this process has as many files open as it may.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::MFILE)
}

/// A refusal for want of privilege, with what more there is to try.
pub(super) fn privilege(what: String, source: io::Error) -> Error {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let hint = if lockdown.contains("[confidentiality]") {
        "; the kernel is locked down for confidentiality, which forbids BPF to read memory even for root: boot with lockdown=integrity or none"
    } else if rustix::process::geteuid().is_root() {
        "; you are root, so a container or a security policy holds these back (docker: --privileged, or --cap-add BPF --cap-add PERFMON with a seccomp profile that allows bpf and perf_event_open)"
    } else {
        ""
    };
    Error::Privilege {
        what,
        hint: hint.into(),
        source,
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
                return privilege(format!("loading the BPF program {name}"), io_error);
            }
            if is_out_of_descriptors(&io_error) {
                let what = format!("the BPF program {name}");
                return Error::OutOfDescriptors {
                    what,
                    source: io_error,
                };
            }
            let lines: Vec<&str> = log.lines().collect();
            Error::Program {
                name,
                log: lines[lines.len().saturating_sub(12)..].join("\n"),
                source: io_error,
            }
        }
        ProgramError::SyscallError(error) if is_refusal(&error.io_error) => {
            privilege(format!("running the BPF program {name}"), error.io_error)
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
