//! A perf event on every CPU that is sampled, while CPUs come and go and the rate changes.
//!
//! In: what is sampled, CPUs. Out: links of a program to an event on each of them. An event whose CPU goes offline is dead for good,
//! also when the CPU returns; and the period that a program is told stays that of opening, whatever is changed later. So in both
//! cases a new event takes the old one's place.

use super::cpus::is_online;
use super::errors::{is_refusal, privilege};
use super::perf_link::{self, Policy, Source};
use super::{Error, Result};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Links to one event on several CPUs.
pub(super) struct PerfEvents {
    source: Source,
    /// The number that the program is told where it fires.
    number: usize,
    links: BTreeMap<u32, OwnedFd>,
}

impl PerfEvents {
    /// Those of an event on no CPU yet.
    pub(super) fn new(source: Source, number: usize) -> Self {
        Self {
            source,
            number,
            links: BTreeMap::new(),
        }
    }

    /// Whether it is on no CPU.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The event's number.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Attaches the program on one more CPU, or anew.
    pub(super) fn open(&mut self, program: BorrowedFd<'_>, cpu: u32) -> Result<()> {
        let link = perf_link::attach(program, &self.source, cpu, self.number as u64)
            .map_err(|error| open_error(&self.source, cpu, error))?;
        self.links.insert(cpu, link);
        Ok(())
    }

    /// Lets go of a CPU that is offline.
    pub(super) fn close(&mut self, cpu: u32) {
        self.links.remove(&cpu);
    }

    /// Fires by another policy from now on. Each CPU has its new event before the old one goes; what had passed of its period is
    /// left out.
    pub(super) fn set_policy(&mut self, program: BorrowedFd<'_>, policy: Policy) -> Result<()> {
        self.source.policy = policy;
        for cpu in self.links.keys().copied().collect::<Vec<_>>() {
            match self.open(program, cpu) {
                Err(Error::NoEvent { .. }) if !is_online(cpu) => self.close(cpu),
                result => result?,
            }
        }
        Ok(())
    }
}

fn open_error(source: &Source, cpu: u32, io_error: io::Error) -> Error {
    match io_error.raw_os_error() {
        _ if is_refusal(&io_error) => {
            privilege(format!("opening the perf event {}", source.name), &io_error)
        }
        // ENOENT, ENODEV, EOPNOTSUPP, ENXIO: no such event, counter or CPU.
        Some(2 | 19 | 95 | 6) => Error::NoEvent {
            event: source.name.clone(),
            cpu: if is_online(cpu) {
                String::new()
            } else {
                format!(" on CPU {cpu}, which is not online")
            },
            source: io_error,
        },
        _ => Error::Attach {
            what: format!("the event {} on CPU {cpu}", source.name),
            source: io_error,
        },
    }
}
