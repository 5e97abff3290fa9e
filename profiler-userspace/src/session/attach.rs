//! From a plan to programs that are attached and sample.
//!
//! In: the plan, what this kernel supports. Out: the kernel, its unwind tables, and the plan as it is carried out: with
//! the first event that this machine has, where that was left open.

use super::cgroups::Watched;
use super::events::EventHandler;
use super::lacks::no_rows;
use super::warm_up;
use crate::cgroups::HierarchyKind;
use crate::kernel::{self, Kernel, Policy, Request, Source, Support};
use crate::machine::{self, Trouble};
use crate::plan::{CallGraph, Children, Event, PerfEvent, PerfEventChoice, Plan, Sampling, Target};
use crate::probe::{Probe, Wakers};
use crate::process::MappedFile;
use crate::report;
use crate::runtime;
use crate::targets::needed_libs::needed_libs_of;
use crate::targets::tasks::CpuTimes;
use crate::targets::{UprobeSite, allocators, command, uprobe_sites};
use crate::unwind::loader::{Depth, TableLoader};
use crate::unwind::offline::OfflineWalker;
use anyhow::{Context as _, Result, bail};
use profiler_common::abi::{RuntimeKinds, Switches, TargetKind};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The CPUs to sample on: those that run, or those of them that were named.
pub(super) fn cpus(named: Option<&[u32]>) -> Result<Vec<u32>> {
    let online = kernel::online_cpus().map_err(|error| {
        let place = Path::new("/sys/devices/system/cpu/online");
        let denied = || Trouble::advice(error.to_string(), "look at the mount of /sys");
        machine::uncovered(place).unwrap_or_else(denied)
    });
    let online = online.context("cannot read which CPUs are online")?;
    let Some(named) = named else {
        return Ok(online);
    };
    if let Some(absent) = named.iter().find(|cpu| !online.contains(cpu)) {
        let list: Vec<String> = online.iter().map(u32::to_string).collect();
        bail!(
            "CPU {absent} is not online; those that are: {}",
            list.join(",")
        );
    }
    Ok(named.to_vec())
}

/// Loads the programs and attaches them, to the first event that this machine has where that was left open.
pub(super) fn attach(
    plan: &Plan,
    ids: &[u32],
    watched: Option<Watched>,
    support: &Support,
    cpus: &[u32],
) -> Result<Attached> {
    let sites = uprobe_sites_of(plan)?;
    let is_open =
        |event: &Event| event.probe.is_on_event() && event.perf_event == PerfEventChoice::Auto;
    // A virtual machine's kernel may list a counter that its host does not provide.
    if plan.events.iter().any(is_open) && has_cycle_counter() {
        let plan = plan.settled(&PerfEvent::CYCLES);
        match attach_to(plan, &sites, ids, watched.clone(), (support, cpus)) {
            Err(error) if matches!(error.downcast_ref(), Some(kernel::Error::NoEvent { .. })) => {}
            result => return result,
        }
    }
    attach_to(
        plan.settled(&PerfEvent::CPU_CLOCK),
        &sites,
        ids,
        watched,
        (support, cpus),
    )
}

/// Where the functions begin that are to be watched.
fn uprobe_sites_of(plan: &Plan) -> Result<Vec<UprobeSite>> {
    let mut sites = Vec::new();
    for (number, event) in plan.events.iter().enumerate() {
        match &event.probe {
            Probe::Function(function) => sites.extend(uprobe_sites::sites(plan, number, function)?),
            Probe::Allocations => {
                let (found, warning) = allocators::sites(plan)?;
                sites.extend(found);
                if let Some(warning) = warning {
                    report::print(&format!("flame-bpf: {warning}\n"));
                }
            }
            _ => {}
        }
    }
    Ok(sites)
}

fn attach_to(
    plan: Plan,
    sites: &[UprobeSite],
    ids: &[u32],
    watched: Option<Watched>,
    (support, cpus): (&Support, &[u32]),
) -> Result<Attached> {
    let on_events = || {
        let events = plan.events.iter().enumerate();
        events.filter(|(_, event)| event.probe.is_on_event())
    };
    for (_, event) in on_events() {
        event.sampling.check(event.perf_event(), highest_rate())?;
    }
    let hierarchy = watched.as_ref().map(Watched::kind);
    let (mut kernel, loader) = load(&plan, ids, hierarchy, support)?;
    let mut handler = EventHandler::new(&mut kernel, loader, watched, plan.keeps_lines())?;
    let mut walker = OfflineWalker::default();
    if warm_up::asks_asleep(&plan) {
        warm_up::look_at_asleep(&mut kernel, &mut handler, &mut walker);
    }
    if let Some(waits) = plan.waits() {
        kernel.sample_waits(waits.wait_sample_period, 1.0);
    }
    kernel.attach_programs(sites)?;
    if warm_up::is_wanted(&plan) {
        warm_up::warm_up(&mut kernel, &mut handler, cpus)?;
    }
    for (number, event) in on_events() {
        kernel.attach_event(number, &source(event), cpus)?;
    }
    Ok(Attached {
        kernel,
        handler,
        walker,
        plan,
    })
}

