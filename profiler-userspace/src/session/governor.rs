//! Keeps a recording to what it may cost.
//!
//! In: `--max-overhead`, and each second what the kernel half, its interrupts and this process took. Out: another rate of samples,
//! and of the waits that are looked at, where [`crate::overhead`] says so; and what to say of it at the end. What a recording takes
//! before its first sample, and for naming after its last, is not in it.
//!
//! With the rate of an event goes what the kernel half does at it, and a little for each firing that was recorded. With none of them go
//! unwind tables and names, which programs need that were not seen before and which have limits of their own, switches, and the rest of
//! what is done here.

use super::attach::policy;
use super::rates::{WaitRate, floor, period};
use crate::kernel::Kernel;
use crate::kernel::Tables;
use crate::overhead::{Control, RATES_SHARE, Spent};
use crate::pipeline::window::Pipeline;
use crate::plan::{Event, Plan, Sampling};
use crate::probe::Probe;
use crate::report::findings::Finding;
use crate::text::number::counted;
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

/// The most that one recorded firing takes here: to be drained, put together and written. All else goes with programs and windows.
const PER_FIRING: Duration = Duration::from_micros(10);

/// The part of the budget that reading unwind tables may take: samples need them, but only so much at once.
const TABLES_SHARE: f64 = 0.3;

/// The part of the budget that looking for names may take while sampling goes on.
const NAMES_SHARE: f64 = 0.2;

/// A rate stays for so many periods at least: the part of one that is left out at a change is then a small part of all.
const FEWEST_PERIODS: f64 = 10.0;

/// So many changes are listed, unless more is asked for.
const MAX_CHANGES: usize = 8;

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
    /// When a rate changed, and to what shares of those asked for.
    changes: Vec<(Duration, Vec<f64>)>,
    /// How many changes in their midst are not listed.
    unlisted: usize,
    /// When the rate of each event changed last.
    changed: Vec<Instant>,
}

/// Costs since the recording began, or since some time before.
#[derive(Clone, Debug, Default)]
struct Totals {
    /// Of each event of the plan.
    events: Vec<OfEvent>,
    switches: Duration,
    /// Of this process, all threads.
    own: Duration,
    /// The part of that which goes into unwind tables and names.
    apart: Duration,
}

/// Costs of one event.
#[derive(Clone, Copy, Debug, Default)]
struct OfEvent {
    kernel: Duration,
    interrupts: Duration,
    recorded: u64,
}

/// Parts that work beside the kernel half.
#[derive(Clone, Copy)]
pub(super) struct Workers<'a> {
    /// None where stacks are walked by frame pointers alone.
    pub(super) tables: Option<&'a TableLoader<Tables>>,
    pub(super) pipeline: &'a Pipeline,
}

impl Workers<'_> {
    /// The CPU time that went into unwind tables and names.
    fn spent(&self) -> Duration {
        let tables = self.tables.map_or(Duration::ZERO, TableLoader::spent);
        tables + self.pipeline.spent_on_names()
    }
}

