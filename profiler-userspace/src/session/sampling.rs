//! While sampling: waiting for the end, and for the kernel half's news.

use super::tables::Tables;
use crate::kernel::Kernel;
use crate::pipeline::Recorded;
use crate::pipeline::progress::Progress;
use crate::pipeline::recording_info::{Before, Stop};
use crate::pipeline::symbolize::Code;
use crate::pipeline::windows::Windows;
use crate::plan::{Plan, Target};
use crate::priority::RaisedPriority;
use crate::process::{ProcessKey, Processes, vdso};
use crate::profile::normalized::NormalizedProfile;
use crate::profile::raw::RawProfile;
use crate::report::{
    self,
    text::{counted, grouped},
};
use crate::session::events::Looks;
use crate::session::launch::Running;
use crate::symbolize::{Normalizer, Objects};
use crate::targets::tasks;
use crate::unwind::loader::CodeKeys as _;
use crate::unwind::offline::OfflineWalker;
use anyhow::{Context as _, Result};
use profiler_common::abi::Class;
use rustix::process::Signal;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How often the progress line is drawn, the tables' filling looked at, and named targets looked for.
const TICK: Duration = Duration::from_millis(100);

/// How long an interrupt waits for files that are just being written.
const GRACE: Duration = Duration::from_millis(500);

/// The signals that mean something to us, listened to from the start.
pub(super) struct Signals {
    ends: Ends,
    child: Listener,
}

/// Those that ask for the end.
struct Ends {
    interrupt: Listener,
    terminate: Listener,
    hangup: Listener,
}

impl Ends {
    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hangup.recv() => Signal::HUP,
        }
    }
}

impl Signals {
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            ends: Ends {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hangup: listen(SignalKind::hangup())?,
            },
            child: listen(SignalKind::child())?,
        })
    }

    /// What `work` returns; nothing if a signal comes first and the work is not nearly done.
    pub(super) async fn unless_interrupted<T>(
        &mut self,
        mut work: JoinHandle<Result<T>>,
    ) -> Result<Option<T>> {
        tokio::select! {
            done = &mut work => done.context("symbolizing failed unexpectedly")?.map(Some),
            _ = self.ends.next() => match tokio::time::timeout(GRACE, work).await {
                Ok(done) => done.context("symbolizing failed unexpectedly")?.map(Some),
                Err(_) => Ok(None),
            },
        }
    }

    /// Waits for the command to end; false if a signal came first.
    pub(super) async fn wait_for(&mut self, command: &mut Running) -> bool {
        while !command.has_ended() {
            tokio::select! {
                _ = self.child.recv() => {}
                // Not every exit is told by a signal of its own.
                () = tokio::time::sleep(TICK) => {}
                signal = self.ends.next() => {
                    command.pass_on(signal);
                    return false;
                }
            }
        }
        true
    }
}

/// Processes that may be known before those that have ended are looked for and let go: their mappings take
/// a kilobyte each.
const FEWEST_CROWDED: usize = 1024;

/// A recording under way.
pub(super) struct Session {
    pub(super) kernel: Kernel,
    pub(super) processes: Processes,
    /// What was drained and cannot be normalized yet.
    pub(super) raw: RawProfile,
    pub(super) normalizer: Normalizer,
    /// So many known processes are a crowd, in which most may have ended.
    crowd: usize,
    started: Instant,
    stopped: Option<Duration>,
    notices: AsyncFd<OwnedFd>,
    pub(super) looks: Looks,
    /// None where stacks are walked by frame pointers alone.
    pub(super) tables: Option<Tables>,
}

impl Session {
    /// Takes over what is attached and sampling.
    pub(super) fn new(mut kernel: Kernel, tables: Option<Tables>) -> Result<Self> {
        let notices = kernel
            .events_fd()
            .try_clone_to_owned()
            .and_then(listen)
            .context("cannot listen for the kernel's notices")?;
        let mut processes = Processes::holding_files();
        processes.compare_start_times();
        if kernel.reports_mappings() {
            let key = vdso::mapping().and_then(|mapping| kernel.code_key_at(mapping.start));
            processes.note_vdso(key);
        }
        Ok(Self {
            kernel,
            processes,
            raw: RawProfile::default(),
            normalizer: Normalizer::new(),
            crowd: FEWEST_CROWDED,
            started: Instant::now(),
            stopped: None,
            notices,
            looks: Looks::default(),
            tables,
        })
    }

    /// How long sampling took.
    pub(super) fn elapsed(&self) -> Duration {
        self.stopped.unwrap_or_else(|| self.started.elapsed())
    }