fn source(event: &Event) -> Source {
    let perf_event = event.perf_event();
    Source {
        name: perf_event.name.to_string(),
        kind: perf_event.kind as u32,
        config: perf_event.config,
        policy: policy(event, 1.0),
    }
}

/// When an event fires at this share of the rate that was asked for, which is at most 1.
pub(super) fn policy(event: &Event, share: f64) -> Policy {
    let longer = |period: u64| (period as f64 / share) as u64;
    match event.sampling {
        // The kernel would make a fixed period of a clock's rate as well; said outright, it is exact.
        Sampling::Frequency(hz) if event.perf_event().is_clock() => {
            Policy::Period(longer(1_000_000_000 / hz))
        }
        Sampling::Frequency(hz) => Policy::Frequency(((hz as f64 * share) as u64).max(1)),
        Sampling::Period(period) => Policy::Period(longer(period)),
    }
}

/// So many `-v` ask for log lines of the kernel half.
const LOGS: u8 = 3;

/// Parts of each sample that are wanted.
fn switches(plan: &Plan) -> Switches {
    let capture = plan.capture;
    // Kernel frames say what was waited for, even where these are not shown.
    let reasons = plan.waits().is_some_and(|waits| waits.reasons);
    // Whether it was a thread that ended a wait, or an interrupt.
    let wakers = plan
        .waits()
        .is_some_and(|waits| waits.wakers != Wakers::None);
    // A thread's time is known by all that it does.
    let wall = plan.has(|probe| matches!(probe, Probe::Wall(_)));
    let leaf_words = plan.has(|probe| probe.spec().names_leaf);
    Switches::default()
        .with_if(Switches::USER_STACKS, capture.user_stacks)
        .with_if(
            Switches::KERNEL_STACKS,
            capture.kernel_stacks || reasons || wakers || wall || leaf_words,
        )
        .with_if(Switches::RUNTIMES, capture.user_stacks && capture.runtimes)
        .with_if(Switches::LOOP_FRAMES, plan.naming.interpreter_frames)
        .with_if(
            Switches::GUESS,
            capture.guess && capture.call_graph == CallGraph::Auto,
        )
        .with_if(Switches::INCLUDE_IDLE, capture.include_idle)
        .with_if(Switches::PER_THREAD, capture.per_thread || wall)
        .with_if(Switches::PER_CPU, capture.per_cpu)
        .with_if(Switches::FOLLOW_CHILDREN, plan.children != Children::None)
        .with_if(Switches::UNWIND_ROWS, capture.call_graph != CallGraph::Fp)
        .with_if(
            Switches::FRAME_POINTERS,
            capture.call_graph != CallGraph::Dwarf,
        )
        .with_if(Switches::LOG, plan.verbosity.verbose >= LOGS)
}

/// Loads the programs, and the unwind tables that will surely be needed.
fn load(
    plan: &Plan,
    ids: &[u32],
    cgroups: Option<HierarchyKind>,
    support: &Support,
) -> Result<(Kernel, Option<TableLoader<kernel::Tables>>)> {
    if plan.capture.call_graph == CallGraph::Dwarf && !support.can_find_mappings() {
        let trouble = no_rows(support);
        return Err(trouble).context("--call-graph dwarf cannot be had; use --call-graph fp");
    }
    let request = Request {
        switches: switches(plan),
        target: match plan.target {
            Target::All => TargetKind::All,
            Target::Processes(_) | Target::Matching(_) => TargetKind::Processes,
            Target::Launched => TargetKind::Launched,
            Target::Threads(_) => TargetKind::Threads,
            Target::Cgroups(_) => TargetKind::Cgroups,
        },
        cgroups,
        ids: ids.to_vec(),
        map_memory: plan.memory.map_bytes,
        unwind_memory: plan.memory.unwind_bytes,
        probes: (plan.events.iter())
            .map(|event| event.probe.clone())
            .collect(),
        weighed: (plan.events.iter().enumerate())
            .filter(|(_, event)| event.is_weighed())
            .fold(0, |mask, (number, _)| mask | 1 << number),
        waits_vary: plan.events.iter().any(Event::has_varying_waits),
    };
    // A suspended command is still a copy of ourselves.
    let named: &[u32] = match &plan.target {
        Target::Launched => &[],
        Target::Cgroups(target) => &target.pids,
        _ => ids,
    };
    let before = (plan.target == Target::All).then(CpuTimes::look);
    // Not before: a command, which has been started by now, has the limits that we came with.
    allow_many_files();
    let mut kernel = Kernel::load(request, support)?;
    let tables = kernel.take_tables();
    let loader =
        tables.map(|tables| load_tables(plan, named, before.as_ref(), tables, &mut kernel));
    let (loader, likely) = loader.transpose()?.unzip();
    let found = kernel.found_runtimes();
    kernel.load_probes(found.with(likely.unwrap_or_default()))?;
    Ok((kernel, loader))
}

