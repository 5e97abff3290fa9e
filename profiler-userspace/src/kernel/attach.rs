//! Attaching: one perf event per CPU, tracepoints, functions; and the tracepoint that keeps the set of
//! targets current.

use super::counters::CounterMap;
use super::cpus::{is_online, online_cpus};
use super::errors::{is_refusal, missing, privilege};
use super::perf_events::PerfEvents;
use super::perf_link::{Policy, Source};
use super::programs::{Link, Programs};
use super::request::RequiredProgram;
use super::{Error, Result, btf, missed};
use crate::machine::{self, Rights, Trouble};
use crate::probe::{AttachPoint, Occurrence};
use crate::targets::UprobeSite;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope};
use aya::programs::{ProgramError, RawTracePoint, UProbe};
use profiler_common::abi::{Counter, ProgramId};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::Path;

/// Attaches an event's program to its perf event on the given CPUs, after [`attach`]; sampling begins here. A CPU
/// that has gone offline is left out.
pub(super) fn attach_event(
    programs: &mut Programs,
    wanted: &[RequiredProgram],
    event: usize,
    source: &Source,
    cpus: &[u32],
) -> Result<()> {
    match of_event(wanted, event) {
        Some(program) => attach_to_event(programs, program, event, source, cpus),
        None => Ok(()),
    }
}

/// Detaches an event's program from its perf event. It stays loaded.
pub(super) fn detach_event(programs: &mut Programs, wanted: &[RequiredProgram], event: usize) {
    if let Some(program) = of_event(wanted, event) {
        programs.close_links(program);
    }
}

/// The program of a perf event.
fn of_event(wanted: &[RequiredProgram], event: usize) -> Option<ProgramId> {
    let is_own =
        |wanted: &&RequiredProgram| wanted.at == AttachPoint::PerfEvent && wanted.event == event;
    wanted.iter().find(is_own).map(|wanted| wanted.program)
}

/// `event`: what the program is told where it fires.
fn attach_to_event(
    programs: &mut Programs,
    program: ProgramId,
    event: usize,
    source: &Source,
    cpus: &[u32],
) -> Result<()> {
    let mut events = PerfEvents::new(source.clone(), event);
    let fd = programs
        .attached(program)
        .ok_or_else(|| missing(program.name()))?;
    for &cpu in cpus {
        match events.open(fd, cpu) {
            // A CPU may go offline meanwhile; it is a failure only if none is left.
            Err(Error::NoEvent { .. }) if !events.is_empty() && !is_online(cpu) => {}
            result => result?,
        }
    }
    programs.keep_links(program, [Link::PerfEvents(events)]);
    Ok(())
}

