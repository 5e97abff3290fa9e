//! Sampling: the event loop that waits for the recording's end and does meanwhile what is due.
//!
//! In: a kernel that samples. Out: why it ended, and all that was recorded.

use super::collector::Collector;
use super::cpus::CpuWatch;
use super::events::EventHandler;
use super::governor::{Governor, Workers};
use super::launch::Running;
use super::memory::MemoryWatch;
use super::signals::Signals;
use crate::kernel::Kernel;
use crate::pipeline::progress::Progress;
use crate::pipeline::recording_info::{Before, Stop};
use crate::pipeline::timeline::{Divided, Timeline};
use crate::pipeline::window::{Pipeline, Recorded};
use crate::plan::{Plan, Target};
use crate::report::findings::Finding;
use crate::report::{self};
use crate::targets::tasks;
use crate::text::number::{counted, grouped};
use crate::unwind::loader::TableLoader;
use crate::unwind::offline::OfflineWalker;
use anyhow::{Context as _, Result};
use profiler_common::abi::Class;
use rustix::process::Signal;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::MissedTickBehavior;

/// How often the progress line is drawn, the tables' filling and new runtimes are looked at, and named targets looked for.
const TICK: Duration = Duration::from_millis(100);

/// A recording under way.
pub(super) struct Session {
    kernel: Kernel,
    handler: EventHandler,
    collector: Collector,
    started: Instant,
    stopped: Option<Duration>,
    /// None where no output tells of windows.
    timeline: Option<Timeline>,
    /// Readable when there are kernel events.
    events: AsyncFd<OwnedFd>,
    cpus: CpuWatch,
    /// None where the recording may cost what it takes, and until threads that are asleep were looked at.
    governor: Option<Governor>,
    /// None where it may take the memory that it takes.
    memory: Option<MemoryWatch>,
}

impl Session {
    /// Takes over what is attached and sampling.
    pub(super) fn new(
        plan: &Plan,
        kernel: Kernel,
        handler: EventHandler,
        cpus: CpuWatch,
    ) -> Result<Self> {
        let events = kernel
            .events_fd()
            .try_clone_to_owned()
            .and_then(listen)
            .context("cannot listen for kernel events")?;
        Ok(Self {
            governor: None,
            memory: MemoryWatch::begin(plan),
            kernel,
            handler,
            collector: Collector::new(plan.capture.include_self),
            started: Instant::now(),
            stopped: None,
            timeline: Timeline::of(plan),
            events,
            cpus,
        })
    }

    /// How long sampling took.
    pub(super) fn elapsed(&self) -> Duration {
        self.stopped.unwrap_or_else(|| self.started.elapsed())
    }

    /// Changes of the machine meanwhile.
    pub(super) fn changes(&self, plan: &Plan, pipeline: &Pipeline) -> Vec<Finding> {
        let tables = self.handler.loader.as_ref();
        let governor = self.governor.iter();
        let workers = Workers { tables, pipeline };
        let overhead = governor.map(|governor| governor.finding(plan, &self.kernel, workers));
        let memory = self.memory.iter().map(|memory| memory.finding(tables));
        overhead.chain(memory).chain(self.cpus.findings()).collect()
    }

