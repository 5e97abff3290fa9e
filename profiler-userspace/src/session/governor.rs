//! Keeps a recording to what it may cost.
//!
//! In: `--max-overhead`, and each second what the kernel half, its interrupts and this process took. Out: another rate of samples,
//! and of the waits that are looked at, where [`crate::overhead`] says so; and what to say of it at the end. What a recording takes
//! before its first sample, and for naming after its last, is not in it.

use super::attach::policy;
use super::rates::{WaitRate, floor, longest_period, share};
use crate::kernel::Kernel;
use crate::kernel::Tables;
use crate::overhead::{Control, Spent};
use crate::plan::{Event, Plan, Sampling};
use crate::probe::Probe;
use crate::report::findings::Finding;
use crate::unwind::loader::TableLoader;
use crate::usage::cpu_time;
use anyhow::{Context as _, Result};
use profiler_common::abi::{Class, Counter};
use std::time::{Duration, Instant};

/// How long a step is.
const STEP: Duration = Duration::from_secs(1);

/// An interrupt takes so long where that cannot be measured: that of a virtual machine.
const INTERRUPT: Duration = Duration::from_micros(16);

/// A switch takes so long until it is known whether a wait is looked at, which is measured from then on only.
const SWITCH: Duration = Duration::from_nanos(250);

/// The part of the budget that reading unwind tables may take: samples need them, but only so much at once.
const TABLES: f64 = 0.5;

/// A rate stays for so many periods at least: the part of one that is left out at a change is then a small part of all.
const FEWEST_PERIODS: f64 = 10.0;

/// So many changes are listed, unless more is asked for.
const MOST_CHANGES: usize = 8;

/// So many of them are the first ones, if there are more; the others are the last.
const FIRST_CHANGES: usize = 4;

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
    /// How many changes in their midst are not listed.
    unlisted: usize,
}

/// Costs since the recording began, or since some time before.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    kernel: Duration,
    interrupts: Duration,
    switches: Duration,
    /// Of this process, all threads.
    own: Duration,
    /// The part of that which goes into unwind tables.
    tables: Duration,
}

impl Totals {
    fn look(
        plan: &Plan,
        kernel: &Kernel,
        tables: Option<&TableLoader<Tables>>,
        interrupt: Duration,
    ) -> Self {
        let (mut ns, mut interrupts, mut switches) = (0, 0, 0);
        for (event, numbers) in plan.events.iter().zip(plan.kernel_events()) {
            for counters in numbers.map(|number| kernel.counters(number)) {
                ns += counters.get(Counter::RunTime);
                let seen = [
                    Counter::Entered,
                    Counter::OtherSwitches,
                    // A draw takes as long again.
                    Counter::FilteredSwitchSample,
                ];
                switches += seen
                    .map(|counter| counters.get(counter))
                    .iter()
                    .sum::<u64>();
                if event.probe.is_on_event() {
                    interrupts += counters.sum(Class::Fired);
                }
            }
        }
        Self {
            kernel: Duration::from_nanos(ns),
            interrupts: interrupt.mul_f64(interrupts as f64),
            switches: SWITCH.mul_f64(switches as f64),
            own: cpu_time(),
            tables: tables.map_or(Duration::ZERO, TableLoader::spent),
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            kernel: self.kernel.saturating_sub(before.kernel),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            switches: self.switches.saturating_sub(before.switches),
            own: self.own.saturating_sub(before.own),
            tables: self.tables.saturating_sub(before.tables),
        }
    }

