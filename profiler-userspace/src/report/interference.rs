//! Time in which an event was not sampled, because another event's program was at work.
//!
//! In: the events, and how long the programs of each ran. Out: a sentence for the balance.
//!
//! On each CPU the kernel runs one perf event's program at a time, and neither runs nor counts another's that fires
//! meanwhile (`bpf_overflow_handler` in `kernel/events/core.c`, `bpf_prog_active`). What the kernel counts one by one
//! never happens within a program: that may not sleep, and its faults are not counted. A clock's interrupt comes where
//! interrupts are on, which may be so in the programs of faults; in those of switches and of other clocks it waits.
//! Kernels since the spring of 2026 have interrupts off there, too (`perf_swevent_event`): so a clock's firings are
//! compared with those that its period promises. Performance counters interrupt all of these, but not each other.

use super::findings::Finding;
use crate::plan::{Event, PerfEvent, PerfEventKind, Sampling};
use crate::text::number::{counted, seconds};
use profiler_common::abi::{Class, Counter, Counters};
use std::time::Duration;

/// Of how much of a recording's time there is something to say where no rate says how many samples that would be: one
/// part in so many.
const WORTH_ONE_IN: u32 = 1000;

/// The finding on the event of this number, where the programs of others took long. `counters`: of
/// all events; `watched`: for how long, on how many CPUs.
pub(crate) fn within_others(
    events: &[Event],
    number: usize,
    counters: &[Counters],
    (watched, cpus): (Duration, usize),
) -> Option<Finding> {
    let event = events.get(number)?;
    // At a rate that varies, nothing says how many firings there should have been.
    if !event.probe.is_on_event() || event.varies {
        return None;
    }
    let perf_event = event.perf_event();
    let others = events.iter().zip(counters).enumerate();
    let others = others.filter(|(other, (event, _))| {
        *other != number && event.probe.is_on_event() && interrupts(perf_event, event.perf_event())
    });
    let (names, times): (Vec<String>, Vec<Duration>) = others
        .map(|(_, (event, counters))| {
            let time = Duration::from_nanos(counters.get(Counter::RunTime));
            (event.name(), time)
        })
        .unzip();
    let time: Duration = times.into_iter().sum();
    let per_second = match event.sampling {
        Sampling::Frequency(hz) => Some(hz as f64),
        Sampling::Period(ns) if perf_event.is_clock() => Some(1e9 / ns as f64),
        Sampling::Period(_) => None,
    };
    let tail = match per_second {
        Some(rate) => {
            let most = if perf_event.is_clock() {
                missing(rate * watched.as_secs_f64(), cpus, counters.get(number)?)
            } else {
                f64::INFINITY
            };
            let samples = (time.as_secs_f64() * rate).min(most).round();
            if samples < 1.0 {
                return None;
            }
            format!(": up to about {}", counted(samples as u64, "sample"))
        }
        None if time * WORTH_ONE_IN < watched => return None,
        None => String::new(),
    };
    Some(Finding::note(format!(
        "{} was not sampled for {} while {} was handled{tail}",
        perf_event.name,
        seconds(time),
        names.join(", "),
    )))
}

/// How many firings fell out of those that a clock should have had on each CPU; the first comes up to a period late.
fn missing(on_each: f64, cpus: usize, counters: &Counters) -> f64 {
    let promised = (on_each - 1.0) * cpus as f64;
    (promised - counters.sum(Class::Fired) as f64).max(0.0)
}