/// Loads the unwind tables that will surely be needed. Returns the runtimes, too, that there was no time to look for and that are likely
/// to be there.
fn load_tables(
    plan: &Plan,
    named: &[u32],
    before: Option<&CpuTimes>,
    tables: kernel::Tables,
    kernel: &mut Kernel,
) -> Result<(TableLoader<kernel::Tables>, RuntimeKinds)> {
    let mut loader = TableLoader::start(tables, kernel)
        .context("cannot start the thread that loads unwind tables")?;
    let command = plan.launch.as_deref().and_then(command::program);
    let libraries = command.as_deref().map(needed_libs_of).unwrap_or_default();
    let files = command.iter().chain(&libraries).map(PathBuf::as_path);
    if let Some(before) = before {
        let deadline = Instant::now() + warm_up::MAX_TIME;
        // Which interpreters there are decides which programs are loaded. What else is needed, walks say that come first.
        let walks_first = warm_up::is_wanted(plan) || warm_up::asks_asleep(plan);
        let likely = Cell::new(RuntimeKinds::NONE);
        let is_wanted = |file: &MappedFile| {
            let here = runtime::likely_in(file.module());
            likely.set(likely.get().with(here));
            !walks_first || here != RuntimeKinds::NONE
        };
        let pids = before.likely_to_run();
        loader.prepare_until(kernel, &pids, is_wanted, deadline);
        if !loader.is_idle() {
            // On a busy machine. Programs that have to be loaded again cost more than code for a runtime too many.
            return Ok((loader, likely.get()));
        }
    } else {
        // Walks that say what else is needed come before the recording, or are many.
        let is_outline = warm_up::is_wanted(plan) || plan.launch.is_some();
        let depth = if is_outline {
            Depth::Outline
        } else {
            Depth::Described
        };
        loader.prepare(kernel, named, files, depth);
    }
    Ok((loader, RuntimeKinds::NONE))
}

/// A kernel that samples.
pub(super) struct Attached {
    pub(super) kernel: Kernel,
    pub(super) handler: EventHandler,
    /// Walker of the stacks of sleeping threads; it walked them if they were looked at.
    pub(super) walker: OfflineWalker,
    /// The plan as it is carried out.
    pub(super) plan: Plan,
}

/// Whether the kernel drives a performance counter of the processor's cores.
fn has_cycle_counter() -> bool {
    let Ok(devices) = std::fs::read_dir("/sys/bus/event_source/devices") else {
        return false;
    };
    devices.flatten().any(|device| {
        let name = device.file_name();
        let name = name.to_string_lossy();
        // Intel and AMD; Intel's performance cores; ARM.
        name == "cpu" || name == "cpu_core" || name.starts_with("armv8_")
    })
}

/// The highest rate that the kernel allows; its default where it does not say.
fn highest_rate() -> u64 {
    std::fs::read_to_string(Path::new("/proc/sys/kernel/perf_event_max_sample_rate"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(100_000)
}

/// Lets this process have as many files open as it may: those of a large program wait side by side, and all
/// that were sampled are kept open.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// As many as most systems allow at least.
    const DEFAULT: u64 = 4096;
    let limit = getrlimit(Resource::Nofile);
    let to = |limit: Option<u64>| Rlimit {
        current: limit,
        maximum: limit,
    };
    let more = limit.maximum.filter(|&most| most < DEFAULT).is_some();
    // Only the superuser may have more than that.
    if !more || setrlimit(Resource::Nofile, to(Some(DEFAULT))).is_err() {
        let _as_it_was = setrlimit(Resource::Nofile, to(limit.maximum));
    }
}
