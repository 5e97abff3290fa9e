//! Attaching: one perf event per CPU, tracepoints, functions; and the tracepoint that keeps the set of
//! targets current.

use super::errors::{is_refusal, privilege};
use super::perf_link::{Policy, Source};
use super::request::Wanted;
use super::{Error, Kernel, Result, btf, missed, perf_link, threads};
use crate::probe::{AttachPoint, Occurrence, SWITCH};
use crate::targets::UprobeSite;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope};
use aya::programs::{PerfEvent, ProgramError, RawTracePoint, UProbe};
use profiler_common::abi::{Counter, ProgramId, TargetKind};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

/// The CPUs that are running.
///
/// # Errors
/// The list under `/sys` cannot be read.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    aya::util::online_cpus().map_err(|(_, error)| error)
}

impl Kernel {
    /// Attaches an event's program to its perf event on the given CPUs, after [`Kernel::attach_programs`];
    /// sampling begins here. A CPU that has gone offline is left out.
    pub fn attach_event(&mut self, event: usize, source: &Source, cpus: &[u32]) -> Result<()> {
        let is_own = |wanted: &Wanted| wanted.at == AttachPoint::PerfEvent && wanted.event == event;
        let mut programs = self.request.programs().into_iter();
        match programs.find(is_own) {
            Some(Wanted { program, .. }) => self.attach_to_event(program, event, source, cpus),
            None => Ok(()),
        }
    }

    /// `event`: what the program is told where it fires.
    fn attach_to_event(
        &mut self,
        program: ProgramId,
        event: usize,
        source: &Source,
        cpus: &[u32],
    ) -> Result<()> {
        let mut links = Vec::new();
        let loaded: &mut PerfEvent = self.program(program)?;
        let fd = loaded
            .fd()
            .map_err(|error| failed(format!("the event {}", source.name), error))?;
        for &cpu in cpus {
            match perf_link::attach(fd.as_fd(), source, cpu, event as u64) {
                Ok(link) => links.push((program, link)),
                Err(error) => match open_error(source, cpu, error) {
                    // A CPU may go offline meanwhile; it is a failure only if none is left.
                    Error::NoEvent { .. } if !links.is_empty() && !is_online(cpu) => {}
                    error => return Err(error),
                },
            }
        }
        self.links.append(&mut links);
        Ok(())
    }

    /// Attaches the programs for tracepoints, and those for the functions at `sites`; sampling begins here.
    pub fn attach_programs(&mut self, sites: &[UprobeSite]) -> Result<()> {
        self.attach_fork()?;
        for Wanted { program, at, .. } in self.programs() {
            match at {
                AttachPoint::Tracepoint(tracepoint) => {
                    self.attach_tracepoint(program, &tracepoint)?
                }
                AttachPoint::Occurrence(occurrence) => {
                    self.attach_occurrence(program, occurrence)?
                }
                AttachPoint::Functions => self.attach_functions(program, sites)?,
                AttachPoint::PerfEvent => {}
            }
        }
        Ok(())
    }

    fn attach_occurrence(&mut self, program: ProgramId, occurrence: Occurrence) -> Result<()> {
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
        self.attach_to_event(program, 0, &source, &cpus)
    }

    fn attach_tracepoint(&mut self, program: ProgramId, name: &str) -> Result<()> {
        if name == SWITCH {
            self.begin(threads::now_ns());
        }
        let program: &mut RawTracePoint = self.program(program)?;
        match program.attach(name) {
            Ok(_) => Ok(()),
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
    fn attach_functions(&mut self, program: ProgramId, sites: &[UprobeSite]) -> Result<()> {
        let program: &mut UProbe = self.program(program)?;
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
            match program.attach(point, path, scope) {
                Ok(_) => {}
                Err(ProgramError::UProbeError(_)) => return Err(Error::NoFunctionProbes),
                Err(error) => return Err(failed(format!("the function {}", entry.name), error)),
            }
        }
        Ok(())
    }

    fn attach_fork(&mut self) -> Result<()> {
        if self.request.target != TargetKind::All && self.follows_targets() {
            let fork: &mut RawTracePoint = self.program(ProgramId::Fork)?;
            fork.attach("sched_process_fork")
                .map_err(|error| failed("the tracepoint sched_process_fork".into(), error))?;
        }
        Ok(())
    }

    /// Whether new tasks may change the set of targets, and we can see them.
    fn follows_targets(&self) -> bool {
        self.verified()
            .iter()
            .any(|program| program.program == ProgramId::Fork)
    }

    /// Detaches everything. When this returns, no program runs any more.
    pub fn detach(&mut self) -> Result<()> {
        self.ended_ns = threads::now_ns();
        // In reverse order: the end of what is under way is seen for as long as something can begin.
        for wanted in self.programs().into_iter().rev() {
            let name = wanted.program;
            self.links.retain(|(program, _)| *program != name);
            match wanted.at {
                AttachPoint::PerfEvent => {
                    let program: &mut PerfEvent = self.program(name)?;
                    unloaded("the perf event", program.unload())?;
                }
                AttachPoint::Occurrence(occurrence) => {
                    let program: &mut PerfEvent = self.program(name)?;
                    unloaded(&format!("the event {}", occurrence.name), program.unload())?;
                }
                AttachPoint::Tracepoint(tracepoint) => {
                    let program: &mut RawTracePoint = self.program(name)?;
                    let missed = program
                        .fd()
                        .map_or(0, |program| missed::runs(program.as_fd()));
                    if wanted.begins {
                        let own = &mut self.own[wanted.event].counters;
                        own[Counter::Fired as usize] += missed;
                        own[Counter::LostReentered as usize] += missed;
                    }
                    let program: &mut RawTracePoint = self.program(name)?;
                    unloaded(&format!("the tracepoint {tracepoint}"), program.unload())?;
                }
                AttachPoint::Functions => {
                    let program: &mut UProbe = self.program(name)?;
                    unloaded("the functions", program.unload())?;
                }
            }
        }
        let fork: &mut RawTracePoint = self.program(ProgramId::Fork)?;
        unloaded("the tracepoint sched_process_fork", fork.unload())?;
        Ok(())
    }
}

fn unloaded(what: &str, result: std::result::Result<(), ProgramError>) -> Result<()> {
    match result {
        Ok(()) | Err(ProgramError::NotLoaded) => Ok(()),
        Err(error) => Err(failed(format!("(and detaching again from) {what}"), error)),
    }
}

fn is_online(cpu: u32) -> bool {
    online_cpus().is_ok_and(|cpus| cpus.contains(&cpu))
}

fn open_error(source: &Source, cpu: u32, io_error: io::Error) -> Error {
    match io_error.raw_os_error() {
        _ if is_refusal(&io_error) => {
            privilege(format!("opening the perf event {}", source.name), io_error)
        }
        // ENOENT, ENODEV, EOPNOTSUPP, ENXIO: no such event, counter or CPU.
        Some(2 | 19 | 95 | 6) => Error::NoEvent {
            event: source.name.clone(),
            cpu: if is_online(cpu) {
                String::new()
            } else {
                format!(" on CPU {cpu}, which is not online")
            },
            source: io_error,
        },
        _ => Error::Attach {
            what: format!("the event {} on CPU {cpu}", source.name),
            source: io_error,
        },
    }
}

fn failed(what: String, error: ProgramError) -> Error {
    match error {
        ProgramError::SyscallError(error) if is_refusal(&error.io_error) => {
            privilege(format!("attaching to {what}"), error.io_error)
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