/// Whether `event` may fire while the program of `other` is at work.
fn interrupts(perf_event: &PerfEvent, other: &PerfEvent) -> bool {
    if perf_event.kind == PerfEventKind::Software {
        perf_event.is_clock() && other.is_fault()
    } else {
        // Counters that overflow together are handled one after the other.
        other.kind == PerfEventKind::Software
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PerfEventChoice;
    use crate::probe::{Probe, Tracepoint};

    const FAULTS: PerfEvent = PerfEvent::new("page-faults", PerfEventKind::Software, 2);
    const SWITCHES: PerfEvent = PerfEvent::new("context-switches", PerfEventKind::Software, 3);

    fn event(perf_event: PerfEvent, sampling: Sampling) -> Event {
        Event {
            probe: Probe::OnCpu,
            perf_event: PerfEventChoice::Named(perf_event),
            sampling,
            varies: false,
            outputs: Vec::new(),
        }
    }

    /// For ten seconds on two CPUs, with so long in each event's programs.
    fn said_of(events: &[Event], number: usize, milliseconds: u64, fired: u64) -> Option<String> {
        let mut counters = Counters::EMPTY;
        counters.counters[Counter::RunTime as usize] = milliseconds * 1_000_000;
        counters.counters[Counter::Fired as usize] = fired;
        let counters = vec![counters; events.len()];
        let finding = within_others(events, number, &counters, (Duration::from_secs(10), 2))?;
        Some(finding.text)
    }

    /// Where a clock has fired far less often than it should.
    fn said(events: &[Event], number: usize, milliseconds: u64) -> Option<String> {
        said_of(events, number, milliseconds, 0)
    }

    #[test]
    fn a_clock_that_fired_in_full_missed_nothing() {
        let events = [
            event(PerfEvent::CPU_CLOCK, Sampling::Frequency(100)),
            event(FAULTS, Sampling::Period(1)),
        ];
        for (fired, missed) in [
            (2000, None),
            (1998, None),
            (1990, Some("up to about 8 samples")),
            (1900, Some("up to about 50 samples")),
        ] {
            let said = said_of(&events, 0, 500, fired);
            let expected =
                missed.is_none_or(|missed| said.as_ref().is_some_and(|said| said.contains(missed)));
            assert!(
                expected && said.is_some() == missed.is_some(),
                "{fired}: {said:?}"
            );
        }
    }

    #[test]
    fn only_page_faults_suppress_clocks_and_all_programs_suppress_counters() {
        let every = Sampling::Period(1);
        let events = [
            event(PerfEvent::CPU_CLOCK, Sampling::Frequency(100)),
            event(FAULTS, every),
            event(SWITCHES, every),
            event(PerfEvent::CYCLES, Sampling::Frequency(1000)),
        ];
        let clock = said(&events, 0, 500).unwrap();
        assert_eq!(
            clock,
            "cpu-clock was not sampled for 0.500 s while page-faults was handled: up to about 50 samples"
        );
        let cycles = said(&events, 3, 500).unwrap();
        assert!(
            cycles.contains("1.500 s while cpu-clock, page-faults, context-switches was handled")
                && cycles.contains("up to about 1,500 samples"),
            "{cycles}"
        );
        // Events that are counted one by one do not happen in a program.
        assert_eq!((said(&events, 1, 500), said(&events, 2, 500)), (None, None));
        // Less than half of a sample is not worth a sentence.
        assert_eq!(said(&events, 0, 4), None);
        assert_eq!(said(&events[..1], 0, 500), None);
        let counters = [events[3].clone(), events[3].clone()];
        assert_eq!(said(&counters, 0, 500), None);
    }

    #[test]
    fn tracepoint_programs_suppress_no_samples() {
        let tracepoint = Event {
            probe: Probe::Tracepoint(Tracepoint {
                category: "sched".to_owned(),
                name: "sched_switch".to_owned(),
            }),
            ..event(FAULTS, Sampling::Period(1))
        };
        let clock = event(PerfEvent::CPU_CLOCK, Sampling::Period(1_000_000));
        assert_eq!(said(&[clock, tracepoint], 0, 500), None);
    }

    #[test]
    fn without_a_rate_interference_is_reported_where_it_matters() {
        let events = [
            event(PerfEvent::CYCLES, Sampling::Period(1_000_000)),
            event(FAULTS, Sampling::Period(1)),
        ];
        assert_eq!(said(&events, 0, 9), None);
        let sentence = said(&events, 0, 11).unwrap();
        assert!(
            sentence.starts_with("cycles was not sampled for"),
            "{sentence}"
        );
    }
}
