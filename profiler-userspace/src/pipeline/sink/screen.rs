//! Sink of a recording that is watched: what each second brought goes to the terminal.
//!
//! In: windows. Out: windows for the thread that shows them, questions for the one that finds names; and at the end a
//! summary. Never waits for either: all that may take long is done by these two.

mod naming;
mod viewing;

pub(crate) use viewing::{ViewRequest, Viewing};

use crate::live::Status;
use crate::pipeline::recording_info::RecordingInfo;
use crate::pipeline::window::{Ended, Report, WindowProfile, WindowSink};
use crate::plan::Plan;
use crate::profile::normalized::NormalizedProfile;
use crate::symbolize::{KernelSymbols, NameCache, Objects};
use crate::text::number::counted;
use crate::usage::cpu_time;
use anyhow::Result;
use naming::Naming;
use profiler_common::abi::{Class, Counter};
use std::sync::Arc;
use std::time::{Duration, Instant};
use viewing::Teller;

/// How long a window lasts.
const LENGTH: Duration = Duration::from_secs(1);

/// A window, before programs' code has names.
pub(crate) struct LiveWindow {
    number: u64,
    /// Of each event.
    events: Vec<NormalizedProfile>,
    objects: Objects,
    kernel: KernelSymbols,
}

/// The live view.
pub(crate) struct Screen {
    teller: Teller,
    naming: Naming,
    names: Arc<NameCache>,
    /// The CPU time of this process and the kernel half by the end of the last window, and when that was.
    cost: (Duration, Instant),
}

impl Screen {
    /// Takes the terminal, and starts what is needed to show the windows of a plan. `request` is called with what the
    /// reader wants.
    ///
    /// # Errors
    /// When there is no terminal, or no thread can be started.
    pub(crate) fn start(
        plan: &Plan,
        recording_info: &RecordingInfo,
        request: impl Fn(ViewRequest) + Send + Sync + 'static,
    ) -> Result<(Self, Viewing)> {
        let names = Arc::<NameCache>::default();
        let viewing = Viewing::start(plan, recording_info, Arc::clone(&names), request)?;
        let teller = viewing.teller();
        let named = viewing.teller();
        let naming = Naming::start(plan, Arc::clone(&names), move || named.named())?;
        let screen = Self {
            teller,
            naming,
            names,
            cost: (Duration::ZERO, Instant::now()),
        };
        Ok((screen, viewing))
    }

    /// How the recording stands.
    fn status(&mut self, window: &WindowProfile<'_>) -> Status {
        let (plan, counters) = (window.plan, &window.counters);
        let counts = plan.events.iter().zip(plan.kernel_events());
        let counts = counts.map(|(event, kernel_events)| {
            let of = &counters[kernel_events.start + event.probe.spec().counting_event()];
            [Class::Recorded, Class::Filtered, Class::Lost].map(|class| of.sum(class))
        });
        let run_time = counters.iter().map(|of| of.get(Counter::RunTime)).sum();
        let spent = cpu_time() + Duration::from_nanos(run_time);
        let now = Instant::now();
        let (before, then) = std::mem::replace(&mut self.cost, (spent, now));
        let passed = now.saturating_duration_since(then).as_secs_f64();
        let share = spent.saturating_sub(before).as_secs_f64() / passed.max(f64::MIN_POSITIVE);
        Status {
            elapsed: window.until,
            counts: counts.collect(),
            // Before the second window, it is of the start, too.
            cost: if before.is_zero() { 0.0 } else { share },
            naming: self.names.open(),
            remark: None,
        }
    }
}

impl WindowSink for Screen {
    fn length(&self) -> Option<Duration> {
        Some(LENGTH)
    }

    fn window(&mut self, window: &mut WindowProfile<'_>) -> Result<()> {
        self.names.begin_window();
        let events = window.events.iter();
        let questions = events.flat_map(|profile| {
            (self.names).ask(&profile.normalized, &window.objects, window.processes)
        });
        self.naming.ask(questions);
        let status = self.status(window);
        let events = window.events.drain(..).map(|profile| profile.normalized);
        let window = LiveWindow {
            number: window.number,
            events: events.collect(),
            objects: std::mem::take(&mut window.objects),
            kernel: std::mem::take(&mut window.kernel),
        };
        self.teller.show(window, status);
        Ok(())
    }

    fn names(&self) -> Option<&NameCache> {
        Some(&self.names)
    }

    /// The last window is counted alone: the terminal is as it was.
    fn end(self: Box<Self>, ended: Ended<'_>) -> Result<Report> {
        let mut report = Report {
            // The live view writes no files.
            wrote: true,
            ..Report::default()
        };
        for mut all in ended.events() {
            all.extent = format!("seen in {}", counted(ended.last.number, "window"));
            ended.summary(&all, &mut report);
        }
        Ok(report)
    }
}