    /// Lets the kernel half sample until the plan, a signal, or the target's end says to stop.
    pub(super) async fn sample(
        &mut self,
        plan: &Plan,
        ids: &[u32],
        signals: &mut Signals,
        command: &mut Option<Running>,
        pipeline: &mut Pipeline,
        check: &dyn Fn() -> Result<(), String>,
    ) -> Result<Stop> {
        let tables = self.handler.loader.as_ref();
        let workers = Workers { tables, pipeline };
        self.governor = Governor::begin(plan, &self.kernel, workers);
        let progress = Progress::new(
            plan.duration,
            plan.verbosity.quiet || plan.live || plan.service.is_some(),
        );
        let watched = if plan.target == Target::Launched {
            &[]
        } else {
            ids
        };
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = self.started + plan.duration.unwrap_or(Duration::MAX / 4);
        let time_is_up = tokio::time::sleep_until(deadline.into());
        tokio::pin!(time_is_up);
        let stop = loop {
            let next_end = self.timeline.as_ref().and_then(Timeline::next_end);
            tokio::select! {
                () = &mut time_is_up, if plan.duration.is_some() => break Stop::Duration,
                signal = signals.ends.next() => {
                    if signal == Signal::HUP && plan.service.is_some() {
                        match check() {
                            Ok(()) => break Stop::Reload,
                            Err(why) => {
                                report::print(&format!("flame-bpf: options stay as they are: {why}\n"));
                                continue;
                            }
                        }
                    }
                    if let Some(command) = command {
                        command.pass_on(signal);
                    }
                    break Stop::Interrupted;
                }
                _ = signals.child.recv(), if command.is_some() => {
                    if command.as_mut().is_some_and(Running::has_ended) {
                        break Stop::CommandEnded;
                    }
                }
                () = signals.live.until_end() => break Stop::Interrupted,
                ready = self.events.readable() => {
                    ready.context("cannot listen for kernel events")?.clear_ready();
                    self.handle_events()?;
                }
                () = tokio::time::sleep_until(self.handler.rescans.next_due().into()),
                    if !self.handler.rescans.is_empty() =>
                {
                    self.handler.rescan(&mut self.kernel);
                }
                () = at(self.started, next_end), if next_end.is_some() => self.end_window()?,
                _ = tick.tick() => {
                    // Not every event wakes us up.
                    self.handle_events()?;
                    signals.live.say(&self.logs().0);
                    self.cpus.follow(&mut self.kernel, self.started.elapsed());
                    signals.live.say(&self.follow_runtimes());
                    if let Some(governor) = &mut self.governor {
                        let tables = self.handler.loader.as_ref();
                        let workers = Workers { tables, pipeline };
                        governor.follow(plan, &mut self.kernel, workers)?;
                    }
                    if let Some(memory) = &mut self.memory {
                        memory.follow(&self.kernel, self.handler.loader.as_ref(), pipeline);
                    }
                    self.collector.drain_if_full(&mut self.kernel, &mut self.handler)?;
                    if pipeline.is_over(self.elapsed()) {
                        self.pass_window(pipeline)?;
                    }
                    if progress.is_visible() {
                        progress.sampling(self.elapsed(), &self.so_far(plan));
                    }
                    if !watched.is_empty() && !tasks::any_runs(watched) {
                        break Stop::TargetEnded;
                    }
                    if command.as_mut().is_some_and(Running::has_ended) {
                        break Stop::CommandEnded;
                    }
                }
            }
        };
        self.stopped = Some(self.started.elapsed());
        progress.clear();
        Ok(stop)
    }

    /// Has the kernel half show the frames of runtimes that were met. Returns what to say if it does not; nothing otherwise.
    fn follow_runtimes(&mut self) -> String {
        match self.kernel.follow_runtimes() {
            Ok(()) => String::new(),
            Err(error) => format!(
                "flame-bpf: interpreters that the recording met later are shown by their native frames: {:#}\n",
                anyhow::Error::from(error)
            ),
        }
    }

    /// Log lines of the kernel half, and how many it dropped so far.
    fn logs(&mut self) -> (String, u64) {
        let (lines, dropped) = self.kernel.log_lines();
        let said = lines
            .into_iter()
            .map(|line| format!("flame-bpf: kernel half: {line}\n"));
        (said.collect(), dropped)
    }

