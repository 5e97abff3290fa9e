//! Loading: constants in, sizes in, maps made.

use super::attach::TASK_EVENTS;
use super::cgroups::CgroupTable;
use super::config_map::ConfigMap;
use super::constants::{config, shows_runtimes};
use super::counters::CounterMap;
use super::descriptors::Descriptors;
use super::errors::{loading, missing};
use super::events::{Events, queue_bytes};
use super::files::FileKeys;
use super::logs::{self, Logs};
use super::programs::Programs;
use super::pruned;
use super::request::RequiredProgram;
use super::shared::{array, map};
use super::size::Sizes;
use super::slabs::SLAB_BYTES;
use super::store::{Store, StoreMaps};
use super::symbols::SymbolNames;
use super::tables::Tables;
use super::threads::{KERNEL_STACK_BYTES, ThreadRoom, Threads};
use super::{Error, Kernel, Request, Result, Support};
use crate::machine::Trouble;
use aya::maps::{HashMap, Map, MapData, RingBuf};
use aya::{Ebpf, EbpfLoader, VerifierLogLevel};
use profiler_common::abi::{
    CGROUP_SLOTS, CODE_SLOT_BITS, COUNTERS_WORDS, Control, MAX_RULES, OFTEN_WAITING_SLOTS,
    ProgramId, SIDES, SLAB_BITS, Switches, TargetKind,
};
use rustix::process::Rlimit;
use std::sync::atomic::Ordering::Relaxed;

/// The BPF object that `cargo xtask bpf` made.
pub(super) static OBJECT: &[u8] =
    aya::include_bytes_aligned!("../../../profiler-ebpf/prebuilt/flame.bpf.o");

