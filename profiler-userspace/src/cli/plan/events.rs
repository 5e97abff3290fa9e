//! Events of one recording, and the outputs of each.
//!
//! In: flags that are right one by one. Out: [`Event`]s with their outputs, or a sentence about flags that do not go
//! together. Never: looks at the machine.

use super::{DEFAULT_FILE, OutputArgs, SamplingArgs, places, without_dots};
use crate::cli::event_spec::{self, EventSpec};
use crate::output::Format;
use crate::plan::{DEFAULT_HZ, Event, Output, PerfEventChoice, Sampling};
use crate::probe::{Probe, Waits};
use anyhow::{Result, anyhow, bail, ensure};
use profiler_common::abi::MAX_EVENTS;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The most characters of an event's name in that of a file: functions may have names that no file can have.
const NAME_LENGTH: usize = 80;

/// Events named by flags; empty if none was named.
pub(super) fn specs(sampling: &SamplingArgs) -> Result<Vec<EventSpec>> {
    let short = [
        (sampling.page_faults, "page-faults"),
        (sampling.context_switches, "context-switches"),
    ];
    if let Some((_, name)) = short.into_iter().find(|(given, _)| *given) {
        let spec = event_spec::parse(name).map_err(|sentence| anyhow!(sentence))?;
        return Ok(vec![spec]);
    }
    let all = &sampling.event;
    ensure!(
        all.len() <= MAX_EVENTS,
        "a run records at most {MAX_EVENTS} events, and {} are given; leave some out, or record twice",
        all.len()
    );
    for (place, spec) in all.iter().enumerate() {
        ensure!(
            !all[..place].iter().any(|before| before.is(spec)),
            "-e {} is given twice; leave one of them out",
            spec.name()
        );
    }
    Ok(all.clone())
}

/// One event for each spec, each with its outputs; without specs, the one of `probe`.
pub(super) fn events(
    probe: &Probe,
    specs: &[EventSpec],
    sampling: &SamplingArgs,
    outputs: Vec<Vec<Output>>,
) -> Result<Vec<Event>> {
    let of_trigger = |spec: &EventSpec| match spec {
        // Wall time takes its samples on it.
        EventSpec::PerfEvent(perf_event) => {
            (probe.clone(), PerfEventChoice::Named(perf_event.clone()))
        }
        EventSpec::Tracepoint(tracepoint) => {
            (Probe::Tracepoint(tracepoint.clone()), PerfEventChoice::Auto)
        }
        EventSpec::Function(function) => (Probe::Function(function.clone()), PerfEventChoice::Auto),
    };
    let mut recorded: Vec<(Probe, PerfEventChoice)> = specs.iter().map(of_trigger).collect();
    if recorded.is_empty() {
        recorded.push((probe.clone(), PerfEventChoice::Auto));
    }
    recorded
        .into_iter()
        .zip(outputs)
        .map(|((probe, perf_event), outputs)| {
            Ok(Event {
                sampling: rate(sampling, &probe, &perf_event)?,
                varies: false,
                probe,
                perf_event,
                outputs,
            })
        })
        .collect()
}

fn rate(sampling: &SamplingArgs, probe: &Probe, perf_event: &PerfEventChoice) -> Result<Sampling> {
    let asked = match (sampling.freq, sampling.count) {
        (Some(_), Some(_)) => bail!("-F is a rate and -c a period; keep one of them"),
        (Some(hz), None) => Some(Sampling::Frequency(hz)),
        (None, Some(period)) => Some(Sampling::Period(period)),
        (None, None) => None,
    };
    match perf_event {
        PerfEventChoice::Auto => Ok(asked
            .filter(|_| probe.is_on_event())
            .unwrap_or(Sampling::Frequency(DEFAULT_HZ))),
        PerfEventChoice::Named(perf_event) => {
            let sampling = asked.unwrap_or_else(|| perf_event.default_sampling());
            // The kernel's own limit is for the recording to read.
            sampling.check(perf_event, u64::MAX)?;
            Ok(sampling)
        }
    }
}

