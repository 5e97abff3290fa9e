//! The programs of the BPF object: loaded, found by their IDs, run on demand.

use super::errors::{missing, rejected};
use super::request::Wanted;
use super::{Error, Result, Support};
use crate::probe::AttachPoint;
use aya::Ebpf;
use aya::programs::{
    PerfEvent, ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun as _, UProbe,
};
use profiler_common::abi::ProgramId;
use std::os::fd::OwnedFd;

/// A program that the verifier accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which.
    pub program: ProgramId,
    /// How many instructions the verifier looked at, where it says so (Linux 5.16).
    pub instructions: Option<u32>,
}

/// The object's programs.
pub(super) struct Programs {
    ebpf: Ebpf,
    /// The perf events that programs are attached to, until these are closed.
    links: Vec<(ProgramId, OwnedFd)>,
}

impl Programs {
    /// The programs of an object, none of them loaded. All maps that they name must live until they are.
    pub(super) fn new(ebpf: Ebpf) -> Self {
        Self {
            ebpf,
            links: Vec::new(),
        }
    }

    /// Loads the programs of all probes.
    pub(super) fn load(&mut self, wanted: &[Wanted], support: &Support) -> Result<()> {
        for Wanted { program, at, .. } in wanted {
            let loaded = match at {
                AttachPoint::PerfEvent | AttachPoint::Occurrence(_) => {
                    self.get::<PerfEvent>(*program)?.load()
                }
                AttachPoint::Tracepoint(_) => self.get::<RawTracePoint>(*program)?.load(),
                AttachPoint::Functions => self.get::<UProbe>(*program)?.load(),
            };
            match loaded {
                // By an event before.
                Ok(()) | Err(ProgramError::AlreadyLoaded) => {}
                Err(error) => return Err(rejected(*program, error)),
            }
        }
        if support.pid_namespace.is_some() {
            // It looks at the task that runs it, which is us, and notes how deep our PID namespace lies.
            self.load_tracepoint(ProgramId::OwnLevel)?;
            self.run(ProgramId::OwnLevel, 0)?;
            let program: &mut RawTracePoint = self.get(ProgramId::OwnLevel)?;
            let unloaded = program.unload();
            unloaded.map_err(|error| rejected(ProgramId::OwnLevel, error))?;
        }
        Ok(())
    }

    /// Loads a program that is of no probe.
    pub(super) fn load_tracepoint(&mut self, program: ProgramId) -> Result<()> {
        let loaded = self.get::<RawTracePoint>(program)?.load();
        loaded.map_err(|error| rejected(program, error))
    }

    /// Runs a loaded program once, with this first argument.
    pub(super) fn run(&mut self, program: ProgramId, argument: u64) -> Result<()> {
        let mut options = RawTracePointRunOptions::new();
        options.args[0] = argument;
        let ran = self.get::<RawTracePoint>(program)?.test_run(options);
        ran.map(|_| ()).map_err(|error| rejected(program, error))
    }

    /// Keeps a program attached to these perf events.
    pub(super) fn keep_links(&mut self, program: ProgramId, links: Vec<OwnedFd>) {
        let links = links.into_iter().map(|link| (program, link));
        self.links.extend(links);
    }

    /// Detaches a program from its perf events.
    pub(super) fn close_links(&mut self, program: ProgramId) {
        self.links.retain(|(other, _)| *other != program);
    }

    /// The programs that are loaded, with what the verifier says of them.
    pub(super) fn verified(&self) -> Vec<Verified> {
        let programs = self.ebpf.programs();
        programs
            .filter_map(|(name, program)| {
                let info = program.info().ok()?;
                let id = ProgramId::ALL.iter().find(|id| id.name() == name)?;
                Some(Verified {
                    program: *id,
                    instructions: info.verified_instruction_count(),
                })
            })
            .collect()
    }

    /// A program, of the type that it has.
    pub(super) fn get<'a, P>(&'a mut self, program: ProgramId) -> Result<&'a mut P>
    where
        &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
    {
        self.ebpf
            .program_mut(program.name())
            .ok_or_else(|| missing(program.name()))?
            .try_into()
            .map_err(|error: ProgramError| Error::Loader {
                step: "looking for a program",
                detail: error.to_string(),
            })
    }
}
