//! Loading: constants in, sizes in, programs verified.

use super::constants::config;
use super::drain::Drained;
use super::errors::{loading, missing, rejected};
use super::logs::{self, Logs};
use super::notices::queue_bytes;
use super::request::Wanted;
use super::shared::{array, map};
use super::size::Sizes;
use super::slabs::SLAB_BYTES;
use super::tables::Tables;
use super::threads::{KERNEL_STACK_BYTES, ThreadRoom, Threads};
use super::{Error, Kernel, Request, Result, Support};
use crate::probe::AttachPoint;
use aya::maps::{HashMap, Map, MapData, RingBuf};
use aya::programs::{
    PerfEvent, ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun as _, UProbe,
};
use aya::{Ebpf, EbpfLoader, VerifierLogLevel};
use profiler_common::abi::{
    CODE_SLOT_BITS, COUNTERS_WORDS, Control, Counters, MAX_RULES, ProgramId, SIDES, SLAB_BITS,
    Switches, TargetKind,
};
use rustix::process::Rlimit;
use std::sync::atomic::Ordering::Relaxed;

/// The BPF object that `cargo xtask bpf` made.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../profiler-ebpf/prebuilt/flame.bpf.o");

/// A program that the verifier accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which.
    pub program: ProgramId,
    /// How many instructions the verifier looked at, where it says so (Linux 5.16).
    pub instructions: Option<u32>,
}

/// The array maps that are mapped in pieces when they are drained.
pub(super) struct Maps {
    pub(super) tallies: MapData,
    pub(super) tally_index: MapData,
    pub(super) stacks: MapData,
    pub(super) stack_index: MapData,
    pub(super) symbol: MapData,
    pub(super) asked_code: MapData,
}