impl Totals {
    fn look(plan: &Plan, kernel: &Kernel, workers: Workers<'_>, interrupt: Duration) -> Self {
        let mut switches = 0;
        let events = plan.events.iter().zip(plan.kernel_events());
        let events = events.map(|(event, numbers)| {
            let mut of_event = OfEvent::default();
            for counters in numbers.map(|number| kernel.counters(number)) {
                of_event.kernel += Duration::from_nanos(counters.get(Counter::RunTime));
                of_event.recorded += counters.sum(Class::Recorded);
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
                    of_event.interrupts += interrupt.mul_f64(counters.sum(Class::Fired) as f64);
                }
            }
            of_event
        });
        Self {
            events: events.collect(),
            switches: SWITCH.mul_f64(switches as f64),
            own: cpu_time(),
            apart: workers.spent(),
        }
    }

    fn since(&self, before: &Self) -> Self {
        let events = self.events.iter().zip(&before.events);
        let events = events.map(|(now, before)| OfEvent {
            kernel: now.kernel.saturating_sub(before.kernel),
            interrupts: now.interrupts.saturating_sub(before.interrupts),
            recorded: now.recorded.saturating_sub(before.recorded),
        });
        Self {
            events: events.collect(),
            switches: self.switches.saturating_sub(before.switches),
            own: self.own.saturating_sub(before.own),
            apart: self.apart.saturating_sub(before.apart),
        }
    }

    fn kernel(&self) -> Duration {
        self.events.iter().map(|event| event.kernel).sum()
    }

    fn interrupts(&self) -> Duration {
        self.events.iter().map(|event| event.interrupts).sum()
    }

    fn all(&self) -> Duration {
        self.kernel() + self.interrupts() + self.switches + self.own
    }

    /// Costs that go with the rate of each event, in seconds; and those that go with none.
    fn divided(&self) -> (Vec<f64>, f64) {
        let shared = self.own.saturating_sub(self.apart).as_secs_f64();
        let recorded: u64 = self.events.iter().map(|event| event.recorded).sum();
        let each = self.events.iter().map(|event| {
            let part = shared * event.recorded as f64 / recorded.max(1) as f64;
            let most = PER_FIRING.as_secs_f64() * event.recorded as f64;
            (event.kernel + event.interrupts).as_secs_f64() + part.min(most)
        });
        let each: Vec<f64> = each.collect();
        let fixed = self.all().as_secs_f64() - each.iter().sum::<f64>();
        (each, fixed.max(0.0))
    }
}

impl Governor {
    /// From now on, if the plan has a limit.
    pub(super) fn begin(plan: &Plan, kernel: &Kernel, workers: Workers<'_>) -> Option<Self> {
        let budget = plan.max_overhead?;
        let interrupt = Kernel::interrupt_cost().unwrap_or(INTERRUPT);
        if let Some(tables) = workers.tables {
            tables.limit(budget * TABLES_SHARE);
        }
        workers.pipeline.limit_names(budget * NAMES_SHARE);
        let (now, totals) = (
            Instant::now(),
            Totals::look(plan, kernel, workers, interrupt),
        );
        Some(Self {
            budget,
            control: Control::new(budget, plan.events.iter().map(floor)),
            interrupt,
            began: now,
            begin: totals.clone(),
            last: (now, totals),
            changes: Vec::new(),
            unlisted: 0,
            changed: vec![now; plan.events.len()],
        })
    }

    /// Sets other rates, if a step is over and its cost asks for it.
    pub(super) fn follow(
        &mut self,
        plan: &Plan,
        kernel: &mut Kernel,
        workers: Workers<'_>,
    ) -> Result<()> {
        let step = self.last.0.elapsed();
        if step < STEP {
            return Ok(());
        }
        let now = Totals::look(plan, kernel, workers, self.interrupt);
        let (each, fixed) = now.since(&self.last.1).divided();
        self.last = (Instant::now(), now);
        let before = self.control.rates();
        let spent = (plan.events.iter().enumerate()).map(|(number, event)| Spent {
            seconds: each[number],
            may_change: self.changed[number].elapsed().as_secs_f64()
                >= FEWEST_PERIODS * period(event, before[number]),
        });
        let spent: Vec<Spent> = spent.collect();
        if !self.control.step(&spent, fixed, step.as_secs_f64()) {
            return Ok(());
        }
        let rates = self.control.rates();
        for (number, event) in plan.events.iter().enumerate() {
            let share = rates[number];
            if share == before[number] {
                continue;
            }
            self.changed[number] = Instant::now();
            if let Some(waits) = event.probe.waits() {
                let rate = WaitRate::at(waits, share);
                kernel.sample_waits(rate.period, rate.first);
                continue;
            }
            kernel
                .set_policy(number, policy(event, share))
                .context("cannot change the rate, as --max-overhead asks for")?;
        }
        self.note(rates, plan.verbosity.verbose > 0);
        Ok(())
    }

