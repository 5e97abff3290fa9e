//! Requests to the kernel half, and the programs that they need. Pure.

use crate::cgroups::HierarchyKind;
use crate::probe::{AttachPoint, Attachment, Io, PageFaults, Probe, ProbeSpec, Waits, Wakers};
use profiler_common::abi::{CallWeight, ProgramId, Switches, TargetKind};

/// Probes to attach, and the parts of each sample to keep.
#[derive(Clone, Debug)]
pub struct Request {
    /// Parts of each sample that are wanted. Features of this kernel are added at load.
    pub switches: Switches,
    /// Which tasks.
    pub target: TargetKind,
    /// The targets' IDs, as seen in our PID namespace; empty for [`TargetKind::All`].
    pub ids: Vec<u32>,
    /// The hierarchy whose cgroups are told apart; none if none is.
    pub cgroups: Option<HierarchyKind>,
    /// The memory limit of the maps, in bytes, without unwind tables.
    pub map_memory: u64,
    /// The memory limit of unwind tables, in bytes.
    pub unwind_memory: u64,
    /// Triggers of samples: the probe of each event, at least one and at most
    /// [`MAX_EVENTS`](profiler_common::abi::MAX_EVENTS). If there are several, they are events,
    /// tracepoints and functions, and one may be of waits.
    pub probes: Vec<Probe>,
    /// One bit for each event: whether its samples weigh the period of its event.
    pub weighed: u32,
    /// Whether it may change how often a wait is looked at; see [`Kernel::sample_waits`](super::Kernel::sample_waits).
    pub waits_vary: bool,
}

/// A program of the BPF object that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequiredProgram {
    pub(super) program: ProgramId,
    /// Point that it is attached to.
    pub(super) at: AttachPoint,
    /// The event it fires for; of a program that several share, the first of them.
    pub(super) event: usize,
    /// Whether firings begin with it.
    pub(super) begins: bool,
}

impl Request {
    /// The command's process, if one is launched.
    pub(super) fn launched(&self) -> Option<u32> {
        let launched = self.target == TargetKind::Launched;
        self.ids.first().copied().filter(|_| launched)
    }

    /// The waits that are wanted, if waits are recorded.
    pub(super) fn waits(&self) -> Option<&Waits> {
        self.probes.iter().find_map(Probe::waits)
    }

    /// The weight of firings that begin and end; none if they do not.
    pub(super) fn timed_weight(&self) -> Option<CallWeight> {
        self.specs().find_map(|(_, spec)| Some(spec.timed?.weight))
    }

    /// Whether the kernel half keeps a thread's entry from one firing to the next.
    pub(super) fn keeps_threads(&self) -> bool {
        self.specs().any(|(_, spec)| spec.keeps_threads)
    }

    /// Whether all of the threads' time is accounted for.
    pub(super) fn is_wall(&self) -> bool {
        self.has(|probe| matches!(probe, Probe::Wall(_)))
    }

    /// Whether one of the probes is of this kind.
    pub(super) fn has(&self, is_such: impl Fn(&Probe) -> bool) -> bool {
        self.probes.iter().any(is_such)
    }

    /// Which I/O is wanted, if that is recorded.
    pub(super) fn io(&self) -> Option<&Io> {
        self.probes.iter().find_map(|probe| match probe {
            Probe::Io(io) => Some(io),
            _ => None,
        })
    }

    /// Whether wakers are wanted.
    pub(super) fn has_wakers(&self) -> bool {
        let waits = self.waits();
        waits.is_some_and(|waits| waits.wakers != Wakers::None)
    }

    /// The row of each probe, and the number of its first event.
    fn specs(&self) -> impl Iterator<Item = (usize, ProbeSpec)> {
        let mut next = 0;
        self.probes.iter().map(move |probe| {
            let (first, spec) = (next, probe.spec());
            next += spec.events;
            (first, spec)
        })
    }

    /// How many events have CPU slots.
    pub(super) fn events(&self) -> usize {
        self.specs().map(|(_, spec)| spec.events).sum()
    }

    /// The event whose counters count firings that last longer than one run of a program.
    pub(super) fn lasting_event(&self) -> usize {
        self.specs()
            .find_map(|(first, spec)| Some(first + spec.timed?.event))
            .unwrap_or(0)
    }

    /// The programs of all events, each once but for perf events, in the order of attaching: perf events come last, so that all
    /// of them start at nearly the same time.
    pub(super) fn programs(&self) -> Vec<RequiredProgram> {
        let mut all: Vec<RequiredProgram> = Vec::new();
        for (first, spec) in self.specs() {
            for attachment in spec.programs {
                let wanted = RequiredProgram::new(attachment, first);
                // One program serves all perf events, each of which is attached by itself.
                let is_own = wanted.at == AttachPoint::PerfEvent;
                if is_own || all.iter().all(|other| other.program != wanted.program) {
                    all.push(wanted);
                }
            }
        }
        // A stable sort: what is attached to tracepoints and functions keeps its order.
        all.sort_by_key(|wanted| wanted.at == AttachPoint::PerfEvent);
        all
    }

    /// The programs for page faults, which come after the others.
    pub(super) fn page_fault_programs(&self, faults: PageFaults) -> Vec<RequiredProgram> {
        let is_io = |probe: &Probe| matches!(probe, Probe::Io(_));
        let place = self.probes.iter().position(is_io);
        let Some((first, _)) = place.and_then(|place| self.specs().nth(place)) else {
            return Vec::new();
        };
        let attachments = faults.programs().into_iter();
        attachments
            .map(|attachment| RequiredProgram::new(attachment, first))
            .collect()
    }
}

impl RequiredProgram {
    /// A program of a probe whose first event has this number.
    fn new(attachment: Attachment, first: usize) -> Self {
        let event = first + attachment.event;
        Self {
            program: attachment.program.of_event(event),
            at: attachment.at,
            event,
            begins: attachment.begins,
        }
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
            cgroups: None,
            map_memory: 0,
            unwind_memory: 0,
            probes,
            weighed: 0,
            waits_vary: false,
        }
    }

    fn function(name: &str) -> Probe {
        Probe::Function(Function {
            file: "libc".into(),
            name: name.to_owned(),
        })
    }

    #[test]
    fn every_event_has_its_own_program_but_uprobes_share_one() {
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
        let programs: Vec<(ProgramId, usize)> = request
            .programs()
            .iter()
            .map(|wanted| (wanted.program, wanted.event))
            .collect();
        assert_eq!(
            programs,
            [
                (ProgramId::Function, 1),
                (ProgramId::Tracepoint3, 3),
                (ProgramId::OffCpu, 5),
                (ProgramId::OnCpu, 0),
                (ProgramId::OnCpu, 2)
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
        let programs = programs.iter().map(|wanted| (wanted.program, wanted.event));
        let expected = [
            (ProgramId::Woken, 1),
            (ProgramId::OffCpu, 1),
            (ProgramId::OnCpu, 0),
        ];
        assert_eq!(programs.collect::<Vec<_>>(), expected);
    }
}
