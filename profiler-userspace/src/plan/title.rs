//! The title of a graph without --title: what was sampled, how, for how long, and where.
//!
//! In: the plan, and what only its recording knows. Out: text with any characters that the names in
//! it hold. Never: escaped for a format; that is the output's business.

use std::borrow::Cow;
use std::time::Duration;

use super::{Event, PerfEvent, Plan, Sampling, Target};
use crate::probe::{ThreadKind, Waits};
use profiler_common::abi::TaskState;

/// Facts that only the recording knows.
#[derive(Clone, Copy)]
pub struct TitleFacts<'a> {
    /// How long was really recorded; none where that stands elsewhere.
    pub elapsed: Option<Duration>,
    /// The machine's name.
    pub host: &'a str,
    /// The `comm` of a process or thread by ID, where it is known.
    pub comm: &'a dyn Fn(u32) -> Option<String>,
}

/// More IDs than this are counted instead of listed, so that a title fits above its graph.
const LISTED_IDS: usize = 3;

/// Longer command lines are cut, in characters, for the same reason.
const COMMAND_LENGTH: usize = 40;

impl Plan {
    /// The title for a graph of one of the plan's events without --title, such as
    /// `on-CPU: nginx (PID 123), cpu-clock 99 Hz, 10 s, host web1`.
    pub fn default_title(&self, event: &Event, facts: &TitleFacts<'_>) -> String {
        let (probe, perf_event) = (&event.probe, event.perf_event());
        let subject = match probe.subject() {
            Some(subject) => subject,
            None if perf_event.is_cpu_time() => "on-CPU".to_owned(),
            None => perf_event.name.to_string(),
        };
        let mut parts = vec![format!("{subject}: {}", self.subject(facts))];
        if let Some(cpus) = &self.cpus {
            let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
            parts.push(format!("{noun} {}", ranges(cpus)));
        }
        match probe.waits() {
            Some(waits) if !probe.is_on_event() => {
                parts.extend(narrowed(waits));
                if event.varies {
                    parts.push("estimated from fewer waits where these are many".to_owned());
                }
            }
            _ if probe.is_on_event() => {
                let or_less = if event.varies { " or less" } else { "" };
                parts.push(rate(event.sampling, perf_event) + or_less);
            }
            _ => parts.push("every one".to_owned()),
        }
        parts.extend(facts.elapsed.map(seconds));
        parts.push(format!("host {}", facts.host));
        parts.join(", ")
    }

    fn subject(&self, facts: &TitleFacts<'_>) -> String {
        let target = match &self.target {
            Target::All => "whole machine".to_owned(),
            Target::Processes(pids) => named("PID", pids, facts.comm),
            Target::Threads(tids) => named("TID", tids, facts.comm),
            Target::Matching(wanted) => format!("each process that {wanted}"),
            Target::Cgroups(target) => target.to_string(),
            Target::Launched => return self.command_line().unwrap_or_default(),
        };
        match self.command_line() {
            Some(command) => format!("{target} during {command}"),
            None => target,
        }
    }

    fn command_line(&self) -> Option<String> {
        let command = self.launch.as_ref()?;
        let words: Vec<Cow<'_, str>> = command.iter().map(|word| word.to_string_lossy()).collect();
        let line = words.join(" ");
        Some(match line.char_indices().nth(COMMAND_LENGTH) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line,
        })
    }
}

/// `nginx (PID 1)`, `nginx (PIDs 1, 2)` where all have that name, otherwise just the IDs.
fn named(noun: &str, ids: &[u32], comm: &dyn Fn(u32) -> Option<String>) -> String {
    let mut listed: Vec<String> = ids.iter().take(LISTED_IDS).map(u32::to_string).collect();
    if ids.len() > LISTED_IDS {
        listed.push(format!("{} more", ids.len() - LISTED_IDS));
    }
    let plural = if ids.len() == 1 { "" } else { "s" };
    let listed = format!("{noun}{plural} {}", listed.join(", "));

    let mut names = ids.iter().map(|&id| comm(id));
    let first = names.next().flatten();
    match first {
        Some(name) if names.all(|other| other.as_ref() == Some(&name)) => {
            format!("{name} ({listed})")
        }
        _ => listed,
    }
}

