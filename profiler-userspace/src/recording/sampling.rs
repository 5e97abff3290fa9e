//! While sampling: waiting for the end, and for the kernel half's news.

use super::launch::Running;
use super::progress::Progress;
use super::tables::Need;
use super::target;
use super::unwinding::Unwinding;
use super::urgent::Urgent;
use crate::kernel::Kernel;
use crate::plan::{Plan, Target};
use crate::process::{Identity, Processes};
use crate::profile::raw::RawProfile;
use crate::symbolize::Locator;
use anyhow::{Context as _, Result};
use profiler_common::abi::{Class, NoticeKind};
use rustix::process::Signal;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
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

/// Why sampling stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The time was up.
    Duration,
    /// A signal asked for it.
    Interrupted,
    /// None of the named targets runs any more.
    TargetEnded,
    /// The command has ended.
    CommandEnded,
}

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

/// When a young process is looked at again, after its first sample: that may have been taken inside
/// `exec`, before there were any mappings, or in the loader, before there were all. Libraries that come
/// later still have names if the process lives until the recording's end.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
];

/// A process is young for this long. Those that are older have loaded what they begin with.
const YOUTH: Duration = Duration::from_secs(1);

/// Looks that may be waiting. In a storm of processes most are gone before their turn, and reading the
/// rest again and again would be dear.
const MOST_LOOKS: usize = 512;

/// Processes that may be known before those that have ended are looked for and let go: their mappings take
/// a kilobyte each.
const FEWEST_CROWDED: usize = 1024;

/// Another look at a process.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Look {
    due: Instant,
    identity: Identity,
    /// Which of [`LOOKS`] this is.
    step: usize,
}

/// A recording under way.
pub(super) struct Session {
    pub(super) kernel: Kernel,
    pub(super) processes: Processes,
    /// What was drained and cannot be located yet.
    pub(super) raw: RawProfile,
    pub(super) locator: Locator,
    /// So many known processes are a crowd, in which most may have ended.
    crowd: usize,
    started: Instant,
    stopped: Option<Duration>,
    notices: AsyncFd<OwnedFd>,
    /// Soonest first.
    looks: BinaryHeap<Reverse<Look>>,
    /// None where stacks are walked by frame pointers alone.
    pub(super) unwinding: Option<Unwinding>,
}

impl Session {
    /// Takes over what is attached and sampling.
    pub(super) fn new(kernel: Kernel, unwinding: Option<Unwinding>) -> Result<Self> {
        let notices = kernel
            .notices_fd()
            .try_clone_to_owned()
            .and_then(listen)
            .context("cannot listen for the kernel's notices")?;
        Ok(Self {
            kernel,
            processes: Processes::holding_files(),
            raw: RawProfile::default(),
            locator: Locator::new(),
            crowd: FEWEST_CROWDED,
            started: Instant::now(),
            stopped: None,
            notices,
            looks: BinaryHeap::new(),
            unwinding,
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
    ) -> Result<Stop> {
        let _urgent = Urgent::now();
        let progress = Progress::new(plan.duration, plan.verbosity.quiet);
        let watched = if plan.target == Target::Launched {
            &[]
        } else {
            ids
        };
        if let Some(unwinding) = &mut self.unwinding
            && plan.target == Target::All
        {
            unwinding.cover_machine();
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
                () = tokio::time::sleep_until(self.next_look().into()), if !self.looks.is_empty() => {
                    self.look_again();
                }
                () = has_time(self.unwinding.as_ref()) => {
                    if let Some(unwinding) = &mut self.unwinding {
                        unwinding.cover_next(&mut self.kernel);
                    }
                }
                _ = tick.tick() => {
                    self.drain_if_full()?;
                    if progress.is_visible() {
                        progress.sampling(self.elapsed(), self.kernel.books().sum(Class::Recorded));
                    }
                    if !watched.is_empty() && !target::any_runs(watched) {
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

    /// Takes in the notices: looks at new processes while they live, and makes room where it is short.
    pub(super) fn hear(&mut self) -> Result<()> {
        let mut drain = false;
        while let Some(notice) = self.kernel.next_notice() {
            let identity = Identity {
                tgid: notice.tgid,
                incarnation: notice.incarnation,
            };
            match NoticeKind::from_code(notice.kind) {
                Some(NoticeKind::NewProcess) => self.meet(identity),
                Some(NoticeKind::UnknownCode) => {
                    // It may be this that tells of a process first.
                    self.meet(identity);
                    if let Some(unwinding) = &mut self.unwinding {
                        let (kernel, processes) = (&mut self.kernel, &mut self.processes);
                        unwinding.cover_address(kernel, processes, identity, notice.address);
                    }
                }
                Some(NoticeKind::HalfFull) => drain = true,
                None => {}
            }
        }
        if drain {
            self.drain_if_full()?;
        }
        Ok(())
    }

    /// Looks at a process that was sampled, and plans to look again if it is new to us and young.
    fn meet(&mut self, identity: Identity) {
        let is_new = self.processes.see(identity);
        if is_new {
            self.cover(identity);
        }
        if is_new && is_young(identity) && self.looks.len() < MOST_LOOKS {
            self.looks.push(Reverse(Look {
                due: Instant::now() + LOOKS[0],
                identity,
                step: 0,
            }));
        }
    }

    fn next_look(&self) -> Instant {
        let soonest = self.looks.peek().map(|Reverse(look)| look.due);
        soonest.unwrap_or_else(Instant::now)
    }

    /// Takes the looks that are due.
    fn look_again(&mut self) {
        let now = Instant::now();
        while self
            .looks
            .peek()
            .is_some_and(|Reverse(look)| look.due <= now)
        {
            let Some(Reverse(Look { identity, step, .. })) = self.looks.pop() else {
                return;
            };
            if self.processes.refresh(identity) {
                self.cover(identity);
            }
            if let Some(&delay) = LOOKS.get(step + 1) {
                self.looks.push(Reverse(Look {
                    due: now + delay,
                    identity,
                    step: step + 1,
                }));
            }
        }
    }

    /// Loads the tables of what a process maps, before a walk comes there.
    fn cover(&mut self, identity: Identity) {
        if let Some(unwinding) = &mut self.unwinding {
            unwinding.cover(&mut self.kernel, &self.processes, identity, Need::Now);
        }
    }

    /// Drains when a side is half full, or when so many processes have come by that those of them that
    /// have ended should be let go.
    fn drain_if_full(&mut self) -> Result<()> {
        if !self.kernel.is_half_full() && self.processes.len() < self.crowd {
            return Ok(());
        }
        // Looked at first: nothing of these will come after this drain.
        let ended = self.processes.ended();
        self.kernel.drain(&mut self.raw)?;
        self.locator
            .take(&mut self.raw, &mut self.processes, &ended);
        self.crowd = (2 * self.processes.len()).max(FEWEST_CROWDED);
        Ok(())
    }
}

async fn has_time(unwinding: Option<&Unwinding>) {
    match unwinding {
        Some(unwinding) => unwinding.has_time().await,
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

/// Whether a process began a short while ago, or may have.
fn is_young(identity: Identity) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot = Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    );
    let began = Duration::from_nanos(identity.incarnation);
    identity.incarnation == 0 || since_boot.saturating_sub(began) < YOUTH
}