/// Creates the maps and loads the programs that are no probe's.
pub(super) fn load(request: Request, support: &Support) -> Result<Kernel> {
    if support.pid_namespace.is_some() && support.layout.is_none() {
        return Err(Error::no_type_information(
            "recording inside a PID namespace",
        ));
    }
    if request.keeps_threads() && support.layout.is_none() {
        return Err(Error::no_type_information(
            "following threads from one event to the next",
        ));
    }
    if request.io().is_some() && support.files.is_none() {
        let what = "telling the kinds of files";
        return Err(match support.layout {
            None => Error::no_type_information(what),
            Some(_) => Error::Unfit {
                what: what.to_owned(),
                trouble: Trouble::advice(
                    "this kernel's type information does not say where it keeps open files",
                    "--syscalls shows reads and writes of any",
                ),
            },
        });
    }
    let cgroup_in_set = (request.cgroups.as_ref()).and_then(|it| support.cgroup_in_set(it));
    if request.target == TargetKind::Cgroups && cgroup_in_set.is_none() {
        return Err(Error::no_type_information("telling cgroups apart"));
    }
    let cpus = possible_cpus();
    let room = ThreadRoom::new(&request);
    // Where threads' switches are looked at, their kernel stacks are.
    let switching = if request.waits().is_some() { cpus } else { 0 };
    let often_waiting = match request.waits_vary {
        true => OFTEN_WAITING_SLOTS,
        false => 1,
    };
    let thread_bytes =
        room.bytes + u64::from(switching) * KERNEL_STACK_BYTES + u64::from(often_waiting) * 8;
    let left = request.map_memory.saturating_sub(thread_bytes);
    let events = u32::try_from(request.events()).unwrap_or(u32::MAX);
    let sizes = Sizes::new(cpus, events, support.task_ids, left)
        .map_err(|error| error.with_more_map_memory(thread_bytes))?;
    raise_memlock();
    let config = config(&request, support, &sizes);
    let rows = config.switches.has(Switches::UNWIND_ROWS);
    let mut wanted = request.programs();
    wanted.extend(request.page_fault_programs(support.page_faults(request.io())));
    let mut ebpf = loader_without_kernel_types()
        // Asked for only when a program is rejected.
        .verifier_log_level(VerifierLogLevel::DEBUG)
        .override_global("CONFIG", &config, true)
        .map_max_entries("COUNTERS", sizes.cpu_slots)
        .map_max_entries("SCRATCH", sizes.cpu_slots)
        .map_max_entries("KERNEL_STACKS", switching.max(1))
        .map_max_entries("KERNEL_EVENTS", queue_bytes(cpus))
        .map_max_entries("AYA_LOGS", logs::room(config.switches.has(Switches::LOG)))
        .map_max_entries("TARGETS", sizes.target_words)
        .map_max_entries("TALLIES", SIDES as u32 * sizes.tallies)
        .map_max_entries("TALLY_INDEX", SIDES as u32 * sizes.tally_slots())
        .map_max_entries("STACKS", SIDES as u32 * sizes.blocks)
        .map_max_entries("THREADS", room.threads)
        .map_max_entries("WAKERS", room.wakers)
        .map_max_entries("REQUESTS", room.requests)
        .map_max_entries("OFTEN_WAITING", often_waiting)
        .map_max_entries("STACK_INDEX", SIDES as u32 * sizes.stack_slots())
        .map_max_entries("SLABS", slabs(&request, rows))
        .map_max_entries("CODE", if rows { 1 << CODE_SLOT_BITS } else { 1 })
        .map_max_entries(
            "CGROUPS",
            if cgroup_in_set.is_some() {
                CGROUP_SLOTS
            } else {
                1
            },
        )
        .map_max_entries("RULES", if rows { MAX_RULES as u32 } else { 1 })
        .load(&object_for(&wanted))
        .map_err(loading)?;
    let wants_logs = config.switches.has(Switches::LOG);
    let logs = wants_logs.then(|| Logs::new(&mut ebpf)).transpose()?;
    let control_map = array(&mut ebpf, "CONTROL")?;
    let counters_map = array(&mut ebpf, "COUNTERS")?;
    let targets = array(&mut ebpf, "TARGETS")?;
    let store = StoreMaps {
        tallies: array(&mut ebpf, "TALLIES")?,
        tally_index: array(&mut ebpf, "TALLY_INDEX")?,
        stacks: array(&mut ebpf, "STACKS")?,
        stack_index: array(&mut ebpf, "STACK_INDEX")?,
    };
    let names = SymbolNames::new(array(&mut ebpf, "SYMBOL")?);
    let keys = FileKeys::new(array(&mut ebpf, "ASKED_CODE")?)?;
    let config_map = ConfigMap::new(array(&mut ebpf, ".rodata.config")?);
    let (code, rules) = (array(&mut ebpf, "CODE")?, array(&mut ebpf, "RULES")?);
    let runtimes = array(&mut ebpf, "RUNTIMES")?;
    let cgroups = array(&mut ebpf, "CGROUPS")?;
    let tables = if rows {
        let slabs = maps_of(&mut ebpf, "SLABS")?;
        let shared = [&code, &rules, &counters_map, &control_map, &runtimes];
        Some(Tables::new(
            slabs,
            shared,
            sizes.cpu_slots as usize,
            config.seed,
        )?)
    } else {
        None
    };
    let events_queue = ebpf
        .take_map("KERNEL_EVENTS")
        .and_then(|map| RingBuf::try_from(map).ok())
        .ok_or_else(|| missing("KERNEL_EVENTS"))?;
    // A command is marked when it runs its program; where nothing can tell of that, at once.
    let begins_at_exec = support.layout.is_some() && request.launched().is_some();
    if !begins_at_exec {
        mark_targets(&targets, &request.ids, &sizes)?;
    }
    let is_by_id = ![TargetKind::All, TargetKind::Cgroups].contains(&request.target);
    let follows_targets = support.layout.is_some() && is_by_id;
    let task_events = TASK_EVENTS.into_iter();
    let task_events = task_events.filter(|(program, _)| match program {
        ProgramId::Exec => begins_at_exec,
        _ => follows_targets,
    });
    let task_events = task_events.collect();
    // Those that are not taken stay with the object.
    let mut hash = |name, room: u32| (room > 1).then(|| ebpf.take_map(name)).flatten();
    let threads = Threads::new(
        &request,
        hash("THREADS", room.threads).and_then(|map| HashMap::try_from(map).ok()),
        hash("WAKERS", room.wakers).and_then(|map| HashMap::try_from(map).ok()),
        thread_bytes,
    );
    let control = map("CONTROL", &control_map, 0, size_of::<Control>() / 8)?;
    let words = sizes.cpu_slots as usize * COUNTERS_WORDS;
    let counters = CounterMap::new(
        map("COUNTERS", &counters_map, 0, words)?,
        sizes.cpus,
        request.events(),
        request.lasting_event(),
    );
    let runtime_descriptors = Descriptors::new(&runtimes)?;
    let cgroup_table = match cgroup_in_set {
        Some(_) => Some(CgroupTable::new(&cgroups, config.seed)?),
        None => None,
    };
    // In our memory or in use elsewhere; programs that are loaded later name them by these descriptors.
    let named = vec![
        control_map,
        counters_map,
        targets,
        code,
        rules,
        runtimes,
        cgroups,
    ];
    let mut kernel = Kernel {
        programs: Programs::new(ebpf, named, config_map)?,
        wanted,
        store: Store::new(control, store, sizes, &request),
        counters,
        threads,
        events: Events::new(events_queue),
        names,
        keys,
        tables,
        logs,
        runtimes: runtime_descriptors,
        cgroups: cgroup_table,
        shows_runtimes: shows_runtimes(&config, &request, support),
        can_follow_runtimes: support.tail_calls,
        config,
        reports_mappings: config.switches.has(Switches::MAPPING_EVENTS),
        task_events,
        walks_user_stacks: request.switches.has(Switches::USER_STACKS),
    };
    if support.pid_namespace.is_some() {
        kernel.programs.note_own_level()?;
    }
    if request.waits().is_some() {
        kernel.threads.load_listing(&mut kernel.programs);
    }
    for (program, _) in &kernel.task_events {
        kernel.programs.load_tracepoint(*program)?;
    }
    if kernel.reports_mappings {
        kernel.programs.load_tracepoint(ProgramId::CodeKey)?;
    }
    Ok(kernel)
}