    /// A sentence for the summary, when sampling has just ended.
    pub(super) fn finding(&self, plan: &Plan, kernel: &Kernel, workers: Workers<'_>) -> Finding {
        let spent = Totals::look(plan, kernel, workers, self.interrupt).since(&self.begin);
        let elapsed = self.began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let percent = |time: Duration| format!("{:.2}%", time.as_secs_f64() * 100.0 / elapsed);
        let is_over = spent.all().as_secs_f64() > self.budget * elapsed;
        let (_, fixed) = spent.divided();
        let verdict = match is_over {
            true if self.control.is_at_its_least() => {
                ", more than allowed at the lowest rate there is"
            }
            true if fixed > self.budget * elapsed * (1.0 - RATES_SHARE) => {
                ", more than allowed: lower rates would save little"
            }
            _ => "",
        };
        let micros = |each: Duration| format!("{:.1} µs", each.as_secs_f64() * 1e6);
        let interrupts = plan.has(Probe::is_on_event).then(|| {
            let (all, each) = (percent(spent.interrupts()), micros(self.interrupt));
            format!(", {all} for interrupts of {each}")
        });
        let switches = plan.waits().map(|_| {
            let (all, each) = (percent(spent.switches), micros(SWITCH));
            format!(", {all} for switches of {each}")
        });
        let names = match workers.pipeline.names_put_off() {
            0 => String::new(),
            count => format!(
                "; {} had no name yet in a window, for looking for names had taken its part",
                counted(count, "place")
            ),
        };
        Finding::new(
            "overhead",
            format!(
                "{} of a CPU of {:.2}% allowed{verdict}: {} in the kernel{}{}, {} here, {} of that for new programs' tables and \
                 names; {}{names}",
                percent(spent.all()),
                self.budget * 100.0,
                percent(spent.kernel()),
                interrupts.unwrap_or_default(),
                switches.unwrap_or_default(),
                percent(spent.own),
                percent(spent.apart),
                self.rates(&plan.events),
            ),
        )
    }

    /// Notes a change. Of many, those in the midst are only counted, unless `all` are wanted: a recording may last for months.
    fn note(&mut self, rates: Vec<f64>, all: bool) {
        self.changes.push((self.began.elapsed(), rates));
        if !all && self.changes.len() > MAX_CHANGES {
            self.changes.remove(FIRST_CHANGES);
            self.unlisted += 1;
        }
    }

    /// Every rate, and since when.
    fn rates(&self, events: &[Event]) -> String {
        let shown = |rates: &[f64]| {
            let each = events.iter().zip(rates).map(|(event, &share)| {
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
        let changes = self.changes.iter().map(|(at, rates)| {
            let rates = shown(rates);
            format!("{rates} from {:.0} s", at.as_secs_f64())
        });
        let full = vec![1.0; events.len()];
        let mut all: Vec<String> = std::iter::once(shown(&full)).chain(changes).collect();
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
            control: Control::new(0.01, [0.01]),
            interrupt: INTERRUPT,
            began: now,
            begin: Totals::default(),
            last: (now, Totals::default()),
            changes: Vec::new(),
            unlisted: 0,
            changed: vec![now],
        };
        let events = [event(Probe::OnCpu, 100)];
        for change in 1..=20 {
            governor.note(vec![f64::from(change) / 100.0], false);
        }
        let listed = "100.0 Hz, 1.0 Hz from 0 s, 2.0 Hz from 0 s, 3.0 Hz from 0 s, 4.0 Hz from 0 s, 12 more, \
                      17.0 Hz from 0 s, 18.0 Hz from 0 s, 19.0 Hz from 0 s, 20.0 Hz from 0 s";
        assert_eq!(governor.rates(&events), listed);
        governor.note(vec![0.21], true);
        assert!(governor.rates(&events).contains("12 more, 17.0 Hz"));
    }
}