    /// Lets the kernel half sample until the plan, a signal, or the target's end says to stop.
    pub(super) async fn sample(
        &mut self,
        plan: &Plan,
        ids: &[u32],
        signals: &mut Signals,
        command: &mut Option<Running>,
        mut windows: Option<&mut Windows<'_>>,
    ) -> Result<Stop> {
        let _raised = RaisedPriority::new();
        let progress = Progress::new(plan.duration, plan.verbosity.quiet);
        let watched = if plan.target == Target::Launched {
            &[]
        } else {
            ids
        };
        if let Some(tables) = &mut self.tables
            && plan.target == Target::All
        {
            tables.loader.load_in_background(tasks::busiest());
        }
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = self.started + plan.duration.unwrap_or(Duration::MAX / 4);
        let time_is_up = tokio::time::sleep_until(deadline.into());
        tokio::pin!(time_is_up);
        let stop = loop {
            tokio::select! {
                () = &mut time_is_up, if plan.duration.is_some() => break Stop::Duration,
                signal = signals.ends.next() => {
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
                ready = self.notices.readable() => {
                    ready.context("cannot listen for the kernel's notices")?.clear_ready();
                    self.hear()?;
                }
                () = tokio::time::sleep_until(self.looks.next().into()), if !self.looks.is_empty() => {
                    self.look_again();
                }
                () = has_time(self.tables.as_ref()) => {
                    if let Some(tables) = &mut self.tables {
                        tables.loader.load_next(&mut self.kernel);
                    }
                }
                _ = tick.tick() => {
                    // Not everything that is told wakes us up.
                    self.hear()?;
                    self.print_logs();
                    self.drain_if_full()?;
                    if let Some(windows) = &mut windows
                        && windows.is_over(self.elapsed())
                    {
                        let (until, (normalized, objects)) = (self.elapsed(), self.take_window()?);
                        let code = Code {
                            processes: &self.processes,
                            objects: &objects,
                        };
                        windows.write(normalized, code, &mut self.kernel, until)?;
                        self.processes.close_deleted();
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

    /// Prints what the kernel half logged; returns how many lines it dropped so far.
    fn print_logs(&mut self) -> u64 {
        let (lines, dropped) = self.kernel.log_lines();
        for line in lines {
            report::print(&format!("flame-bpf: kernel half: {line}\n"));
        }
        dropped
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

    /// Drains when a side is half full, or when so many processes have come by that those of them that
    /// have ended should be let go.
    pub(super) fn drain_if_full(&mut self) -> Result<()> {
        if !self.kernel.is_half_full() && self.processes.len() < self.crowd {
            return Ok(());
        }
        self.drain()
    }

    fn drain(&mut self) -> Result<()> {
        // Looked at first: nothing of these will come after this drain.
        let mut ended = self.processes.ended();
        let waking = self.kernel.waking();
        ended.retain(|process| !waking.contains(&(process.tgid, process.incarnation)));
        self.kernel.drain(&mut self.raw)?;
        // All firings that were drained have ended, and told what lay at their addresses.
        self.take_in_events();
        self.normalizer
            .take(&mut self.raw, &mut self.processes, &ended);
        self.crowd = (2 * self.processes.len()).max(FEWEST_CROWDED);
        Ok(())
    }

    /// Looks for threads that are off the CPU, and has their time counted from the recording's beginning.
    pub(super) fn find_asleep(&mut self, user_stacks: bool) -> Result<Before> {
        let mut before = Before::default();
        let mut walker = OfflineWalker::new(&mut self.processes);
        for sleeping in self.kernel.asleep()? {
            let process_key = ProcessKey {
                tgid: sleeping.tgid,
                incarnation: sleeping.incarnation,
            };
            let user = user_stacks
                .then(|| walker.walk(process_key, sleeping.kept, sleeping.registers))
                .flatten();
            before.incomplete += usize::from(user.as_ref().is_some_and(|(_, readable)| !readable));
            let user = user.map(|(stack, _)| stack);
            self.kernel.put_to_sleep(&sleeping, user.as_ref())?;
        }
        Ok(before)
    }

    /// Stops sampling and hands over all that is left, since it was asked for last.
    pub(super) fn end(mut self) -> Result<Recorded> {
        let began = Instant::now();
        self.kernel.detach()?;
        self.kernel.drain_rest(&mut self.raw)?;
        let dropped = self.print_logs();
        if dropped > 0 {
            report::print(&format!(
                "flame-bpf: {} log lines of the kernel half were dropped: their buffer was full.\n",
                grouped(dropped)
            ));
        }
        self.take_in_events();
        let loaded = self.tables.as_ref().map(|tables| tables.loader.loaded());
        let (normalized, objects) = self.normalizer.finish(&mut self.raw, &mut self.processes);
        Ok(Recorded {
            began,
            kernel: self.kernel,
            processes: self.processes,
            normalized,
            objects,
            loaded,
        })
    }

    /// All that was recorded since this was asked last.
    pub(super) fn take_window(&mut self) -> Result<(NormalizedProfile, Objects)> {
        self.drain()?;
        let normalizer = std::mem::take(&mut self.normalizer);
        Ok(normalizer.finish(&mut self.raw, &mut self.processes))
    }
}

async fn has_time(tables: Option<&Tables>) {
    match tables {
        Some(tables) => tables.has_time().await,
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