/// The object with all programs that may be loaded: of those that walk stacks, the ones that are wanted.
fn object_for(wanted: &[RequiredProgram]) -> Vec<u8> {
    let is_wanted = |id: &ProgramId| wanted.iter().any(|wanted| wanted.program == *id);
    let all = ProgramId::ALL.iter();
    let left_out: Vec<&[u8]> = all
        .filter(|id| id.walks() && !is_wanted(id))
        .map(|id| id.name().as_bytes())
        .collect();
    pruned::without(OBJECT, |name| left_out.contains(&name))
}

/// A loader that has not read the kernel's type information.
///
/// aya's only constructor parses all of it at once, and treats a file that cannot be opened as one that
/// is not there. Nothing of ours is relocated against those types, and the parsing takes 40 ms and
/// 20 MB, more than all the rest of a recording. So for the length of that one call this process may
/// open no files; those that are open are not touched.
pub(super) fn loader_without_kernel_types<'a>() -> EbpfLoader<'a> {
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
        .clamp(1, MAX_SLABS)
}

/// As many as places of rows, which are numbers of 32 bits, can tell apart: 16 GiB.
const MAX_SLABS: u32 = 1 << (32 - SLAB_BITS);

/// CPUs that may ever run; the kernel half is asked for counters by CPU number, and no number is above.
fn possible_cpus() -> u32 {
    aya::util::nr_cpus()
        .ok()
        .and_then(|cpus| u32::try_from(cpus).ok())
        .unwrap_or(1)
}

/// Before Linux 5.11, maps count against the limit on locked memory. Where raising it is refused, the
/// maps may still fit, so that is no failure.
pub(super) fn raise_memlock() {
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
