//! The doctor: does in small what a recording does at its start, and says what works here, what does not, why, and what mends it.
//!
//! In: plans to try. Out: an [`Examination`], as text or JSON. What it says of a failure is what a recording says that fails so.

mod examination;

pub use examination::Examination;

use super::attach::{Attached, attach, cpus};
use super::lacks::lacks;
use crate::kernel::{self, Support};
use crate::machine::{self, Mend, Rights, Trouble};
use crate::object::{Elf, Search};
use crate::pipeline::prepare;
use crate::plan::{Doctoring, MAX_RATE, Plan, SamplingError, Target};
use crate::probe::Probe;
use crate::process::Unreachable;
use crate::report::distro::Distro;
use crate::targets::code_files::{CodeFile, code_files};
use crate::targets::{processes, tasks};
use crate::text::number::{counted, grouped};
use anyhow::{Error, Result, anyhow};
use profiler_common::abi::{Class, Counters};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the trial samples.
const TRIAL: Duration = Duration::from_millis(200);

/// So many processes' files are opened, of those that used most CPU time.
const MAX_PROCESSES: usize = 100;

/// So many names are listed.
const MAX_NAMES: usize = 3;

/// Tries what is planned.
pub fn doctor(doctoring: &Doctoring) -> Examination {
    let mut examination = Examination::default();
    // Its last line is about the thing that stopped it.
    if let Err((subject, error)) = examine(doctoring, &mut examination) {
        examination.fails(subject, &error);
    }
    examination
}

/// Has an error of the machine's refer to the doctor.
pub(super) fn referred(error: impl Into<Error>) -> Error {
    let error = error.into();
    match trouble_of(&error) {
        Some(_) => anyhow!("{error:#}; `flame-bpf doctor` tells what else is missing here"),
        None => error,
    }
}

/// The trouble behind an error, if it lies with the machine.
fn trouble_of(error: &Error) -> Option<Trouble> {
    error.chain().find_map(|cause| {
        if let Some(trouble) = cause.downcast_ref::<Trouble>() {
            return Some(trouble.clone());
        }
        if let Some(SamplingError::AboveLimit { asked_hz, limit_hz }) = cause.downcast_ref() {
            let why = format!("{MAX_RATE} is {limit_hz}");
            return Some(Trouble::setting(why, MAX_RATE, *asked_hz));
        }
        cause.downcast_ref::<kernel::Error>()?.trouble()
    })
}

fn examine(
    doctoring: &Doctoring,
    examination: &mut Examination,
) -> Result<(), (&'static str, Error)> {
    let mut sampling = doctoring.sampling.clone();
    tasks::check_proc().map_err(|trouble| ("processes", trouble.into()))?;
    let named = target(&mut sampling).map_err(|error| ("processes", error))?;
    let shown = match &named[..] {
        [] => "/proc shows those of this PID namespace".to_owned(),
        [pid] => format!(
            "{pid} ({}) runs",
            tasks::comm(*pid).unwrap_or_default().escape_debug()
        ),
        several => format!("{} run", counted(several.len() as u64, "process")),
    };
    examination.works("processes", shown);
    let cpus = cpus(sampling.cpus.as_deref()).map_err(|error| ("CPUs", error))?;
    examination.works("CPUs", format!("{} online", cpus.len()));
    match prepare(sampling.all_outputs()) {
        Ok(_) => {
            let names: Vec<String> = sampling.all_outputs().map(|output| output.name()).collect();
            examination.works(
                "output",
                format!("{} can be written here", names.join(", ")),
            );
        }
        Err(error) => examination.partly("output", error.to_string(), None),
    }
    let support = Support::detect();
    sample(&sampling, &named, &support, &cpus, examination).map_err(|error| ("on-CPU", error))?;
    for (subject, plan) in &doctoring.others {
        let ours = vec![std::process::id()];
        let mut plan = Plan {
            target: Target::Processes(ours.clone()),
            ..plan.clone()
        };
        for event in &mut plan.events {
            // Of which process it is, was not known before.
            if let Probe::Function(function) = &mut event.probe {
                function.file = std::env::current_exe().unwrap_or_default();
            }
        }
        match attach(&plan, &ours, None, &support, &cpus) {
            Ok(mut attached) => {
                let detached = attached.kernel.detach();
                match detached {
                    Ok(()) => with_lacks(subject, "", &attached, &support, examination),
                    Err(error) => examination.lacks(subject, &error.into()),
                }
            }
            Err(error) => examination.lacks(subject, &error),
        }
    }
    files(&named, examination);
    match machine::has_cgroups() {
        Ok(()) => examination.works("cgroups", "mounted"),
        Err(Trouble { why, mend }) => examination.partly("cgroups", why, Some(mend)),
    }
    Ok(())
}

/// The processes that are named; none for the whole machine.
fn target(plan: &mut Plan) -> Result<Vec<u32>> {
    plan.target = processes::resolved(&plan.target, plan.children)?;
    tasks::without_ended(&mut plan.target)?;
    Ok(tasks::ids(&plan.target).to_vec())
}

