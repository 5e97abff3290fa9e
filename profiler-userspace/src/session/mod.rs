//! The conductor: from a [`Plan`] to files on disk.
//!
//! In: the plan. Out: the outputs, sentences on stderr, and an exit code. It is the one module that
//! sees all others, and the only one that knows of time passing.

mod annotate;
mod attach;
mod cgroups;
mod collector;
mod cpus;
mod doctor;
mod events;
mod governor;
mod lacks;
mod launch;
mod live;
mod memory;
mod programs;
mod rates;
mod rescans;
mod sampling;
mod signals;
mod thread_names;
mod urgency;
mod user;
mod warm_up;

use self::cpus::CpuWatch;
use crate::desktop;
use crate::kernel::{Kernel, Support};
use crate::output::sink::Sink;
use crate::pipeline::recording_info::{RecordingInfo, Stop};
use crate::pipeline::sink::files::Files;
use crate::pipeline::sink::growing::GrowingFiles;
use crate::pipeline::sink::sent::Sent;
use crate::pipeline::source;
use crate::pipeline::window::{Pipeline, WindowSink};
use crate::pipeline::{self, prepare};
use crate::plan::{Output, Plan, Target};
use crate::probe::Wakers;
use crate::report;
use crate::report::findings::Finding;
use crate::targets::{processes, tasks};
pub use annotate::annotate;
use anyhow::{Context as _, Result};
use attach::{Attached, attach, cpus};
use cgroups::Watched;
pub use doctor::{Examination, doctor};
use lacks::lacks;
use launch::{Says, SuspendedCommand};
use sampling::Session;
use signals::Signals;
use std::path::Path;
use std::sync::Arc;
use urgency::Urgency;
use user::RunAs;

/// The exit code of a recording that a second Ctrl-C broke off, as a shell has it for SIGINT.
const ABORTED: u8 = 130;

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With this exit code: the command's own where one was run, otherwise 0, or 1 when there was nothing to write.
    Done(u8),
    /// A service is to begin anew, with other options.
    Again,
}

/// Whether a service could begin as planned: its targets are there, and what it sends to and keeps can be used.
///
/// # Errors
/// When it could not.
pub fn check(plan: &Plan) -> Result<()> {
    let mut target = processes::resolved(&plan.target, plan.children)?;
    tasks::without_ended(&mut target)?;
    let mut plan = Plan {
        target,
        ..plan.clone()
    };
    Watched::of(&mut plan)?;
    pipeline::check(&plan)
}

/// Records as planned and writes the outputs. `check` says whether a service's options are right that it would have if it began anew.
pub fn run(plan: &Plan, check: impl Fn() -> Result<(), String>) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .context("cannot start the event loop")?;
    let result = runtime.block_on(record(plan, &check));
    // After an abort, symbolizing may still be at work on its thread; the process's end ends it.
    runtime.shutdown_background();
    result
}