    /// How many samples there are so far: of what the recording is about, or of each thing.
    fn so_far(&self, plan: &Plan) -> String {
        let recorded = |event| self.kernel.counters(event).sum(Class::Recorded);
        if plan.has_one_subject() {
            return counted(recorded(0), plan.events[0].probe.noun());
        }
        let events = plan.events.iter().enumerate();
        let each = events.map(|(number, event)| {
            let count = grouped(recorded(number));
            format!("{} {count}", event.name())
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Takes in kernel events, and drains where one asks for it.
    fn handle_events(&mut self) -> Result<()> {
        if self.handler.handle(&mut self.kernel) {
            self.collector
                .drain_if_full(&mut self.kernel, &mut self.handler)?;
        }
        Ok(())
    }

    /// Begins the next of the windows that the recording is divided into.
    fn end_window(&mut self) -> Result<()> {
        self.collector.drain(&mut self.kernel, &mut self.handler)?;
        self.collector.next_window();
        let until = self.elapsed();
        self.note_window(until);
        Ok(())
    }

    /// Notes what happened in the window that is over.
    fn note_window(&mut self, until: Duration) {
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        let events = 0..self.kernel.events();
        let counters = events.map(|event| self.kernel.counters(event)).collect();
        let samples = self.collector.samples();
        if timeline.end_window(until, counters, samples) == Divided::Less {
            self.collector.halve_windows();
        }
    }

    /// Passes on what was recorded in the window that is over.
    fn pass_window(&mut self, pipeline: &mut Pipeline) -> Result<()> {
        let until = self.elapsed();
        self.collector.drain(&mut self.kernel, &mut self.handler)?;
        let drained = self.collector.take(&mut self.handler);
        let processes = &mut self.handler.processes;
        pipeline.window(drained, processes, &mut self.kernel, until)?;
        processes.close_named();
        Ok(())
    }

    /// Looks for threads that are off the CPU, and has their time counted from the recording's beginning.
    pub(super) fn find_asleep(
        &mut self,
        walker: &mut OfflineWalker,
        user_stacks: bool,
    ) -> Result<Before> {
        let mut before = Before::default();
        let processes = &mut self.handler.processes;
        for sleeping in self.kernel.asleep()? {
            let user = user_stacks
                .then(|| {
                    walker.walk(
                        processes,
                        sleeping.process_key(),
                        sleeping.kept,
                        sleeping.registers,
                    )
                })
                .flatten();
            before.incomplete += usize::from(user.as_ref().is_some_and(|(_, readable)| !readable));
            let user = user.map(|(stack, _)| stack);
            self.kernel.put_to_sleep(&sleeping, user.as_ref())?;
        }
        self.kernel.end_listing()?;
        Ok(before)
    }

    /// Stops sampling and hands over all that is left, since it was asked for last.
    pub(super) fn end(mut self) -> Result<Recorded> {
        let began = Instant::now();
        self.kernel.detach()?;
        self.collector
            .drain_rest(&mut self.kernel, &mut self.handler)?;
        let (text, dropped) = self.logs();
        report::print(&text);
        if dropped > 0 {
            report::print(&format!(
                "flame-bpf: {} log lines of the kernel half were dropped: their buffer was full.\n",
                grouped(dropped)
            ));
        }
        self.note_window(self.elapsed());
        let loader = self.handler.loader.as_ref();
        let loaded = loader.map(TableLoader::loaded);
        let (normalized, objects) = self.collector.take(&mut self.handler);
        Ok(Recorded {
            began,
            kernel: self.kernel,
            processes: self.handler.processes,
            normalized,
            objects,
            timeline: self.timeline,
            loaded,
        })
    }
}

/// Waits until a recording that began then has lasted so long.
async fn at(began: Instant, elapsed: Option<Duration>) {
    match elapsed {
        Some(elapsed) => tokio::time::sleep_until((began + elapsed).into()).await,
        None => std::future::pending().await,
    }
}

#[expect(
    unsafe_code,
    reason = "tokio asks for a promise that the descriptor stays open"
)]
fn listen(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `AsyncFd` owns the descriptor, and nobody else can close it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