impl Kernel {
    /// Creates the maps and loads the programs; attaches nothing yet.
    pub fn load(request: Request, support: &Support) -> Result<Self> {
        if support.pid_namespace.is_some() && support.layout.is_none() {
            return Err(Error::NamespaceWithoutBtf);
        }
        if request.keeps_threads() && support.layout.is_none() {
            return Err(Error::SwitchesWithoutBtf);
        }
        if request.io().is_some() && support.files.is_none() {
            return Err(Error::FilesWithoutBtf);
        }
        let cpus = possible_cpus();
        let room = ThreadRoom::new(&request);
        // Where threads' switches are looked at, their kernel stacks are.
        let switching = if request.waits().is_some() { cpus } else { 0 };
        let thread_bytes = room.bytes + u64::from(switching) * KERNEL_STACK_BYTES;
        let left = request.map_memory.saturating_sub(thread_bytes);
        let events = u32::try_from(request.events()).unwrap_or(u32::MAX);
        let sizes = Sizes::new(cpus, events, support.task_ids, left)
            .map_err(|error| error.with_more_map_memory(thread_bytes))?;
        raise_memlock();
        let config = config(&request, support, &sizes);
        let rows = config.switches.has(Switches::UNWIND_ROWS);
        let mut ebpf = loader_without_kernel_types()
            // Asked for only when a program is rejected.
            .verifier_log_level(VerifierLogLevel::DEBUG)
            .override_global("CONFIG", &config, true)
            .map_max_entries("COUNTERS", sizes.cpu_slots)
            .map_max_entries("SCRATCH", sizes.cpu_slots)
            .map_max_entries("KERNEL_STACKS", switching.max(1))
            .map_max_entries("NOTICES", queue_bytes(cpus))
            .map_max_entries("AYA_LOGS", logs::room(config.switches.has(Switches::LOG)))
            .map_max_entries("TARGETS", sizes.target_words)
            .map_max_entries("TALLIES", SIDES as u32 * sizes.tallies)
            .map_max_entries("TALLY_INDEX", SIDES as u32 * sizes.tally_slots())
            .map_max_entries("STACKS", SIDES as u32 * sizes.blocks)
            .map_max_entries("THREADS", room.threads)
            .map_max_entries("WAKERS", room.wakers)
            .map_max_entries("REQUESTS", room.requests)
            .map_max_entries("STACK_INDEX", SIDES as u32 * sizes.stack_slots())
            .map_max_entries("SLABS", slabs(&request, rows))
            .map_max_entries("CODE", if rows { 1 << CODE_SLOT_BITS } else { 1 })
            .map_max_entries("RULES", if rows { MAX_RULES as u32 } else { 1 })
            .load(OBJECT)
            .map_err(loading)?;
        let wants_logs = config.switches.has(Switches::LOG);
        let logs = wants_logs.then(|| Logs::new(&mut ebpf)).transpose()?;
        let control = array(&mut ebpf, "CONTROL")?;
        let counters = array(&mut ebpf, "COUNTERS")?;
        let targets = array(&mut ebpf, "TARGETS")?;
        let maps = Maps {
            tallies: array(&mut ebpf, "TALLIES")?,
            tally_index: array(&mut ebpf, "TALLY_INDEX")?,
            stacks: array(&mut ebpf, "STACKS")?,
            stack_index: array(&mut ebpf, "STACK_INDEX")?,
            symbol: array(&mut ebpf, "SYMBOL")?,
            asked_code: array(&mut ebpf, "ASKED_CODE")?,
        };
        // All maps must live until the programs that name them are loaded.
        let (code, rules) = (array(&mut ebpf, "CODE")?, array(&mut ebpf, "RULES")?);
        let tables = if rows {
            let slabs = maps_of(&mut ebpf, "SLABS")?;
            let shared = [&code, &rules, &counters, &control];
            Some(Tables::new(
                slabs,
                shared,
                sizes.cpu_slots as usize,
                config.seed,
            )?)
        } else {
            None
        };
        let notices = ebpf
            .take_map("NOTICES")
            .and_then(|map| RingBuf::try_from(map).ok())
            .ok_or_else(|| missing("NOTICES"))?;
        mark_targets(&targets, &request.ids, &sizes)?;
        // Those that are not taken stay with the object.
        let mut hash = |name, room: u32| (room > 1).then(|| ebpf.take_map(name)).flatten();
        let threads = Threads {
            looking: Ok(()),
            table: hash("THREADS", room.threads).and_then(|map| HashMap::try_from(map).ok()),
            wakers: hash("WAKERS", room.wakers).and_then(|map| HashMap::try_from(map).ok()),
            bytes: thread_bytes,
        };
        let own = vec![Counters::EMPTY; request.events()];
        let mut kernel = Self {
            control: map("CONTROL", &control, 0, size_of::<Control>() / 8)?,
            counters: map(
                "COUNTERS",
                &counters,
                0,
                sizes.cpu_slots as usize * COUNTERS_WORDS,
            )?,
            ebpf,
            maps,
            sizes,
            page_faults: support.page_faults(request.io()),
            request,
            notices,
            drained: Drained::default(),
            tables,
            tells: config.switches.has(Switches::TELL_MAPPINGS),
            threads,
            links: Vec::new(),
            own,
            logs,
            began_ns: 0,
            ended_ns: 0,
        };
        kernel.load_programs(support)?;
        Ok(kernel)
    }

    fn load_programs(&mut self, support: &Support) -> Result<()> {
        for Wanted { program, at, .. } in self.programs() {
            let loaded = match at {
                AttachPoint::PerfEvent | AttachPoint::Occurrence(_) => {
                    self.program::<PerfEvent>(program)?.load()
                }
                AttachPoint::Tracepoint(_) => self.program::<RawTracePoint>(program)?.load(),
                AttachPoint::Functions => self.program::<UProbe>(program)?.load(),
            };
            match loaded {
                // By an event before.
                Ok(()) | Err(ProgramError::AlreadyLoaded) => {}
                Err(error) => return Err(rejected(program, error)),
            }
        }
        if self.request.waits().is_some() {
            // Without it, threads are counted from their first switch on.
            self.threads.looking = self.load_asleep();
        }
        if support.layout.is_some() && self.request.target != TargetKind::All {
            let fork: &mut RawTracePoint = self.program(ProgramId::Fork)?;
            fork.load()
                .map_err(|error| rejected(ProgramId::Fork, error))?;
        }
        if self.tells {
            let code_key: &mut RawTracePoint = self.program(ProgramId::CodeKey)?;
            code_key
                .load()
                .map_err(|error| rejected(ProgramId::CodeKey, error))?;
        }
        if support.pid_namespace.is_some() {
            self.note_namespace_level()?;
        }
        Ok(())
    }

