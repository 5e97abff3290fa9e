//! The programs of the BPF object: loaded, found by their IDs, run on demand, followed by replacements.
//!
//! A replacement is the same program, loaded with other constants. The attached one jumps to it with its first instruction, so
//! that nothing is attached anew, and no firing is missed or counted twice.

use super::config_map::ConfigMap;
use super::errors::{missing, rejected};
use super::perf_events::PerfEvents;
use super::request::RequiredProgram;
use super::{Error, Result};
use aya::Ebpf;
use aya::maps::{Map, MapData, MapError, ProgramArray};
use aya::programs::raw_trace_point::RawTracePointLink;
use aya::programs::uprobe::UProbeLink;
use aya::programs::{
    PerfEvent, Program, ProgramError, ProgramFd, RawTracePoint, RawTracePointRunOptions,
    TestRun as _, UProbe,
};
use profiler_common::abi::{Config, ProgramId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::{AsFd as _, BorrowedFd};

/// A program that the verifier accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which.
    pub program: ProgramId,
    /// How many instructions the verifier looked at, where it says so (Linux 5.16).
    pub instructions: Option<u32>,
}

/// Link of a program, which is attached until this is closed.
pub(super) enum Link {
    /// To a perf event on each CPU.
    PerfEvents(PerfEvents),
    /// To a tracepoint.
    Tracepoint(
        #[expect(dead_code, reason = "nothing is done with it but to close it")] RawTracePointLink,
    ),
    /// To a function.
    Function(#[expect(dead_code, reason = "nothing is done with it but to close it")] UProbeLink),
}

/// The object's programs.
pub(super) struct Programs {
    ebpf: Ebpf,
    /// Maps that programs name and nobody else keeps.
    _named: Vec<MapData>,
    config: ConfigMap,
    links: Vec<(ProgramId, Link)>,
    /// Programs that are attached, in whose place replacements run.
    succeeded: HashMap<ProgramId, ProgramFd>,
    replacements: Replacements,
}

/// Where programs look for their replacements.
struct Replacements {
    perf_events: ProgramArray<MapData>,
    uprobes: ProgramArray<MapData>,
    tracepoints: ProgramArray<MapData>,
}

impl Programs {
    /// The programs of an object, none of them loaded. All maps that they name must live as long as this: the object's own,
    /// those `named`, and those that others keep.
    pub(super) fn new(mut ebpf: Ebpf, named: Vec<MapData>, config: ConfigMap) -> Result<Self> {
        let mut array = |name| {
            let map = ebpf.take_map(name);
            map.and_then(|map: Map| ProgramArray::try_from(map).ok())
                .ok_or_else(|| missing(name))
        };
        Ok(Self {
            replacements: Replacements {
                perf_events: array("NEXT_PERF_EVENT")?,
                uprobes: array("NEXT_UPROBE")?,
                tracepoints: array("NEXT_TRACEPOINT")?,
            },
            ebpf,
            _named: named,
            config,
            links: Vec::new(),
            succeeded: HashMap::new(),
        })
    }

    /// Loads the programs of all probes, with these constants.
    pub(super) fn load(&mut self, wanted: &[RequiredProgram], config: &Config) -> Result<()> {
        self.config.set(config)?;
        for RequiredProgram { program, .. } in wanted {
            match load(self.any(*program)?) {
                // By an event before.
                Ok(()) | Err(ProgramError::AlreadyLoaded) => {}
                Err(error) => return Err(rejected(*program, error)),
            }
        }
        Ok(())
    }

    /// Loads replacements of the attached programs that walk stacks, with these constants. They run from the next firing on.
    pub(super) fn succeed(&mut self, wanted: &[RequiredProgram], config: &Config) -> Result<()> {
        self.config.set(config)?;
        let mut programs: Vec<ProgramId> = wanted.iter().map(|wanted| wanted.program).collect();
        programs.sort_unstable();
        programs.dedup();
        for program in programs.into_iter().filter(|program| program.walks()) {
            self.succeed_one(program)
                .map_err(|error| rejected(program, error))?;
        }
        Ok(())
    }

