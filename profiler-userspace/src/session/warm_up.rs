//! The moments before a recording: samples that are thrown away, whose walks say which code runs; or the stacks of those who are
//! asleep, which say where they will wait.
//!
//! In: programs that are loaded, with nothing attached. Out: the same, with the unwind tables of what runs in place. Of the
//! hundreds of files that a machine's processes map, samples come to a few dozen; only these are read.

use super::events::EventHandler;
use crate::kernel::{Kernel, Policy, Source};
use crate::plan::{CallGraph, PerfEvent, Plan, Target};
use crate::probe::{Probe, Wakers};
use crate::unwind::loader::TableLoader;
use crate::unwind::offline::OfflineWalker;
use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// How long a recording waits for unwind tables, at most.
pub(super) const MAX_TIME: Duration = Duration::from_millis(300);

/// When no walk has come to anything new for so long, what runs is known.
const QUIET: Duration = Duration::from_millis(60);

/// Nanoseconds from one sample to the next: also where the recording itself is to have few.
const PERIOD_NS: u64 = 1_000_000;

/// Whether a recording is preceded by this: where it is of nothing but samples of what runs already, and walks need tables.
pub(super) fn is_wanted(plan: &Plan) -> bool {
    plan.target != Target::Launched
        && plan.capture.user_stacks
        && plan.capture.call_graph != CallGraph::Fp
        && plan.events.iter().all(|event| event.probe == Probe::OnCpu)
}

/// Whether a recording is preceded by a look at those who are asleep: where it is of the waits of the whole machine, and walks need
/// tables.
pub(super) fn asks_asleep(plan: &Plan) -> bool {
    plan.target == Target::All
        && plan.capture.user_stacks
        && plan.capture.call_graph != CallGraph::Fp
        && plan
            .waits()
            .is_some_and(|waits| waits.wakers != Wakers::Alone)
}

/// Walks the stacks of those who are asleep, and has the tables read of the code that they are in, for [`MAX_TIME`] at most.
pub(super) fn look_at_asleep(
    kernel: &mut Kernel,
    handler: &mut EventHandler,
    walker: &mut OfflineWalker,
) {
    let deadline = Instant::now() + MAX_TIME;
    let Some(loader) = &mut handler.loader else {
        return;
    };
    // Threads that cannot be listed now, cannot when the recording begins: then the reason is told.
    let asleep = kernel.can_list().then(|| kernel.asleep());
    for sleeping in asleep.into_iter().flatten().flatten() {
        if Instant::now() >= deadline {
            break;
        }
        walker.walk(
            &mut handler.processes,
            sleeping.process_key(),
            sleeping.kept,
            sleeping.registers,
        );
    }
    loader.load_met(kernel, &mut handler.processes, &walker.met());
    loader.wait_until(deadline);
}

/// Samples until the tables of what runs are in place, or for [`MAX_TIME`].
pub(super) fn warm_up(kernel: &mut Kernel, handler: &mut EventHandler, cpus: &[u32]) -> Result<()> {
    /// The event of the plan whose program and counters are borrowed.
    const EVENT: usize = 0;
    if handler.loader.is_none() {
        return Ok(());
    }
    let clock = PerfEvent::CPU_CLOCK;
    let source = Source {
        name: clock.name.to_string(),
        kind: clock.kind as u32,
        config: clock.config,
        policy: Policy::Period(PERIOD_NS),
    };
    kernel.attach_event(EVENT, &source, cpus)?;
    let deadline = Instant::now() + MAX_TIME;
    let mut quiet_from = Instant::now();
    loop {
        let now = Instant::now();
        let is_quiet = now.duration_since(quiet_from) >= QUIET;
        let is_done = is_quiet && handler.loader.as_ref().is_none_or(TableLoader::is_idle);
        if now >= deadline || is_done {
            return kernel.end_trial(EVENT).map_err(Into::into);
        }
        let left = deadline.duration_since(now).min(QUIET);
        let timeout = Timespec::try_from(left).context("the clock has no such time")?;
        let fd = kernel.events_fd();
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => quiet_from = Instant::now(),
            Err(error) => return Err(error).context("cannot listen for kernel events"),
        }
        handler.handle(kernel);
    }
}