/// How often, with the event's name where the title does not begin with it.
fn rate(sampling: Sampling, perf_event: &PerfEvent) -> String {
    let name = &perf_event.name;
    match sampling {
        Sampling::Frequency(hz) if perf_event.is_cpu_time() => format!("{name} {hz} Hz"),
        Sampling::Frequency(hz) => format!("{hz} Hz"),
        Sampling::Period(ns) if perf_event.is_clock() => format!("{name} every {ns} ns"),
        Sampling::Period(period) if perf_event.is_cpu_time() => format!("every {period} {name}"),
        Sampling::Period(1) => "every one".to_owned(),
        Sampling::Period(period) => format!("one in {period}"),
    }
}

/// Waits that were left out of the times off the CPU, in few words.
fn narrowed(waits: &Waits) -> Vec<String> {
    let mut parts = Vec::new();
    if waits.states != Waits::all_states(waits.wakers) {
        let of = TaskState::ALL
            .into_iter()
            .filter(|&state| waits.states.has(state));
        parts.push(format!(
            "state {}",
            of.map(TaskState::letter).collect::<String>()
        ));
    }
    match waits.threads {
        ThreadKind::Both => {}
        ThreadKind::User => parts.push("user threads".to_owned()),
        ThreadKind::Kernel => parts.push("kernel threads".to_owned()),
    }
    if waits.shortest > Duration::ZERO {
        parts.push(format!("at least {} µs each", waits.shortest.as_micros()));
    }
    if waits.longest < Duration::MAX {
        parts.push(format!("at most {} µs each", waits.longest.as_micros()));
    }
    if !waits.wait_sample_period.is_zero() {
        parts.push(format!(
            "estimated from about one wait of each thread in {:?}",
            waits.wait_sample_period
        ));
    }
    parts
}

/// `10 s`, `0.5 s`; a tenth is as exact as a title needs to be.
fn seconds(elapsed: Duration) -> String {
    let tenths = format!("{:.1}", elapsed.as_secs_f64());
    format!("{} s", tenths.strip_suffix(".0").unwrap_or(&tenths))
}