async fn record(plan: &Plan, check: &dyn Fn() -> Result<(), String>) -> Result<Outcome> {
    let sinks = prepare(plan.all_outputs())?;
    let source = source::Directories::open(&plan.source, &plan.servers)?;
    if plan.window.is_some() {
        sinks.iter().try_for_each(Sink::may_grow)?;
    }
    tasks::check_proc().map_err(doctor::referred)?;
    let mut target = processes::resolved(&plan.target, plan.children)?;
    let ended = tasks::without_ended(&mut target)?;
    let mut plan = Plan {
        target,
        ..plan.clone()
    };
    let watched = Watched::of(&mut plan)?;
    let plan = &plan;
    let cpus = cpus(plan.cpus.as_deref()).map_err(doctor::referred)?;
    let cpu_watch = CpuWatch::new(&cpus, plan.cpus.as_deref());
    let mut signals = Signals::listen()?;
    let suspended = match &plan.launch {
        Some(command) => {
            let says = match plan.live {
                true => Says::NothingOnTerminals,
                false if sinks.iter().any(Sink::is_stdout) => Says::AllOnStderr,
                false => Says::All,
            };
            let run_as = plan.run_as.as_ref().map(|user| RunAs::find(user.name()));
            Some(SuspendedCommand::start(command, says, run_as.transpose()?)?)
        }
        None => None,
    };
    let ids: Vec<u32> = match (&plan.target, &suspended) {
        (Target::Launched, Some(suspended)) => vec![suspended.pid],
        (target, _) => tasks::ids(target).to_vec(),
    };
    let mut recording_info = RecordingInfo::look(plan, cpus.len());
    if !ended.is_empty() {
        let listed: Vec<String> = ended.iter().map(u32::to_string).collect();
        recording_info.remark(Finding::note(format!(
            "{} had ended before the recording began",
            listed.join(", ")
        )));
    }
    let support = Support::detect();
    // The threads that read tables begin here.
    let urgency = Urgency::begin();
    let Attached {
        kernel,
        handler,
        mut walker,
        plan,
    } = attach(plan, &ids, watched, &support, &cpus).map_err(doctor::referred)?;
    let has_tables = handler.loader.is_some();
    for lack in lacks(&plan, &support, has_tables) {
        recording_info.remark(Finding::note(lack.to_string()));
    }
    print_details(&plan, &kernel);
    let mut session = Session::new(&plan, kernel, handler, cpu_watch)?;
    // A command about to be launched waits for us alone, which is no concern of anybody's.
    if let Some(waits) = plan.waits()
        && plan.target != Target::Launched
    {
        // Where they wait may not be wanted.
        let walked = plan.capture.user_stacks && waits.wakers != Wakers::Alone;
        let asleep = session.find_asleep(&mut walker, walked);
        recording_info.add_sleepers(asleep);
    }
    drop(walker);
    drop(urgency);
    let plan = Arc::new(plan);
    let sink: Box<dyn WindowSink> = match (plan.window, &plan.service) {
        (_, Some(service)) => Box::new(Sent::start(&plan, service, &recording_info)?),
        _ if plan.live => Box::new(signals.live.begin(&plan, &recording_info)?),
        (Some(length), None) => Box::new(GrowingFiles::new(length, &plan, &recording_info, sinks)),
        (None, None) => Box::new(Files { sinks, source }),
    };
    let mut pipeline = Pipeline::new(Arc::clone(&plan), sink);
    let mut command = suspended.map(SuspendedCommand::release).transpose()?;
    // Where windows are named meanwhile, this thread does that, too.
    let has_windows = plan.live || plan.window.is_some() || plan.service.is_some();
    let urgency = (!has_windows).then(Urgency::begin);
    let stop = session
        .sample(
            &plan,
            &ids,
            &mut signals,
            &mut command,
            &mut pipeline,
            check,
        )
        .await;
    drop(urgency);
    // The terminal is as it was before anything else is said.
    signals.live.end();
    let stop = stop?;
    recording_info.ended(stop, session.elapsed());
    for finding in session.changes(&plan, &pipeline) {
        recording_info.remark(finding);
    }
    let picture = plan.all_outputs().find_map(Output::picture);
    let picture = picture.filter(|_| plan.opens).map(Path::to_owned);
    let finishing =
        tokio::task::spawn_blocking(move || pipeline.end(session.end()?, recording_info));
    let Some(report) = signals.unless_interrupted(finishing).await? else {
        return Ok(Outcome::Done(ABORTED));
    };
    report::print(&report.text);
    if let Some(picture) = picture.filter(|_| report.wrote) {
        report::print(&desktop::open(&picture));
    }
    if stop == Stop::Reload {
        return Ok(Outcome::Again);
    }
    let Some(mut command) = command else {
        return Ok(Outcome::Done(u8::from(!report.wrote)));
    };
    if !command.has_ended() {
        let name = format!("{} (PID {})", command.name(), command.pid());
        report::print(&format!(
            "Waiting for {name} to end; Ctrl-C leaves it running.\n"
        ));
        if !signals.wait_for(&mut command).await {
            return Ok(Outcome::Done(ABORTED));
        }
    }
    Ok(Outcome::Done(command.exit_code().unwrap_or(0)))
}

fn print_details(plan: &Plan, kernel: &Kernel) {
    if plan.verbosity.verbose == 0 {
        return;
    }
    let mut text = format!("BPF maps: {} bytes\n", kernel.map_bytes());
    for program in kernel.verified() {
        let instructions = program.instructions.map_or_else(
            || "an unknown number of".to_owned(),
            |count| crate::text::number::grouped(u64::from(count)),
        );
        text.push_str(&format!(
            "BPF program {}: {instructions} instructions verified\n",
            program.program.name()
        ));
    }
    report::print(&text);
}