    fn all(&self) -> Duration {
        self.kernel + self.interrupts + self.switches + self.own
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
        let now = Totals::look(plan, kernel, tables, interrupt);
        Some(Self {
            budget,
            control: Control::new(budget, floor(&plan.events)),
            interrupt,
            began: Instant::now(),
            begin: now,
            last: (Instant::now(), now),
            changes: Vec::new(),
            unlisted: 0,
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
        let now = Totals::look(plan, kernel, tables, self.interrupt);
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
            let share = share(event, &plan.events, rate);
            if let Some(waits) = event.probe.waits() {
                let rate = WaitRate::at(waits, share);
                kernel.sample_waits(rate.period, rate.first);
                continue;
            }
            kernel
                .set_policy(number, policy(event, share))
                .context("cannot change the rate, as --max-overhead asks for")?;
        }
        self.note(rate, plan.verbosity.verbose > 0);
        Ok(())
    }

    /// A sentence for the summary, when sampling has just ended.
    pub(super) fn finding(
        &self,
        plan: &Plan,
        kernel: &Kernel,
        tables: Option<&TableLoader<Tables>>,
    ) -> Finding {
        let spent = Totals::look(plan, kernel, tables, self.interrupt).since(&self.begin);
        let elapsed = self.began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let percent = |time: Duration| format!("{:.2}%", time.as_secs_f64() * 100.0 / elapsed);
        let over = spent.all().as_secs_f64() > self.budget * elapsed;
        let verdict = match over && self.control.rate() == floor(&plan.events) {
            true => ", more than allowed at the lowest rate there is",
            false => "",
        };
        let micros = |each: Duration| format!("{:.1} µs", each.as_secs_f64() * 1e6);
        let interrupts = plan.has(Probe::is_on_event).then(|| {
            let (all, each) = (percent(spent.interrupts), micros(self.interrupt));
            format!(", {all} for interrupts of {each}")
        });
        let switches = plan.waits().map(|_| {
            let (all, each) = (percent(spent.switches), micros(SWITCH));
            format!(", {all} for switches of {each}")
        });
        Finding::new(
            "overhead",
            format!(
                "{} of a CPU of {:.2}% allowed{verdict}: {} in the kernel{}{}, {} here; {}",
                percent(spent.all()),
                self.budget * 100.0,
                percent(spent.kernel),
                interrupts.unwrap_or_default(),
                switches.unwrap_or_default(),
                percent(spent.own),
                self.rates(&plan.events),
            ),
        )
    }

    /// Notes a change. Of many, those in the midst are only counted, unless `all` are wanted: a recording may last for months.
    fn note(&mut self, rate: f64, all: bool) {
        self.changes.push((self.began.elapsed(), rate));
        if !all && self.changes.len() > MOST_CHANGES {
            self.changes.remove(FIRST_CHANGES);
            self.unlisted += 1;
        }
    }

    /// Every rate, and since when.
    fn rates(&self, events: &[Event]) -> String {
        let shown = |rate: f64| {
            let each = events.iter().map(|event| {
                let share = share(event, events, rate);
                match (event.probe.waits(), event.sampling) {
                    (Some(waits), _) => WaitRate::at(waits, share).to_string(),
                    (None, Sampling::Frequency(hz)) => format!("{:.1} Hz", hz as f64 * share),
                    (None, Sampling::Period(period)) => {
                        format!("one in {:.0}", period as f64 / share)
                    }
                }
            });
            each.collect::<Vec<_>>().join(" and ")
        };
        let changes = self.changes.iter().map(|(at, rate)| {
            let rate = shown(*rate);
            format!("{rate} from {:.0} s", at.as_secs_f64())
        });
        let mut all: Vec<String> = std::iter::once(shown(1.0)).chain(changes).collect();
        if self.unlisted > 0 {
            all.insert(FIRST_CHANGES + 1, format!("{} more", self.unlisted));
        }
        all.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::rates::tests::event;

    #[test]
    fn many_changes_are_counted_in_their_midst() {
        let now = Instant::now();
        let mut governor = Governor {
            budget: 0.01,
            control: Control::new(0.01, 0.01),
            interrupt: INTERRUPT,
            began: now,
            begin: Totals::default(),
            last: (now, Totals::default()),
            changes: Vec::new(),
            unlisted: 0,
        };
        let events = [event(Probe::OnCpu, 100)];
        for change in 1..=20 {
            governor.note(f64::from(change) / 100.0, false);
        }
        let listed = "100.0 Hz, 1.0 Hz from 0 s, 2.0 Hz from 0 s, 3.0 Hz from 0 s, 4.0 Hz from 0 s, 12 more, \
                      17.0 Hz from 0 s, 18.0 Hz from 0 s, 19.0 Hz from 0 s, 20.0 Hz from 0 s";
        assert_eq!(governor.rates(&events), listed);
        governor.note(0.21, true);
        assert!(governor.rates(&events).contains("12 more, 17.0 Hz"));
    }
}