/// `0-3,8`: the notation in which CPUs are asked for.
fn ranges(sorted: &[u32]) -> String {
    sorted
        .chunk_by(|left, right| left + 1 == *right)
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            [] | [_] => run.iter().map(u32::to_string).collect(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PerfEventKind;
    use crate::probe::{Probe, Wakers};
    use profiler_common::abi::States;

    fn title(plan: &Plan, perf_event: &PerfEvent, elapsed_ms: u64) -> String {
        let facts = TitleFacts {
            elapsed: Some(Duration::from_millis(elapsed_ms)),
            host: "web1",
            comm: &|id| match id {
                100..200 => Some("nginx".to_owned()),
                200 => Some("perl".to_owned()),
                _ => None,
            },
        };
        let settled = plan.settled(perf_event);
        settled.default_title(&settled.events[0], &facts)
    }

    const HZ: Sampling = Sampling::Frequency(99);

    #[test]
    fn a_title_names_processes_that_share_one_name() {
        for (target, expected) in [
            (Target::Processes(vec![123]), "nginx (PID 123)"),
            (Target::Processes(vec![7]), "PID 7"),
            (Target::Processes(vec![101, 102]), "nginx (PIDs 101, 102)"),
            (Target::Processes(vec![101, 200]), "PIDs 101, 200"),
            (
                Target::Threads(vec![101, 102, 103, 104, 105]),
                "nginx (TIDs 101, 102, 103, 2 more)",
            ),
            (Target::All, "whole machine"),
        ] {
            let title = title(&Plan::usual(target, HZ), &PerfEvent::CPU_CLOCK, 10_003);
            assert_eq!(
                title,
                format!("on-CPU: {expected}, cpu-clock 99 Hz, 10 s, host web1")
            );
        }
    }

    #[test]
    fn a_title_names_the_event_of_a_rate_or_period() {
        let faults = PerfEvent::new("page-faults", PerfEventKind::Software, 2);
        let misses = PerfEvent::new("cache-misses", PerfEventKind::Hardware, 3);
        for (perf_event, sampling, subject, rate) in [
            (&PerfEvent::CYCLES, HZ, "on-CPU", "cycles 99 Hz"),
            (
                &PerfEvent::CYCLES,
                Sampling::Period(1_000_000),
                "on-CPU",
                "every 1000000 cycles",
            ),
            (
                &PerfEvent::CPU_CLOCK,
                Sampling::Period(1_000_000),
                "on-CPU",
                "cpu-clock every 1000000 ns",
            ),
            (&misses, HZ, "cache-misses", "99 Hz"),
            (&faults, Sampling::Period(1), "page-faults", "every one"),
            (&faults, Sampling::Period(10), "page-faults", "one in 10"),
        ] {
            let title = title(&Plan::usual(Target::All, sampling), perf_event, 540);
            assert_eq!(
                title,
                format!("{subject}: whole machine, {rate}, 0.5 s, host web1")
            );
        }
    }

    #[test]
    fn an_off_cpu_title_names_its_filters() {
        for (waits, expected) in [
            (Waits::default(), ""),
            (
                Waits {
                    states: States(0)
                        .with(TaskState::Sleeping)
                        .with(TaskState::DiskSleep),
                    shortest: Duration::from_millis(1),
                    longest: Duration::from_secs(1),
                    wait_sample_period: Duration::from_millis(2),
                    threads: ThreadKind::User,
                    reasons: true,
                    wakers: Wakers::None,
                },
                "state SD, user threads, at least 1000 µs each, at most 1000000 µs each, estimated from about one wait \
                 of each thread in 2ms, ",
            ),
        ] {
            let mut plan = Plan::usual(Target::All, HZ);
            plan.events[0].probe = Probe::OffCpu(waits);
            let title = title(&plan, &PerfEvent::CPU_CLOCK, 1_000);
            assert_eq!(
                title,
                format!("off-CPU: whole machine, {expected}1 s, host web1")
            );
        }
    }

    #[test]
    fn cpus_are_listed_as_ranges() {
        for (cpus, expected) in [(vec![3], "CPU 3"), (vec![0, 1, 2, 8], "CPUs 0-2,8")] {
            let plan = Plan {
                cpus: Some(cpus),
                ..Plan::usual(Target::All, HZ)
            };
            let title = title(&plan, &PerfEvent::CYCLES, 1_000);
            assert_eq!(
                title,
                format!("on-CPU: whole machine, {expected}, cycles 99 Hz, 1 s, host web1")
            );
        }
    }

    #[test]
    fn a_title_names_the_command_or_the_event() {
        let launch = Some(vec!["make".into(), "-j8".into()]);
        for (target, expected) in [
            (Target::Launched, "make -j8"),
            (Target::All, "whole machine during make -j8"),
        ] {
            let plan = Plan {
                launch: launch.clone(),
                ..Plan::usual(target, HZ)
            };
            let title = title(&plan, &PerfEvent::CYCLES, 61_000);
            assert_eq!(
                title,
                format!("on-CPU: {expected}, cycles 99 Hz, 61 s, host web1")
            );
        }
    }

    #[test]
    fn a_long_command_line_is_cut_between_characters() {
        let launch = Some(vec!["ä".repeat(COMMAND_LENGTH + 1).into()]);
        let plan = Plan {
            launch,
            ..Plan::usual(Target::Launched, HZ)
        };
        let cut = format!("on-CPU: {}…, ", "ä".repeat(COMMAND_LENGTH));
        assert!(title(&plan, &PerfEvent::CYCLES, 1_000).starts_with(&cut));
    }
}
