//! Conducts a recording that is watched: what each second brought goes to the terminal.
//!
//! In: the plan of a recording, and its session, window by window. Out: windows for the thread that shows them, questions
//! for the one that finds names; and at the end what there is to say. What a window brought is normalized here, where
//! processes and the kernel are known; all that may take long is done by the other two.

mod naming;
mod viewing;

pub(crate) use viewing::{Asked, Viewing};

use super::Recorded;
use crate::kernel::Kernel;
use crate::live::Status;
use crate::pipeline::closing::{self, Report};
use crate::pipeline::normalize::{self, EventProfile};
use crate::pipeline::recording_info::RecordingInfo;
use crate::plan::Plan;
use crate::process::Processes;
use crate::profile::Window;
use crate::profile::normalized::NormalizedProfile;
use crate::report::cost::Cost;
use crate::report::stack_counts::StackCounts;
use crate::report::{stacks, verbose};
use crate::symbolize::{KernelNames, KernelSymbols, KnownKernel, KnownNames, Objects};
use crate::text::number::counted;
use naming::Naming;
use profiler_common::abi::{Class, Counter, Counters};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a window lasts.
const LENGTH: Duration = Duration::from_secs(1);

/// What a window brought, before programs' code has names.
pub(crate) struct LiveWindow {
    number: u64,
    /// Of each event.
    events: Vec<NormalizedProfile>,
    objects: Objects,
    kernel: KernelSymbols,
}

/// Names, for those who ask and those who answer.
pub(crate) type Names = Arc<Mutex<KnownNames>>;

/// What a panic of another thread left is still right.
fn lock(names: &Names) -> MutexGuard<'_, KnownNames> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The windows of a recording that is watched.
pub(crate) struct Live<'a> {
    plan: &'a Plan,
    viewing: Viewing,
    naming: Naming,
    names: Names,
    kernel: KnownKernel,
    shown: Shown,
    /// The CPU time of this process and the kernel half by the end of the last window, and when that was.
    cost: (Duration, Instant),
}

/// What was shown so far.
#[derive(Default)]
pub(crate) struct Shown {
    windows: u64,
    /// When the last of them ended, from the beginning on.
    until: Duration,
    /// The kernel's counters by then, of each of its events.
    counters: Vec<Counters>,
    /// Of all windows, by event.
    stacks: Vec<StackCounts>,
    /// What is to be said when the terminal is as it was.
    text: String,
}

impl<'a> Live<'a> {
    /// Takes the terminal, and starts what is needed to show the windows of a plan. `asked` is called with what the reader
    /// wants.
    ///
    /// # Errors
    /// When there is no terminal, or no thread can be started.
    pub(crate) fn start(
        plan: &'a Plan,
        recording_info: &RecordingInfo,
        asked: impl Fn(Asked) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let names = Names::default();
        let viewing = Viewing::start(plan, recording_info, Arc::clone(&names), asked)?;
        let told = viewing.sender();
        let naming = Naming::start(plan, Arc::clone(&names), move || told.named())?;
        Ok(Self {
            plan,
            viewing,
            naming,
            names,
            kernel: KnownKernel::default(),
            shown: Shown::default(),
            cost: (Duration::ZERO, Instant::now()),
        })
    }

    /// Whether a window is over when the recording has lasted so long.
    pub(crate) fn is_over(&self, elapsed: Duration) -> bool {
        elapsed >= self.shown.until + LENGTH
    }

    /// Says something when the terminal is as it was.
    pub(crate) fn say_later(&mut self, text: &str) {
        self.shown.text.push_str(text);
    }

    /// Passes on that the process is to stop, or goes on.
    pub(crate) fn viewing(&self) -> &Viewing {
        &self.viewing
    }

    /// Shows the window that ends now: `until` from the recording's beginning.
    pub(crate) fn show(
        &mut self,
        mut normalized: NormalizedProfile,
        objects: Objects,
        processes: &Processes,
        kernel: &mut Kernel,
        until: Duration,
    ) {
        normalized.window = Window {
            start: Duration::ZERO,
            end: until.saturating_sub(self.shown.until),
        };
        let mut ask = |addresses: &[u64]| kernel.name_symbols(addresses);
        let symbols = (self.kernel).of(&normalized, &mut KernelNames::asked(&mut ask));
        let questions = lock(&self.names).ask(&normalized, &objects, processes);
        self.naming.ask(questions);
        let all = closing::counters(kernel);
        let counters = self.shown.since(&all);
        let events = normalize::by_event(self.plan, normalized, (&objects, &symbols), &counters);
        self.shown
            .stacks
            .resize_with(events.len(), StackCounts::default);
        let stacks = self.shown.stacks.iter_mut();
        let events = events.into_iter().zip(stacks).map(|(profile, stacks)| {
            stacks.add(profile.stacks);
            profile.normalized
        });
        self.shown.windows += 1;
        let window = LiveWindow {
            number: self.shown.windows,
            events: events.collect(),
            objects,
            kernel: symbols,
        };
        (self.shown.counters, self.shown.until) = (all, until);
        let status = self.status(until);
        self.viewing.show(window, status);
    }