/// Does something with the perf events of all programs.
pub(super) fn each_perf_event(
    programs: &mut Programs,
    mut change: impl FnMut(BorrowedFd<'_>, &mut PerfEvents) -> Result<()>,
) -> Result<()> {
    let attached: Vec<ProgramId> = programs.perf_events().map(|(program, _)| program).collect();
    let mut fds = HashMap::new();
    for program in attached {
        let fd = programs.attached(program);
        let fd = fd.ok_or_else(|| missing(program.name()))?;
        fds.insert(program, fd.try_clone_to_owned().map_err(out_of_files)?);
    }
    for (program, events) in programs.perf_events() {
        change(fds[&program].as_fd(), events)?;
    }
    Ok(())
}

fn out_of_files(source: io::Error) -> Error {
    Error::Attach {
        what: "the perf events again".to_owned(),
        source,
    }
}

/// Attaches a program to its tracepoint, to an event of the kernel's, or to the functions at `sites`; sampling begins here.
/// Programs for the plan's perf events are left to [`attach_event`].
pub(super) fn attach(
    programs: &mut Programs,
    wanted: &RequiredProgram,
    sites: &[UprobeSite],
) -> Result<()> {
    let program = wanted.program;
    match &wanted.at {
        AttachPoint::Tracepoint(name) => attach_tracepoint(programs, program, name),
        AttachPoint::Occurrence(occurrence) => attach_occurrence(programs, program, *occurrence),
        AttachPoint::Functions => attach_functions(programs, program, sites),
        AttachPoint::PerfEvent => Ok(()),
    }
}

fn attach_occurrence(
    programs: &mut Programs,
    program: ProgramId,
    occurrence: Occurrence,
) -> Result<()> {
    /// The kernel's own events (`include/uapi/linux/perf_event.h`, `PERF_TYPE_SOFTWARE`).
    const SOFTWARE: u32 = 1;
    let source = Source {
        name: occurrence.name.to_owned(),
        kind: SOFTWARE,
        config: occurrence.number,
        policy: Policy::Period(1),
    };
    let cpus = online_cpus().map_err(|source| Error::Attach {
        what: format!(
            "the event {} on all CPUs: /sys does not list them",
            occurrence.name
        ),
        source,
    })?;
    attach_to_event(programs, program, 0, &source, &cpus)
}

fn attach_tracepoint(programs: &mut Programs, program: ProgramId, name: &str) -> Result<()> {
    let loaded: &mut RawTracePoint = programs.get(program)?;
    let link = loaded.attach(name).and_then(|link| loaded.take_link(link));
    match link {
        Ok(link) => {
            programs.keep_links(program, [Link::Tracepoint(link)]);
            Ok(())
        }
        Err(ProgramError::SyscallError(error))
            if error.io_error.kind() == io::ErrorKind::NotFound =>
        {
            Err(Error::NoTracepoint {
                near: if name.starts_with("contention_") {
                    ": it tells of locks since Linux 5.19; --locks=user needs it not".to_owned()
                } else {
                    btf::near_tracepoints(name)
                },
                name: name.to_owned(),
            })
        }
        Err(error) => Err(failed(format!("the tracepoint {name}"), error)),
    }
}

/// By position alone: which file it is was decided before, and nothing here reads it.
fn attach_functions(
    programs: &mut Programs,
    program: ProgramId,
    sites: &[UprobeSite],
) -> Result<()> {
    let mut links = Vec::new();
    let loaded: &mut UProbe = programs.get(program)?;
    for entry in sites {
        let scope = entry
            .process
            .map_or(UProbeScope::AllProcesses, UProbeScope::OneProcess);
        let place = UProbeAttachLocation::AbsoluteOffset(entry.offset);
        // Not by its path, where another file may be by now.
        let path = format!("/proc/self/fd/{}", entry.file.as_raw_fd());
        let point = UProbeAttachPoint {
            location: place,
            cookie: Some(entry.cookie),
        };
        let link = loaded.attach(point, path, scope);
        match link.and_then(|link| loaded.take_link(link)) {
            Ok(link) => links.push(Link::Function(link)),
            Err(ProgramError::UProbeError(_)) => return Err(no_function_probes()),
            Err(ProgramError::SyscallError(error)) if is_refusal(&error.io_error) => {
                return Err(Error::Unfit {
                    what: format!(
                        "attaching to the function {} is not permitted: {}",
                        entry.name, error.io_error
                    ),
                    trouble: Rights::look().why_no_functions(),
                });
            }
            Err(error) => return Err(failed(format!("the function {}", entry.name), error)),
        }
    }
    programs.keep_links(program, links);
    Ok(())
}

/// Why functions cannot be watched.
fn no_function_probes() -> Error {
    let place = Path::new("/sys/bus/event_source/devices/uprobe");
    let built_without = || {
        Trouble::advice(
            "this kernel was built without uprobes (CONFIG_UPROBE_EVENTS)",
            "use a kernel that has them",
        )
    };
    Error::Unfit {
        what: "cannot watch functions of programs".to_owned(),
        trouble: machine::uncovered(place).unwrap_or_else(built_without),
    }
}

/// The programs that keep the targets true, with their tracepoints: one follows new tasks, one meets the command.
pub(super) const TASK_EVENTS: [(ProgramId, &str); 2] = [
    (ProgramId::Fork, "sched_process_fork"),
    (ProgramId::Exec, "sched_process_exec"),
];

/// Attaches some of the programs that keep the targets true, which are loaded.
pub(super) fn attach_task_events(
    programs: &mut Programs,
    task_events: &[(ProgramId, &str)],
) -> Result<()> {
    for (program, tracepoint) in task_events {
        let attached = programs.get::<RawTracePoint>(*program)?.attach(tracepoint);
        attached.map_err(|error| failed(format!("the tracepoint {tracepoint}"), error))?;
    }
    Ok(())
}

/// Detaches everything. When this returns, no program runs any more.
pub(super) fn detach(
    programs: &mut Programs,
    wanted: &[RequiredProgram],
    counters: &mut CounterMap,
) -> Result<()> {
    // In reverse order: the end of what is under way is seen for as long as something can begin.
    for wanted in wanted.iter().rev() {
        let name = wanted.program;
        programs.close_links(name);
        let what = match &wanted.at {
            AttachPoint::PerfEvent => "the perf event".to_owned(),
            AttachPoint::Occurrence(occurrence) => format!("the event {}", occurrence.name),
            AttachPoint::Tracepoint(tracepoint) => {
                if wanted.begins {
                    let missed = programs.attached(name).map_or(0, missed::runs);
                    counters.add(wanted.event, Counter::Fired, missed);
                    counters.add(wanted.event, Counter::LostReentered, missed);
                }
                format!("the tracepoint {tracepoint}")
            }
            AttachPoint::Functions => "the functions".to_owned(),
        };
        unloaded(&what, programs.unload(name))?;
    }
    for (program, tracepoint) in TASK_EVENTS {
        unloaded(
            &format!("the tracepoint {tracepoint}"),
            programs.unload(program),
        )?;
    }
    Ok(())
}

fn unloaded(what: &str, result: std::result::Result<(), ProgramError>) -> Result<()> {
    match result {
        Ok(()) | Err(ProgramError::NotLoaded) => Ok(()),
        Err(error) => Err(failed(format!("(and detaching again from) {what}"), error)),
    }
}

fn failed(what: String, error: ProgramError) -> Error {
    match error {
        ProgramError::SyscallError(error) if is_refusal(&error.io_error) => {
            privilege(format!("attaching to {what}"), &error.io_error)
        }
        ProgramError::SyscallError(error) => Error::Attach {
            what,
            source: error.io_error,
        },
        other => Error::Loader {
            step: "attaching",
            detail: other.to_string(),
        },
    }
}
