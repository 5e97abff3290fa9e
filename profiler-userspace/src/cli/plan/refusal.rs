//! Flags that do not go together with a probe.
//!
//! In: flags that are right one by one. Out: nothing, or a sentence that names the one to leave out.

use super::{OutputArgs, SamplingArgs, ScopeArgs, StackArgs};
use crate::cli::chart::ChartArgs;
use crate::cli::event_spec::EventSpec;
use crate::cli::flags::first_given;
use crate::cli::off_cpu::OffCpuArgs;
use crate::plan::{Event, Output};
use crate::probe::{Probe, Waits};
use crate::profile::select::{Selection, Who};
use crate::raw_recording;
use anyhow::{Result, bail, ensure};
use std::time::Duration;

/// Probes of calls are recorded alone, without perf events.
pub(super) fn perf_event(flag: &str, sampling: &SamplingArgs) -> Result<()> {
    let given = [
        ("-e", !sampling.event.is_empty()),
        ("--page-faults", sampling.page_faults),
        ("--context-switches", sampling.context_switches),
    ];
    if let Some(event) = first_given(given) {
        bail!("{flag} does not go with {event}: a recording has one probe; record twice");
    }
    Ok(())
}

/// Only what has a rate can be sampled less, and waits.
pub(super) fn with_max_overhead(events: &[Event]) -> Result<()> {
    let is_sampled = |event: &Event| matches!(event.probe, Probe::OnCpu | Probe::OffCpu(_));
    match events.iter().find(|event| !is_sampled(event)) {
        Some(event) if matches!(event.probe, Probe::Wall(_)) => bail!(
            "--max-overhead leaves out some of the waits, and --wall shows all of the time; use --off-cpu-output, \
             or --with-off-cpu in a service"
        ),
        Some(event) => bail!(
            "--max-overhead lowers the rate of samples, and of {} every one is recorded; leave it out",
            event.name()
        ),
        None => Ok(()),
    }
}

/// Calls, tracepoints and functions are recorded on all CPUs, and every firing counts.
pub(super) fn with_place(what: &str, sampling: &SamplingArgs, scope: &ScopeArgs) -> Result<()> {
    ensure!(
        sampling.freq.is_none() && sampling.count.is_none(),
        "of {what} every passing is counted; leave out -F and -c"
    );
    everywhere(what, scope)
}

/// Flags that do not go with the events that `specs` name.
pub(super) fn with_event_specs(
    specs: &[EventSpec],
    sampling: &SamplingArgs,
    scope: &ScopeArgs,
    stacks: &StackArgs,
) -> Result<()> {
    let has_event = specs
        .iter()
        .any(|spec| matches!(spec, EventSpec::PerfEvent(_)));
    for spec in specs {
        let what = match spec {
            EventSpec::PerfEvent(_) => continue,
            EventSpec::Tracepoint(_) => "a tracepoint",
            EventSpec::Function(_) => "a function",
        };
        if has_event {
            everywhere(what, scope)?;
        } else {
            with_place(what, sampling, scope)?;
        }
        ensure!(
            matches!(spec, EventSpec::Tracepoint(_)) || !stacks.kernel_stacks_only,
            "functions are called in user mode, which has no kernel stacks; leave out -K"
        );
    }
    Ok(())
}

/// As [`with_place`], beside events, which may have a rate.
pub(super) fn everywhere(what: &str, scope: &ScopeArgs) -> Result<()> {
    ensure!(
        scope.cpu.is_none(),
        "{what} is recorded on all CPUs; leave out -C, or use --per-cpu to separate CPUs"
    );
    Ok(())
}

/// Flags about CPUs, or about how often to sample, have no meaning off the CPU.
pub(super) fn with_off_cpu(
    asked: &str,
    sampling: &SamplingArgs,
    scope: &ScopeArgs,
    stacks: &StackArgs,
) -> Result<()> {
    let every = "every wait is measured; leave it out";
    let nowhere = "a thread that waits is on no CPU; leave it out";
    let given = [
        ("-F", sampling.freq.is_some(), every),
        ("-c", sampling.count.is_some(), every),
        ("-e", !sampling.event.is_empty(), every),
        ("--page-faults", sampling.page_faults, every),
        ("--context-switches", sampling.context_switches, every),
        ("-C", scope.cpu.is_some(), nowhere),
        ("--per-cpu", stacks.per_cpu, nowhere),
        ("-I", stacks.include_idle, nowhere),
    ];
    match given.into_iter().find(|(_, given, _)| *given) {
        Some((flag, _, reason)) => bail!("{flag} does not go with {asked}: {reason}"),
        None => Ok(()),
    }
}

/// A window is written when it is over, and nothing else is known by then.
pub(super) fn with_window(events: &[Event], chart: &ChartArgs) -> Result<()> {
    ensure!(
        chart.resolution.is_none(),
        "--window says how long windows are, and so does --resolution; keep one of them"
    );
    let is_raw = |event: &Event| matches!(*event.outputs, [Output::RawRecording { .. }]);
    ensure!(
        events.iter().all(is_raw),
        "--window divides raw recordings; give one -o FILE.{} for each event, and no other output",
        raw_recording::EXTENSION
    );
    ensure!(
        !events
            .iter()
            .any(|event| matches!(event.probe, Probe::Wall(_))),
        "--wall accounts for whole recordings, so it has no windows; leave out --window"
    );
    Ok(())
}

