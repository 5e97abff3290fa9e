//! Keeps a recording to what it may cost.
//!
//! In: `--max-overhead`, and each second what the kernel half, its interrupts and this process took. Out: another rate, where
//! [`crate::overhead`] says so; and what to say of it at the end. What a recording takes before its first sample, and for naming
//! after its last, is not in it.

use super::attach::policy;
use crate::kernel::Kernel;
use crate::kernel::Tables;
use crate::overhead::{Control, Spent};
use crate::plan::{Event, Plan, Sampling};
use crate::report::cost::Cost;
use crate::report::findings::Finding;
use crate::unwind::loader::TableLoader;
use anyhow::{Context as _, Result};
use profiler_common::abi::{Class, Counter};
use std::time::{Duration, Instant};

/// How long a step is.
const STEP: Duration = Duration::from_secs(1);

/// An interrupt takes so long where that cannot be measured: that of a virtual machine.
const INTERRUPT: Duration = Duration::from_micros(16);

/// The part of the budget that reading unwind tables may take: samples need them, but only so much at once.
const TABLES: f64 = 0.5;

/// With fewer samples a second, there is hardly a profile.
const LEAST_HZ: f64 = 1.0;

/// Of what is counted, at least one in so many is sampled.
const RAREST: f64 = 10_000.0;

/// A rate stays for so many periods at least: the part of one that is left out at a change is then a small part of all.
const FEWEST_PERIODS: f64 = 10.0;

/// So many changes are listed.
const MOST_CHANGES: usize = 8;

/// The controller of one recording.
pub(super) struct Governor {
    budget: f64,
    control: Control,
    interrupt: Duration,
    began: Instant,
    begin: Totals,
    last: (Instant, Totals),
    /// When the rate changed, and to what share of the one asked for.
    changes: Vec<(Duration, f64)>,
}

/// Costs since the recording began, or since some time before.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    kernel: Duration,
    interrupts: Duration,
    /// Of this process, all threads.
    own: Duration,
    /// The part of that which goes into unwind tables.
    tables: Duration,
}

impl Totals {
    fn look(kernel: &Kernel, tables: Option<&TableLoader<Tables>>, interrupt: Duration) -> Self {
        let counters = (0..kernel.events()).map(|event| kernel.counters(event));
        let (mut ns, mut fired) = (0, 0);
        for counters in counters {
            ns += counters.get(Counter::RunTime);
            fired += counters.sum(Class::Fired);
        }
        Self {
            kernel: Duration::from_nanos(ns),
            interrupts: interrupt.mul_f64(fired as f64),
            own: Cost::cpu_time(),
            tables: tables.map_or(Duration::ZERO, TableLoader::spent),
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            kernel: self.kernel.saturating_sub(before.kernel),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            own: self.own.saturating_sub(before.own),
            tables: self.tables.saturating_sub(before.tables),
        }
    }

    fn all(&self) -> Duration {
        self.kernel + self.interrupts + self.own
    }
}

impl Governor {
    /// From now on, if the plan has a limit.
    pub(super) fn begin(
        plan: &Plan,
        kernel: &Kernel,
        tables: Option<&TableLoader<Tables>>,
    ) -> Option<Self> {
        let budget = plan.max_overhead?;
        let interrupt = Kernel::interrupt_cost().unwrap_or(INTERRUPT);
        if let Some(tables) = tables {
            tables.limit(budget * TABLES);
        }
        let now = Totals::look(kernel, tables, interrupt);
        Some(Self {
            budget,
            control: Control::new(budget, floor(&plan.events)),
            interrupt,
            began: Instant::now(),
            begin: now,
            last: (Instant::now(), now),
            changes: Vec::new(),
        })
    }