    /// Has the kernel half note how deep our PID namespace lies: it looks at the task that runs it,
    /// which is us.
    fn note_namespace_level(&mut self) -> Result<()> {
        let program: &mut RawTracePoint = self.program(ProgramId::OwnLevel)?;
        program
            .load()
            .map_err(|error| rejected(ProgramId::OwnLevel, error))?;
        program
            .test_run(RawTracePointRunOptions::new())
            .map_err(|error| rejected(ProgramId::OwnLevel, error))?;
        program
            .unload()
            .map_err(|error| rejected(ProgramId::OwnLevel, error))
    }

    /// The programs that are loaded, with what the verifier says of them.
    pub fn verified(&self) -> Vec<Verified> {
        self.ebpf
            .programs()
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

    pub(super) fn program<'a, P>(&'a mut self, program: ProgramId) -> Result<&'a mut P>
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

/// A loader that has not read the kernel's type information.
///
/// aya's only constructor parses all of it at once, and treats a file that cannot be opened as one that
/// is not there. Nothing of ours is relocated against those types, and the parsing takes 40 ms and
/// 20 MB, more than all the rest of a recording. So for the length of that one call this process may
/// open no files; those that are open are not touched.
fn loader_without_kernel_types<'a>() -> EbpfLoader<'a> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let usual = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..usual
    };
    let limited = setrlimit(Resource::Nofile, none).is_ok();
    let mut loader = EbpfLoader::new();
    if limited {
        let _restored = setrlimit(Resource::Nofile, usual);
    }
    loader.btf(None);
    loader
}

fn mark_targets(targets: &MapData, ids: &[u32], sizes: &Sizes) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let bits = map("TARGETS", targets, 0, sizes.target_words as usize)?;
    for &id in ids {
        if let Some(word) = bits.words().get(id as usize / 64) {
            word.fetch_or(1 << (id % 64), Relaxed);
        }
    }
    Ok(())
}

/// A map of maps. Taken by whoever fills it; its type is checked there.
fn maps_of(ebpf: &mut Ebpf, name: &'static str) -> Result<MapData> {
    match ebpf.take_map(name) {
        Some(Map::ArrayOfMaps(data)) => Ok(data),
        _ => Err(missing(name)),
    }
}

/// How many slabs there may be.
fn slabs(request: &Request, rows: bool) -> u32 {
    if !rows {
        return 1;
    }
    u32::try_from(request.unwind_memory / SLAB_BYTES)
        .unwrap_or(u32::MAX)
        .clamp(1, MOST_SLABS)
}

/// As many as places of rows, which are numbers of 32 bits, can tell apart: 16 GiB.
const MOST_SLABS: u32 = 1 << (32 - SLAB_BITS);

/// CPUs that may ever run; the kernel half is asked for counters by CPU number, and no number is above.
fn possible_cpus() -> u32 {
    aya::util::nr_cpus()
        .ok()
        .and_then(|cpus| u32::try_from(cpus).ok())
        .unwrap_or(1)
}

/// Before Linux 5.11, maps count against the limit on locked memory. Where raising it is refused, the
/// maps may still fit, so that is no failure.
fn raise_memlock() {
    use rustix::process::{Resource, setrlimit};
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    if setrlimit(Resource::Memlock, unlimited).is_err() {
        let limit = rustix::process::getrlimit(Resource::Memlock);
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        let _refused = setrlimit(Resource::Memlock, raised);
    }
}
