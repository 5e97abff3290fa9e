//! What the kernel half is asked for, and which programs that takes. Pure.

use crate::probe::{Hook, Io, PageFaults, Probe, Waits, Wakers};
use profiler_common::abi::{CallWeight, MAX_EVENTS, Switches, TargetKind};

/// What to sample, and what of it to keep.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is wanted of each sample. What the kernel supports is added at load.
    pub switches: Switches,
    /// Which tasks.
    pub target: TargetKind,
    /// The targets' IDs, as seen in our PID namespace; empty for [`TargetKind::All`].
    pub ids: Vec<u32>,
    /// What the maps may take, in bytes; unwind tables not counted.
    pub map_memory: u64,
    /// What unwind tables may take beside, in bytes.
    pub unwind_memory: u64,
    /// What triggers samples: the probe of each event, never none and never more than [`MAX_EVENTS`]. Where there are
    /// several, they are events, tracepoints and functions, and perhaps one is of waits.
    pub probes: Vec<Probe>,
    /// One bit for each event: whether its samples weigh the period of its event.
    pub weighed: u32,
}

/// A program of the BPF object that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: &'static str,
    /// What it is attached to.
    pub(super) hook: Hook,
    /// The event that it fires for; of a program that several share, the first of them.
    pub(super) event: usize,
    /// Whether firings begin with it.
    pub(super) begins: bool,
}

/// The programs for events, by their events.
const ON_CPU: [&str; MAX_EVENTS] = [
    "on_cpu", "on_cpu_1", "on_cpu_2", "on_cpu_3", "on_cpu_4", "on_cpu_5", "on_cpu_6", "on_cpu_7",
];

/// The programs for tracepoints, by their events.
const TRACEPOINT: [&str; MAX_EVENTS] = [
    "tracepoint",
    "tracepoint_1",
    "tracepoint_2",
    "tracepoint_3",
    "tracepoint_4",
    "tracepoint_5",
    "tracepoint_6",
    "tracepoint_7",
];

/// Which of the programs like this one is the event's.
fn of_event(name: &'static str, event: usize) -> &'static str {
    [ON_CPU, TRACEPOINT]
        .into_iter()
        .find(|alike| alike[0] == name)
        .map_or(name, |alike| alike[event])
}

impl Request {
    /// The waits that are wanted, if it is waits that are recorded.
    pub(super) fn waits(&self) -> Option<&Waits> {
        self.probes.iter().find_map(Probe::waits)
    }

    /// What firings weigh that begin and end; none if they do not.
    pub(super) fn timed_weight(&self) -> Option<CallWeight> {
        self.probes.iter().find_map(Probe::timed_weight)
    }

    /// Whether the kernel half keeps something of each thread from one firing to the next.
    pub(super) fn keeps_threads(&self) -> bool {
        self.probes.iter().any(Probe::keeps_threads)
    }

    /// Whether all of the threads' time is accounted for.
    pub(super) fn is_wall(&self) -> bool {
        self.has(|probe| matches!(probe, Probe::Wall(_)))
    }

    /// Whether one of the probes is such a one.
    pub(super) fn has(&self, is_such: impl Fn(&Probe) -> bool) -> bool {
        self.probes.iter().any(is_such)
    }

    /// Which reading and writing is wanted, if that is recorded.
    pub(super) fn io(&self) -> Option<&Io> {
        self.probes.iter().find_map(|probe| match probe {
            Probe::Io(io) => Some(io),
            _ => None,
        })
    }

    /// Whether it is wanted who ended waits.
    pub(super) fn has_wakers(&self) -> bool {
        let waits = self.waits();
        waits.is_some_and(|waits| waits.wakers != Wakers::None)
    }

    /// How many events have CPU slots. Wall time has two: its samples, and its spans.
    pub(super) fn events(&self) -> usize {
        self.probes.len() + usize::from(self.is_wall())
    }

    /// The event in whose counters those firings are that last longer than a run of a program.
    pub(super) fn lasting_event(&self) -> usize {
        if self.is_wall() {
            return 1;
        }
        let mut probes = self.probes.iter();
        probes
            .position(|probe| probe.timed_weight().is_some())
            .unwrap_or(0)
    }

    /// The programs of all events, each once, in the order in which they are attached: events come last, and so all of
    /// them at nearly one time.
    pub(super) fn programs(&self) -> Vec<Wanted> {
        let mut all: Vec<Wanted> = Vec::new();
        for (event, probe) in self.probes.iter().enumerate() {
            for (program, hook) in probe.programs() {
                let name = of_event(program, event);
                let of_samples = hook == Hook::PerfEvent || !matches!(probe, Probe::Wall(_));
                if all.iter().all(|wanted| wanted.name != name) {
                    all.push(Wanted {
                        name,
                        hook,
                        event: if of_samples {
                            event
                        } else {
                            self.lasting_event()
                        },
                        begins: probe.begins_with(program),
                    });
                }
            }
        }
        // A stable sort: what hangs on tracepoints and functions keeps its order.
        all.sort_by_key(|wanted| wanted.hook == Hook::PerfEvent);
        all
    }

    /// The programs for page faults, which come behind the others.
    pub(super) fn page_fault_programs(&self, faults: PageFaults) -> Vec<Wanted> {
        let is_io = |probe: &Probe| matches!(probe, Probe::Io(_));
        let Some(event) = self.probes.iter().position(is_io) else {
            return Vec::new();
        };
        let wanted = |(name, hook)| Wanted {
            name,
            hook,
            event,
            begins: self.probes[event].begins_with(name),
        };
        faults.programs().into_iter().map(wanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Function, Tracepoint, Wall};

    fn request(probes: Vec<Probe>) -> Request {
        Request {
            switches: Switches::default(),
            target: TargetKind::All,
            ids: Vec::new(),
            map_memory: 0,
            unwind_memory: 0,
            probes,
            weighed: 0,
        }
    }

    fn function(name: &str) -> Probe {
        Probe::Function(Function {
            file: "libc".into(),
            name: name.to_owned(),
        })
    }

    #[test]
    fn every_event_has_a_program_of_its_own_but_functions_share_one() {
        let tracepoint = Probe::Tracepoint(Tracepoint {
            category: "sched".to_owned(),
            name: "sched_switch".to_owned(),
        });
        let request = request(vec![
            Probe::OnCpu,
            function("malloc"),
            Probe::OnCpu,
            tracepoint,
            function("free"),
            Probe::OffCpu(Waits::default()),
        ]);
        let programs: Vec<(&str, usize)> = request
            .programs()
            .iter()
            .map(|wanted| (wanted.name, wanted.event))
            .collect();
        assert_eq!(
            programs,
            [
                ("function", 1),
                ("tracepoint_3", 3),
                ("off_cpu", 5),
                ("on_cpu", 0),
                ("on_cpu_2", 2)
            ]
        );
        assert_eq!((request.events(), request.lasting_event()), (6, 5));
    }

    #[test]
    fn wall_time_has_the_cpu_slots_of_two() {
        let request = request(vec![Probe::Wall(Wall {
            waits: Waits::default(),
            idle_threads: true,
        })]);
        assert_eq!((request.events(), request.lasting_event()), (2, 1));
        let programs = request.programs();
        let programs = programs.iter().map(|wanted| (wanted.name, wanted.event));
        let expected = [("woken", 1), ("off_cpu", 1), ("on_cpu", 0)];
        assert_eq!(programs.collect::<Vec<_>>(), expected);
    }
}
