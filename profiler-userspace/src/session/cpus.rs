//! CPUs that come online and go offline while a recording goes on.
//!
//! In: the list of CPUs that are online, each second. Out: those to begin with and to let go of, and what to say of it at the end.
//! One that goes and returns between two looks is both: its events are dead.

use crate::kernel::{self, Kernel};
use crate::report::findings::Finding;
use crate::text::number::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How often the list is read, which takes some 20 µs, and the period of each CPU.
const EVERY: Duration = Duration::from_secs(1);

/// With more changes than this, they are counted.
const MAX_SAID: usize = 4;

/// The CPUs that are sampled.
pub(super) struct CpuWatch {
    sampled: Periods,
    /// Those that were named; none if all are sampled.
    named: Option<BTreeSet<u32>>,
    next: Instant,
    /// When each CPU went and came.
    changes: BTreeMap<u32, Vec<Change>>,
    /// Why a CPU that came is not sampled, the last reason.
    refused: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Came(Duration),
    Went(Duration),
}

/// CPUs and the periods in which they are online, where these are known.
type Periods = BTreeMap<u32, Option<u64>>;

/// CPUs to begin with and to let go of; those that went and returned are both.
#[derive(Debug, Default, PartialEq, Eq)]
struct Difference {
    came: Vec<u32>,
    went: Vec<u32>,
}

impl CpuWatch {
    /// Sampling on these, of all or of those that were named. Begins before anything is attached.
    pub(super) fn new(sampled: &[u32], named: Option<&[u32]>) -> Self {
        Self {
            sampled: periods(sampled),
            named: named.map(|cpus| cpus.iter().copied().collect()),
            next: Instant::now() + EVERY,
            changes: BTreeMap::new(),
            refused: None,
        }
    }

    /// Follows what changed since it was looked at last, if it is time to look.
    pub(super) fn follow(&mut self, kernel: &mut Kernel, elapsed: Duration) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        let Ok(online) = kernel::online_cpus() else {
            return;
        };
        let online = periods(&online);
        let difference = self.difference(&online);
        if difference == Difference::default() {
            return;
        }
        // One after the other, so that one that cannot be had keeps no other from it.
        let _nothing_to_open = kernel.follow_cpus(&[], &difference.went);
        for &cpu in &difference.went {
            self.went(cpu, elapsed);
        }
        for &cpu in &difference.came {
            match kernel.follow_cpus(&[cpu], &[]) {
                Ok(()) => self.came(cpu, online[&cpu], elapsed),
                // It may not be ready yet: the next look tries again.
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    self.refused = Some(format!(
                        "CPU {cpu} came online and is not sampled: {error:#}"
                    ));
                }
            }
        }
    }

    fn difference(&self, online: &Periods) -> Difference {
        let is_wanted = |cpu: &u32| self.named.as_ref().is_none_or(|named| named.contains(cpu));
        let only = |these: &Periods, others: &Periods| -> Vec<u32> {
            let other = these
                .iter()
                .filter(|(cpu, period)| others.get(cpu) != Some(period));
            other.map(|(cpu, _)| *cpu).collect()
        };
        let mut came = only(online, &self.sampled);
        came.retain(is_wanted);
        Difference {
            came,
            went: only(&self.sampled, online),
        }
    }

    fn came(&mut self, cpu: u32, period: Option<u64>, at: Duration) {
        self.refused = None;
        self.sampled.insert(cpu, period);
        self.changes.entry(cpu).or_default().push(Change::Came(at));
    }

    fn went(&mut self, cpu: u32, at: Duration) {
        self.sampled.remove(&cpu);
        self.changes.entry(cpu).or_default().push(Change::Went(at));
    }

    /// Sentences for the summary.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let all = self.changes.iter().map(|(cpu, changes)| {
            let said = match changes.len() {
                several if several > MAX_SAID => {
                    let gone = changes.iter().filter(|it| matches!(it, Change::Went(_)));
                    format!("went offline {}", counted(gone.count() as u64, "time"))
                }
                _ => changes
                    .iter()
                    .map(Change::said)
                    .collect::<Vec<_>>()
                    .join(", "),
            };
            Finding::note(format!("CPU {cpu} {said}"))
        });
        all.chain(self.refused.clone().map(Finding::note)).collect()
    }
}

fn periods(cpus: &[u32]) -> Periods {
    let period = |cpu: &u32| (*cpu, kernel::online_period(*cpu));
    cpus.iter().map(period).collect()
}

impl Change {
    fn said(&self) -> String {
        match self {
            Self::Came(at) => format!(
                "came online after {:.0} s and was sampled from then on",
                at.as_secs_f64()
            ),
            Self::Went(at) => format!("went offline after {:.0} s", at.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sampling on these, each in its first period online.
    fn watch(sampled: &[u32], named: Option<&[u32]>) -> CpuWatch {
        CpuWatch {
            sampled: online(sampled, 1),
            ..CpuWatch::new(&[], named)
        }
    }

    fn online(cpus: &[u32], period: u64) -> Periods {
        cpus.iter().map(|cpu| (*cpu, Some(period))).collect()
    }

    #[test]
    fn cpus_that_come_are_sampled_if_they_are_wanted() {
        let all = watch(&[0, 1], None);
        assert_eq!(all.difference(&online(&[0, 1], 1)), Difference::default());
        let difference = all.difference(&online(&[0, 2, 3], 1));
        assert_eq!((difference.came, difference.went), (vec![2, 3], vec![1]));
        let named = watch(&[1], Some(&[1, 3]));
        let difference = named.difference(&online(&[0, 2, 3], 1));
        assert_eq!((difference.came, difference.went), (vec![3], vec![1]));
    }

    #[test]
    fn a_cpu_that_went_and_returned_between_two_looks_has_done_both() {
        let all = watch(&[0, 1], None);
        let mut now = online(&[0, 1], 1);
        now.insert(1, Some(2));
        let difference = all.difference(&now);
        assert_eq!((difference.came, difference.went), (vec![1], vec![1]));
    }

    #[test]
    fn what_came_and_went_is_said() {
        let mut watch = watch(&[0, 1], None);
        assert!(watch.findings().is_empty());
        let at = Duration::from_secs;
        watch.went(1, at(2));
        watch.came(1, Some(1), at(5));
        let texts = |watch: &CpuWatch| -> Vec<String> {
            let findings = watch.findings().into_iter();
            findings.map(|finding| finding.text).collect()
        };
        assert_eq!(
            texts(&watch),
            ["CPU 1 went offline after 2 s, came online after 5 s and was sampled from then on"]
        );
        assert_eq!(watch.difference(&online(&[0, 1], 1)), Difference::default());
        for round in 3..9 {
            watch.went(1, at(2 * round));
            watch.came(1, Some(1), at(2 * round + 1));
        }
        assert_eq!(texts(&watch), ["CPU 1 went offline 7 times"]);
    }
}