/// Live views write no files.
impl Unwritten {
    /// Refuses flags that are about files.
    pub(super) fn refuse(
        &self,
        output: &OutputArgs,
        window: Option<Duration>,
        chart: &ChartArgs,
        kernel_lines: bool,
        off_cpu: &OffCpuArgs,
    ) -> Result<()> {
        let written = [
            ("-o", !output.output.is_empty()),
            ("-f", output.folded),
            ("--report", output.text.is_on_stdout(&[])),
            ("--open", output.open),
            ("--source", !output.source.is_empty()),
            ("--window", window.is_some()),
            ("--flamechart", chart.flamechart),
            ("--resolution", chart.resolution.is_some()),
        ];
        let Self {
            what,
            of_files,
            of_off_cpu,
            of_lines,
        } = self;
        if let Some(flag) = first_given(written) {
            bail!("{what} writes nothing by itself, so {flag} does not go with it; {of_files}");
        }
        ensure!(
            off_cpu.outputs_beside().is_empty(),
            "--off-cpu-output writes a file, and {what} writes none; {of_off_cpu}"
        );
        ensure!(
            !kernel_lines,
            "--kernel-lines takes longer than {what} may; {of_lines}"
        );
        Ok(())
    }
}

/// A recording that writes no files, and what to do instead of asking for some.
pub(super) struct Unwritten {
    what: &'static str,
    of_files: &'static str,
    of_off_cpu: &'static str,
    of_lines: &'static str,
}

/// The live view.
pub(super) const LIVE: Unwritten = Unwritten {
    what: "a live view",
    of_files: "press `s` in it to save what is seen, or record without --live and `top`",
    of_off_cpu: "with --wall it shows all of the time, and `c` switches between running and waiting",
    of_lines: "leave it out, or record without --live and `top`",
};

/// A service.
pub(super) const SERVICE: Unwritten = Unwritten {
    what: "a service",
    of_files: "record without `service`",
    of_off_cpu: "with --with-off-cpu it sends waits beside samples",
    of_lines: "leave it out",
};

/// Charts need windows, which `--wall` does not have.
pub(super) fn with_chart(events: &[Event], chart: &ChartArgs) -> Result<()> {
    let is_wall = |event: &Event| matches!(event.probe, Probe::Wall(_));
    let given = [
        ("--flamechart", chart.flamechart),
        ("--resolution", chart.resolution.is_some()),
    ];
    match first_given(given) {
        Some(flag) if events.iter().any(is_wall) => bail!(
            "--wall accounts for whole recordings, so it has no windows; leave out {flag}, or --wall"
        ),
        _ => Ok(()),
    }
}

/// A part of the profile is shown where a profile is, and threads are told apart where that is asked for.
pub(super) fn of_selection(
    selection: &Selection,
    stacks: &StackArgs,
    events: &[Event],
    live: bool,
) -> Result<()> {
    let is_by_id = |who: &Who| matches!(who, Who::Id(_));
    ensure!(
        stacks.per_thread || !selection.threads.iter().any(is_by_id),
        "--thread with a TID needs --per-thread, which tells threads apart; to sample one alone: -t TID"
    );
    let outputs = || events.iter().flat_map(|event| &event.outputs);
    let is_all = selection.is_all() && stacks.root_per.is_none();
    ensure!(
        is_all || live || outputs().any(|output| output.format().is_some()),
        "a raw recording keeps everything; select when it is drawn, with `flame-bpf render`"
    );
    ensure!(
        stacks.root_per.is_none() || !live,
        "a live view tells processes apart; leave out --root-per, or record without --live and `top`"
    );
    Ok(())
}

/// Reasons come from kernel stacks, which -U leaves out of the samples.
pub(super) fn with_waits_beside(
    waits: &Waits,
    scope: &ScopeArgs,
    stacks: &StackArgs,
) -> Result<()> {
    cpus("--off-cpu-output", scope, stacks)?;
    ensure!(
        !(waits.reasons && stacks.user_stacks_only),
        "--reasons needs kernel stacks, and with -U samples have none; leave out one of them, or record \
         twice, once with --off-cpu"
    );
    Ok(())
}

/// All of a thread's time needs both kinds of stacks.
pub(super) fn with_wall(scope: &ScopeArgs, stacks: &StackArgs) -> Result<()> {
    cpus("--wall", scope, stacks)?;
    ensure!(
        !stacks.kernel_stacks_only,
        "-K leaves out time in user mode, and --wall shows all of the time; leave out -K"
    );
    Ok(())
}

/// A thread that waits is on no CPU.
fn cpus(asked: &str, scope: &ScopeArgs, stacks: &StackArgs) -> Result<()> {
    let given = [
        ("-C", scope.cpu.is_some()),
        ("--per-cpu", stacks.per_cpu),
        ("-I", stacks.include_idle),
    ];
    if let Some(flag) = first_given(given) {
        bail!("{flag} does not go with {asked}: a thread that waits is on no CPU; leave it out");
    }
    Ok(())
}