    /// Sets another rate, if a step is over and its cost asks for it.
    pub(super) fn follow(
        &mut self,
        plan: &Plan,
        kernel: &mut Kernel,
        tables: Option<&TableLoader<Tables>>,
    ) -> Result<()> {
        let (then, before) = self.last;
        let step = then.elapsed();
        if step < STEP {
            return Ok(());
        }
        let now = Totals::look(kernel, tables, self.interrupt);
        let spent = now.since(&before);
        self.last = (Instant::now(), now);
        let scaling = spent.all().saturating_sub(spent.tables);
        let spent = Spent {
            scaling: scaling.as_secs_f64(),
            fixed: spent.tables.as_secs_f64(),
        };
        let since = self.changes.last().map_or(Duration::ZERO, |(at, _)| *at);
        let settled = self.began.elapsed().saturating_sub(since).as_secs_f64();
        let may_change =
            settled >= FEWEST_PERIODS * longest_period(&plan.events, self.control.rate());
        let Some(rate) = self.control.step(spent, step.as_secs_f64(), may_change) else {
            return Ok(());
        };
        for (number, event) in plan.events.iter().enumerate() {
            kernel
                .set_policy(number, policy(event, rate))
                .context("cannot change the rate, as --max-overhead asks for")?;
        }
        self.changes.push((self.began.elapsed(), rate));
        Ok(())
    }

    /// A sentence for the summary, when sampling has just ended.
    pub(super) fn finding(
        &self,
        plan: &Plan,
        kernel: &Kernel,
        tables: Option<&TableLoader<Tables>>,
    ) -> Finding {
        let spent = Totals::look(kernel, tables, self.interrupt).since(&self.begin);
        let elapsed = self.began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let percent = |time: Duration| format!("{:.2}%", time.as_secs_f64() * 100.0 / elapsed);
        let over = spent.all().as_secs_f64() > self.budget * elapsed;
        let verdict = match over && self.control.rate() == floor(&plan.events) {
            true => ", more than allowed at the lowest rate there is",
            false => "",
        };
        Finding::new(
            "overhead",
            format!(
                "{} of a CPU of {:.2}% allowed{verdict}: {} in the kernel, {} for interrupts of {:.1} µs, {} here; {}",
                percent(spent.all()),
                self.budget * 100.0,
                percent(spent.kernel),
                percent(spent.interrupts),
                self.interrupt.as_secs_f64() * 1e6,
                percent(spent.own),
                self.rates(&plan.events),
            ),
        )
    }

    /// Every rate, and since when.
    fn rates(&self, events: &[Event]) -> String {
        let shown = |rate: f64| match events {
            [event] => match event.sampling {
                Sampling::Frequency(hz) => format!("{:.1} Hz", hz as f64 * rate),
                Sampling::Period(period) => format!("one in {:.0}", period as f64 / rate),
            },
            _ => format!("{:.1}% of the rates", rate * 100.0),
        };
        let all = self.changes.iter().map(|(at, rate)| {
            let rate = shown(*rate);
            format!("{rate} from {:.0} s", at.as_secs_f64())
        });
        let mut all: Vec<String> = std::iter::once(shown(1.0)).chain(all).collect();
        if all.len() > MOST_CHANGES {
            let last = all.split_off(all.len() - MOST_CHANGES / 2);
            let left_out = all.len() - MOST_CHANGES / 2;
            all.truncate(MOST_CHANGES / 2);
            all.push(format!("{left_out} more"));
            all.extend(last);
        }
        all.join(", ")
    }
}

/// The longest period of an event that has one, at this share of the rates, in seconds.
fn longest_period(events: &[Event], rate: f64) -> f64 {
    let of_event = |event: &Event| match event.sampling {
        Sampling::Frequency(hz) => 1.0 / hz as f64,
        Sampling::Period(ns) if event.perf_event().is_clock() => ns as f64 / 1e9,
        Sampling::Period(_) => 0.0,
    };
    events.iter().map(of_event).fold(0.0, f64::max) / rate
}

/// The least share of the rates at which none of the events is sampled too seldom.
fn floor(events: &[Event]) -> f64 {
    let of_event = |event: &Event| match event.sampling {
        Sampling::Frequency(hz) => LEAST_HZ / hz as f64,
        Sampling::Period(ns) if event.perf_event().is_clock() => LEAST_HZ * ns as f64 / 1e9,
        Sampling::Period(_) => 1.0 / RAREST,
    };
    let floors = events.iter().map(of_event);
    floors.fold(0.0, f64::max).min(1.0)
}