/// The outputs of each spec, in the order of these; of the one event that there is without several.
pub(super) fn outputs(
    specs: &[EventSpec],
    output: &OutputArgs,
    stdout_is_terminal: bool,
) -> Result<Vec<Vec<Output>>> {
    let events = specs.len();
    if events < 2 {
        return Ok(vec![super::outputs(output, stdout_is_terminal)?]);
    }
    ensure!(
        !output.folded,
        "-f writes one profile to stdout, and {events} events are given; -o x.folded writes a file for each -e"
    );
    let named = places(&output.output, "-o")?;
    if named.len() == events {
        return Ok(named.into_iter().map(|output| vec![output]).collect());
    }
    let default = PathBuf::from(DEFAULT_FILE);
    let pattern = match output.output.as_slice() {
        [] if stdout_is_terminal => &default,
        [] => bail!(
            "stdout takes one profile, and {events} events are given; -o x.folded writes a file for each -e"
        ),
        [one] if one == Path::new("-") => bail!(
            "-o - takes one profile, and {events} events are given; -o x.folded writes a file for each -e"
        ),
        [one] if one.extension().is_none() => bail!(
            "-o {} has no ending, before which the names of {events} events could stand; give one -o for each -e, or a name such as x.svg",
            one.display()
        ),
        [one] if Format::from_path(one).is_ok_and(|format| format == Format::HTML) => {
            let page = Output::SharedPage { path: one.clone() };
            return Ok(vec![vec![page]; events]);
        }
        [one] => one,
        several => bail!(
            "{events} -e and {} -o are given; give one -o for each -e, in the same order, or a single -o",
            several.len()
        ),
    };
    if let [one] = &*places(std::slice::from_ref(pattern), "-o")?
        && one.takes_several()
    {
        return Ok(vec![vec![one.clone()]; events]);
    }
    let files: Vec<PathBuf> = specs.iter().map(|spec| file_of(pattern, spec)).collect();
    for (place, file) in files.iter().enumerate() {
        if let Some(before) = files[..place].iter().position(|other| other == file) {
            bail!(
                "-e {} and -e {} would both go to {}; give one -o for each -e",
                specs[before].name(),
                specs[place].name(),
                file.display()
            );
        }
    }
    let outputs = places(&files, "-o")?;
    Ok(outputs.into_iter().map(|output| vec![output]).collect())
}

/// The file of one of several specs: its name stands before the ending.
fn file_of(pattern: &Path, spec: &EventSpec) -> PathBuf {
    let name = pattern.file_name().unwrap_or_default().as_bytes();
    let ending = Format::extension_in(pattern)
        .map(str::len)
        .or(pattern.extension().map(OsStr::len));
    // The dot before it stays with the ending.
    let (stem, ending) = name.split_at(name.len() - ending.map_or(0, |ending| ending + 1));
    let mut file = OsStr::from_bytes(stem).to_owned();
    file.push(".");
    file.push(in_file_name(&spec.name()));
    file.push(OsStr::from_bytes(ending));
    pattern.with_file_name(file)
}

/// A name as part of that of a file: what a shell or another system may take for something else is a hyphen.
fn in_file_name(name: &str) -> String {
    let mut safe = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-') {
            safe.push(letter);
        } else if !safe.ends_with('-') {
            safe.push('-');
        }
        if safe.len() == NAME_LENGTH {
            break;
        }
    }
    safe
}

/// Makes pages of events that are pages of these paths, too, shared ones. Returns the latter.
fn share(paths: &[PathBuf], events: &mut [Event]) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| without_dots(path)).collect();
    let mut shared = Vec::new();
    for output in events.iter_mut().flat_map(|event| &mut event.outputs) {
        let path = match output {
            Output::File { path, format } if *format == Format::HTML => path.clone(),
            Output::SharedPage { path } => path.clone(),
            _ => continue,
        };
        if paths.contains(&without_dots(&path)) {
            shared.push(without_dots(&path));
            *output = Output::SharedPage { path };
        }
    }
    shared
}

/// The event of waits that are recorded beside others.
pub(super) fn beside(waits: Waits, paths: &[PathBuf], others: &mut [Event]) -> Result<Event> {
    let shared = share(paths, others);
    let place = |output: &Output| match output {
        Output::Stdout(_) => PathBuf::from("-"),
        Output::File { path, .. } | Output::RawRecording { path } | Output::SharedPage { path } => {
            without_dots(path)
        }
    };
    let taken = || others.iter().flat_map(|event| &event.outputs);
    let mut outputs = places(paths, "--off-cpu-output")?;
    for output in &mut outputs {
        if let Output::File { path, .. } = output
            && shared.contains(&without_dots(path))
        {
            *output = Output::SharedPage { path: path.clone() };
            continue;
        }
        let Some(same) = taken().find(|other| place(other) == place(output)) else {
            continue;
        };
        ensure!(
            same.takes_several(),
            "--off-cpu-output {} is also the output of the samples; name another file, or a .pb.gz, which takes both",
            output.name()
        );
        *output = same.clone();
    }
    Ok(Event {
        varies: false,
        probe: Probe::OffCpu(waits),
        perf_event: PerfEventChoice::Auto,
        sampling: Sampling::Frequency(DEFAULT_HZ),
        outputs,
    })
}