    /// How the recording stands.
    fn status(&mut self, elapsed: Duration) -> Status {
        let (plan, counters) = (self.plan, &self.shown.counters);
        let counts = plan.events.iter().zip(plan.kernel_events());
        let counts = counts.map(|(event, kernel_events)| {
            let of = &counters[kernel_events.start + event.probe.spec().counting_event()];
            [Class::Recorded, Class::Filtered, Class::Lost].map(|class| of.sum(class))
        });
        let run_time = counters.iter().map(|of| of.get(Counter::RunTime)).sum();
        let spent = Cost::cpu_time() + Duration::from_nanos(run_time);
        let now = Instant::now();
        let (before, then) = std::mem::replace(&mut self.cost, (spent, now));
        let passed = now.saturating_duration_since(then).as_secs_f64();
        let share = spent.saturating_sub(before).as_secs_f64() / passed.max(f64::MIN_POSITIVE);
        Status {
            elapsed,
            counts: counts.collect(),
            // Before the second window, it is of the start, too.
            cost: if before.is_zero() { 0.0 } else { share },
            naming: lock(&self.names).open(),
            remark: None,
        }
    }

    /// Gives the terminal back. Returns what was shown, for when the recording has ended.
    pub(crate) fn end(self) -> Shown {
        let mut shown = self.shown;
        shown.text.push_str(&self.viewing.end());
        shown
    }
}

impl Shown {
    /// What was counted since the last window.
    fn since(&self, all: &[Counters]) -> Vec<Counters> {
        let before = |event: usize| self.counters.get(event).unwrap_or(&Counters::EMPTY);
        let all = all.iter().enumerate();
        all.map(|(event, now)| now.since(before(event))).collect()
    }
}

/// Says at the end what was seen, with what came after the last window.
pub(crate) fn finish(
    recorded: Recorded,
    plan: &Plan,
    mut recording_info: RecordingInfo,
    mut shown: Shown,
) -> Report {
    let Recorded {
        kernel,
        normalized,
        objects,
        loaded,
        ..
    } = recorded;
    for sentence in loaded.iter().flat_map(stacks::on_tables) {
        recording_info.remark(sentence);
    }
    let all = closing::counters(&kernel);
    let known = (&objects, &KernelSymbols::default());
    let last = normalize::by_event(plan, normalized, known, &shown.since(&all));
    shown.stacks.resize_with(last.len(), StackCounts::default);
    let mut text = std::mem::take(&mut shown.text);
    if let Some(loaded) = loaded.as_ref().filter(|_| plan.verbosity.verbose > 0) {
        text.push_str(&verbose::tables(loaded));
    }
    let kernel_events = plan.kernel_events();
    for ((profile, mut stacks), kernel_events) in
        last.into_iter().zip(shown.stacks).zip(kernel_events)
    {
        stacks.add(profile.stacks.clone());
        let of_waits = (profile.event.probe.waits()).map(|_| recording_info.of_waits.as_slice());
        let remarks = [
            recording_info.remarks.as_slice(),
            of_waits.unwrap_or_default(),
        ]
        .concat();
        let whole = EventProfile {
            extent: format!("seen in {}", counted(shown.windows + 1, "window")),
            counters: all[kernel_events].to_vec(),
            stacks,
            normalized: NormalizedProfile::default(),
            ..profile
        };
        if plan.verbosity.verbose > 0 {
            for counters in &whole.counters {
                text.push_str(&verbose::counters(counters, ""));
            }
        }
        let title = recording_info.title(plan, whole.event);
        if !plan.verbosity.quiet || whole.counted().sum(Class::Lost) > 0 {
            text.push_str(&whole.balance(plan, &title, &remarks).shown());
        }
    }
    if !plan.verbosity.quiet {
        let loaded = loaded.as_ref();
        text.push_str(&closing::closing(&kernel, loaded, &all, Vec::new()));
    }
    // Whoever only looks has nothing to write.
    Report { text, wrote: true }
}
