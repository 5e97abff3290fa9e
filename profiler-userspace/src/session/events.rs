//! While sampling: taking in the kernel half's news.
//!
//! In: notices and mappings. Out: [`Processes`] that know what lay at each sampled address, with the files
//! behind it held open; unwind tables asked for. A process itself is looked at where that tells more: which
//! other files it maps, whose tables may be wanted next, and where it tells of code that it makes.
//!
//! [`Processes`]: crate::process::Processes

use crate::kernel::{self, KernelEvent, ProcessOf};
use crate::process::{Look, MappingEvent, ProcessKey, Todo, Unopened};
use crate::session::sampling::Session;
use crate::unwind::loader::CodeKeys as _;
use crate::unwind::loader::Priority;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// When a young process is looked at after its first sample: that may have been taken inside `exec`, before
/// there were any mappings, or in the loader, before there were all. Where the kernel half tells what lies
/// where, the first of these is left out, and so is the look at once.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
];

/// A process is young for this long. Those that are older have loaded what they begin with.
const YOUTH: Duration = Duration::from_secs(1);

/// Another look at a process.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planned {
    due: Instant,
    process_key: ProcessKey,
    /// Which of [`LOOKS`] this is.
    step: usize,
}

/// Looks at processes that are still to be taken.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Soonest first.
    planned: BinaryHeap<Reverse<Planned>>,
}

impl Looks {
    pub(crate) fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Instant {
        let soonest = self.planned.peek().map(|Reverse(look)| look.due);
        soonest.unwrap_or_else(Instant::now)
    }

    fn plan(&mut self, now: Instant, process_key: ProcessKey, step: usize) {
        if let Some(&delay) = LOOKS.get(step) {
            self.planned.push(Reverse(Planned {
                due: now + delay,
                process_key,
                step,
            }));
        }
    }

    /// The next one that is due by now.
    fn take(&mut self, now: Instant) -> Option<Planned> {
        if self.planned.peek()?.0.due > now {
            return None;
        }
        self.planned.pop().map(|Reverse(look)| look)
    }
}

impl Session {
    /// Takes in what the kernel half tells, and makes room where it is short.
    pub(crate) fn hear(&mut self) -> Result<()> {
        if self.take_in_events() {
            self.drain_if_full()?;
        }
        Ok(())
    }

    /// Takes in what the kernel half reports; says whether it asks for a drain.
    pub(crate) fn take_in_events(&mut self) -> bool {
        let mut drain = false;
        let mut unpublished = Vec::new();
        while let Some(event) = self.kernel.next_event() {
            match event {
                KernelEvent::Mapping(seen) => self.learn(seen),
                KernelEvent::NewProcess(process) => self.meet(process_key(process)),
                KernelEvent::UnknownCode(process, address) => {
                    unpublished.push((process_key(process), address));
                }
                KernelEvent::HalfFull => drain = true,
            }
        }
        // What lies there is event behind such a notice.
        for (process_key, address) in unpublished {
            self.meet(process_key);
            if let Some(tables) = &mut self.tables {
                let (kernel, processes) = (&mut self.kernel, &mut self.processes);
                tables
                    .loader
                    .load_at(kernel, processes, process_key, address);
            }
        }
        drain
    }

    /// Takes in what lay at a sampled address.
    fn learn(&mut self, seen: kernel::MappingEvent) {
        let event = MappingEvent {
            process_key: ProcessKey {
                tgid: seen.process.tgid,
                incarnation: seen.process.incarnation,
            },
            range: seen.range,
            offset: seen.offset,
            code: seen.code,
            names: seen.names,
        };
        // A process of which this is event is not announced beside.
        self.meet(event.process_key);
        match self.processes.take_in(&event) {
            Todo::Nothing => {}
            Todo::LookAtProcess => {
                self.look_at(event.process_key);
            }
            Todo::Open(file) => {
                self.open(&file, &event);
                if file.is_new {
                    // It may be the first of many that a new program brings.
                    self.look_at(event.process_key);
                }
            }
        }
    }

    /// Opens a file that was event of, and has its table made.
    fn open(&mut self, file: &Unopened, event: &MappingEvent) {
        let kernel = &mut self.kernel;
        let mut candidates = self.processes.candidates(file, event);
        let found = candidates.find(|opened| kernel.code_key(&opened.file.file) == Some(file.code));
        drop(candidates);
        if let Some(opened) = found {
            if let Some(tables) = &self.tables {
                tables.loader.load_known(file.code, &opened.file);
            }
            self.processes.adopt(file, opened);
        }
    }

    /// Meets a process that was sampled, and plans to look again if it is new to us, young, and still there.
    fn meet(&mut self, process_key: ProcessKey) {
        if !self.processes.meet(process_key) || !self.kernel.walks_user_stacks() {
            return;
        }
        let (now, young) = (Instant::now(), is_young(process_key));
        if young && self.kernel.reports_mappings() {
            if !self.processes.has_gone(process_key) {
                self.looks.plan(now, process_key, 1);
            }
        } else if self.look_at(process_key) && young {
            self.looks.plan(now, process_key, 0);
        }
    }

    /// Takes the looks that are due.
    pub(crate) fn look_again(&mut self) {
        let now = Instant::now();
        while let Some(Planned {
            process_key, step, ..
        }) = self.looks.take(now)
        {
            if self.look_at(process_key) {
                self.looks.plan(now, process_key, step + 1);
            }
        }
    }

    /// Looks at a process, and has the tables made of what it maps, before a walk comes there; false if it
    /// has gone.
    fn look_at(&mut self, process_key: ProcessKey) -> bool {
        let look = self.processes.look(process_key);
        if look == Look::Changed
            && let Some(tables) = &mut self.tables
        {
            tables.loader.load_process(
                &mut self.kernel,
                &self.processes,
                process_key,
                Priority::High,
            );
        }
        look != Look::Gone
    }
}

/// Whether a process began a short while ago, or may have.
fn is_young(process_key: ProcessKey) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot = Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    );
    let began = Duration::from_nanos(process_key.incarnation);
    process_key.incarnation == 0 || since_boot.saturating_sub(began) < YOUTH
}

/// The process that an event is of, as it is known here.
fn process_key(process: ProcessOf) -> ProcessKey {
    ProcessKey {
        tgid: process.tgid,
        incarnation: process.incarnation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescans_are_done_in_order_when_due() {
        let mut looks = Looks::default();
        let now = Instant::now();
        let process = |tgid| ProcessKey {
            tgid,
            incarnation: 1,
        };
        looks.plan(now, process(1), 2);
        looks.plan(now, process(2), 0);
        looks.plan(now, process(3), LOOKS.len());
        assert_eq!(looks.next(), now + LOOKS[0]);
        assert!(looks.take(now).is_none());
        let mut order = Vec::new();
        while let Some(look) = looks.take(now + LOOKS[2]) {
            order.push(look.process_key.tgid);
        }
        assert_eq!(order, [2, 1]);
        assert!(looks.is_empty());
    }
}