/// Samples for a moment in which this process is busy.
fn sample(
    plan: &Plan,
    named: &[u32],
    support: &Support,
    cpus: &[u32],
    examination: &mut Examination,
) -> Result<()> {
    let mut attached = attach(plan, named, None, support, cpus)?;
    let began = Instant::now();
    while began.elapsed() < TRIAL {
        std::hint::spin_loop();
    }
    attached.kernel.detach()?;
    let counters = attached.kernel.counters(0);
    let fired = counters.sum(Class::Fired);
    let event = attached.plan.events[0].perf_event().name.to_string();
    if fired == 0 {
        return Err(anyhow!(
            "{event} does not fire: in {TRIAL:?} not once on {} CPUs",
            cpus.len()
        ));
    }
    let said = format!(
        "{event} fired {} in {TRIAL:?} on {}; {} of BPF maps{}",
        counted(fired, "time"),
        counted(cpus.len() as u64, "CPU"),
        crate::text::number::mebibytes(attached.kernel.map_bytes()),
        lost(&counters),
    );
    with_lacks("on-CPU", &said, &attached, support, examination);
    Ok(())
}

fn lost(counters: &Counters) -> String {
    match counters.sum(Class::Lost) {
        0 => String::new(),
        lost => format!(", {} lost", grouped(lost)),
    }
}

/// Notes what works, or all that is missing of it.
fn with_lacks(
    subject: &str,
    said: &str,
    attached: &Attached,
    support: &Support,
    examination: &mut Examination,
) {
    let has_tables = attached.handler.loader.is_some();
    let lacks = lacks(&attached.plan, support, has_tables);
    if lacks.is_empty() || !said.is_empty() {
        examination.works(subject, said);
    }
    for lack in lacks {
        let text = format!("{}: {}", lack.lost, lack.trouble.why);
        examination.partly(subject, text, Some(lack.trouble.mend));
    }
}

/// Opens the files of the target's code, from which names come.
fn files(named: &[u32], examination: &mut Examination) {
    let busiest = || tasks::busiest().into_iter().take(MAX_PROCESSES).collect();
    let ids: Vec<u32> = if named.is_empty() {
        busiest()
    } else {
        named.to_vec()
    };
    let (mut opened, mut denied, mut refused) = (Vec::new(), BTreeSet::new(), 0);
    for &id in &ids {
        let Some(files) = code_files(id, &|_| true) else {
            refused += 1;
            continue;
        };
        for file in files {
            match file.opened {
                Err(Unreachable::Denied) => {
                    denied.insert(file.name);
                }
                Ok(_) if !named.is_empty() => opened.push(file),
                // Deleted or replaced: such files are opened when they are sampled.
                Ok(_) | Err(Unreachable::Gone) => {}
            }
        }
    }
    let all = counted(ids.len() as u64, "process");
    let mut missing = Vec::new();
    if refused > 0 {
        missing.push(format!("mappings of {refused} of {all} cannot be read"));
    }
    if !denied.is_empty() {
        missing.push(format!("{} cannot be opened", listed(&denied)));
    }
    let missing = missing.join(", and ");
    match Rights::look().why_unreadable() {
        _ if missing.is_empty() => {
            examination.works("files", format!("those of {all} can be opened"));
        }
        Some(Trouble { why, mend }) => {
            let text = format!("{missing}, so code of these may have no names: {why}");
            examination.partly("files", text, Some(mend));
        }
        // Nothing mends that.
        None if named.is_empty() => examination.works(
            "files",
            format!("those of {all} can be opened, but {missing}: these protect themselves"),
        ),
        None => examination.partly(
            "files",
            format!("{missing}, which nobody may who has these rights: it protects itself"),
            None,
        ),
    }
    if !opened.is_empty() {
        symbols(&opened, examination);
    }
}

/// Looks for the symbols of a target's files.
fn symbols(files: &[CodeFile], examination: &mut Examination) {
    let (mut stripped, mut narrow) = (Vec::new(), false);
    for file in files {
        let Ok(opened) = &file.opened else { continue };
        let Some(elf) = Elf::read(&opened.file.file) else {
            continue;
        };
        narrow |= !elf.layout.wide;
        let search = Search {
            directories: &[],
            roots: &[&opened.root, Path::new("/")],
            fetch: None,
        };
        let has_symbols = |found: &Elf| found.symbols.is_some();
        if !has_symbols(&elf) && search.find(&file.path, &elf, has_symbols).is_none() {
            stripped.push((file, elf.build_id));
        }
    }
    if narrow {
        let text = "it is a program of 32 bits, of whose stacks the innermost function is shown";
        examination.partly("symbols", text, None);
    }
    let all = counted(files.len() as u64, "file");
    match stripped.first() {
        None => examination.works("symbols", format!("{all} have them, or a debug file")),
        Some((file, build_id)) => {
            let names = stripped.iter().map(|(file, _)| file.name.clone()).collect();
            let text = format!(
                "{} of {all} have none but of functions that others call: {}",
                stripped.len(),
                listed(&names)
            );
            let remedy = Distro::here(false).symbols_of(&file.path, build_id.as_ref());
            examination.partly("symbols", text, Some(Mend::Advice(remedy)));
        }
    }
}

fn listed(names: &BTreeSet<String>) -> String {
    let first: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    match names.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