    fn succeed_one(&mut self, id: ProgramId) -> std::result::Result<(), ProgramError> {
        let Some(program) = self.ebpf.program_mut(id.name()) else {
            return Err(ProgramError::NotLoaded);
        };
        // Its links are ours, so it stays attached; a replacement before this one runs until it is replaced.
        if let Entry::Vacant(first) = self.succeeded.entry(id) {
            first.insert(program.fd()?.try_clone()?);
        }
        unload(program)?;
        load(program)?;
        let array = match program {
            Program::PerfEvent(_) => &mut self.replacements.perf_events,
            Program::UProbe(_) => &mut self.replacements.uprobes,
            _ => &mut self.replacements.tracepoints,
        };
        array
            .set(id as u32, program.fd()?, 0)
            .map_err(|error| match error {
                MapError::SyscallError(error) => ProgramError::SyscallError(error),
                other => ProgramError::MapError(other),
            })
    }

    /// The program that is attached, whether or not a replacement runs in its place; none if it is not loaded.
    pub(super) fn attached(&self, id: ProgramId) -> Option<BorrowedFd<'_>> {
        let first = self.succeeded.get(&id);
        let own = || self.ebpf.program(id.name())?.fd().ok();
        first.or_else(own).map(|program| program.as_fd())
    }

    /// Has it noted how deep our PID namespace lies: the program looks at the task that runs it, which is us.
    pub(super) fn note_own_level(&mut self) -> Result<()> {
        self.load_tracepoint(ProgramId::OwnLevel)?;
        self.run(ProgramId::OwnLevel, 0)?;
        self.unload(ProgramId::OwnLevel)
            .map_err(|error| rejected(ProgramId::OwnLevel, error))
    }

    /// Loads a program that is of no probe.
    pub(super) fn load_tracepoint(&mut self, program: ProgramId) -> Result<()> {
        let loaded = self.get::<RawTracePoint>(program)?.load();
        loaded.map_err(|error| rejected(program, error))
    }

    /// Unloads a program that is attached no more.
    pub(super) fn unload(&mut self, program: ProgramId) -> std::result::Result<(), ProgramError> {
        self.succeeded.remove(&program);
        match self.ebpf.program_mut(program.name()) {
            Some(program) => unload(program),
            None => Err(ProgramError::NotLoaded),
        }
    }

    /// Runs a loaded program once, with this first argument.
    pub(super) fn run(&mut self, program: ProgramId, argument: u64) -> Result<()> {
        let mut options = RawTracePointRunOptions::new();
        options.args[0] = argument;
        let ran = self.get::<RawTracePoint>(program)?.test_run(options);
        ran.map(|_| ()).map_err(|error| rejected(program, error))
    }

    /// Keeps a program attached by these links.
    pub(super) fn keep_links(&mut self, program: ProgramId, links: impl IntoIterator<Item = Link>) {
        let links = links.into_iter().map(|link| (program, link));
        self.links.extend(links);
    }

    /// All perf events that programs are attached to.
    pub(super) fn perf_events(&mut self) -> impl Iterator<Item = (ProgramId, &mut PerfEvents)> {
        self.links
            .iter_mut()
            .filter_map(|(program, link)| match link {
                Link::PerfEvents(events) => Some((*program, events)),
                _ => None,
            })
    }

    /// Detaches a program.
    pub(super) fn close_links(&mut self, program: ProgramId) {
        self.links.retain(|(other, _)| *other != program);
    }

    /// The programs that are loaded, with what the verifier says of them; of those that have replacements, the last.
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
        &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
    {
        self.any(program)?
            .try_into()
            .map_err(|error: ProgramError| Error::Loader {
                step: "looking for a program",
                detail: error.to_string(),
            })
    }

    fn any(&mut self, program: ProgramId) -> Result<&mut Program> {
        self.ebpf
            .program_mut(program.name())
            .ok_or_else(|| missing(program.name()))
    }
}

/// Loads a program of one of the types that probes have.
fn load(program: &mut Program) -> std::result::Result<(), ProgramError> {
    match program {
        Program::PerfEvent(program) => PerfEvent::load(program),
        Program::RawTracePoint(program) => RawTracePoint::load(program),
        Program::UProbe(program) => UProbe::load(program),
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}

/// Unloads such a program. It runs on where links of ours attach it.
fn unload(program: &mut Program) -> std::result::Result<(), ProgramError> {
    match program {
        Program::PerfEvent(program) => program.unload(),
        Program::RawTracePoint(program) => program.unload(),
        Program::UProbe(program) => program.unload(),
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}
