//! The processes of a profile, by how much was counted of each.
//!
//! In: normalized profiles, window by window. Out: a finding on those of one name with the most, for the top of a summary.

use super::findings::Finding;
use crate::profile::normalized::NormalizedProfile;
use crate::symbolize::owner_name;
use crate::text::number::{counted, grouped, share};
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use std::time::Duration;

/// So many names are shown.
const MAX_SHOWN: usize = 5;

/// Processes with less than one part in so many are not shown.
const WORTH_ONE_IN: u64 = 100;

/// So many processes of one name are told apart.
const MAX_PIDS: usize = 1000;

/// So many names are told apart; what has another is summed up.
const MAX_NAMES: usize = 10_000;

/// Sums by the names of processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busiest {
    by_name: HashMap<Box<[u8]>, Sums>,
    /// The weight of processes whose names are not told apart.
    rest: u64,
    /// The profiler's own weight.
    own: u64,
    /// How long this took.
    elapsed: Duration,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    weight: u64,
    /// Process IDs, each with its start.
    processes: HashSet<(u32, u64)>,
}

impl Busiest {
    /// Those of a profile.
    pub(crate) fn of(normalized: &NormalizedProfile) -> Self {
        let mut busiest = Self {
            elapsed: normalized
                .window
                .end
                .saturating_sub(normalized.window.start),
            ..Self::default()
        };
        let profiler = normalized.profiler_stack();
        for (key, sums) in normalized.samples() {
            if profiler.is_some() && key.user == profiler {
                busiest.own = busiest.own.saturating_add(sums.weight);
                continue;
            }
            let label = &key.label;
            let process = normalized.process_name(label);
            let name = process.map_or(label.thread_name(), |name| name);
            busiest.count(name, [(label.pid, label.start)], sums.weight);
        }
        busiest
    }

    /// Adds those of another window.
    pub(crate) fn add(&mut self, other: Self) {
        self.elapsed += other.elapsed;
        self.rest = self.rest.saturating_add(other.rest);
        self.own = self.own.saturating_add(other.own);
        for (name, sums) in other.by_name {
            self.count(&name, sums.processes, sums.weight);
        }
    }

    fn count(&mut self, name: &[u8], processes: impl IntoIterator<Item = (u32, u64)>, weight: u64) {
        if !self.by_name.contains_key(name) {
            if self.by_name.len() >= MAX_NAMES {
                self.rest = self.rest.saturating_add(weight);
                return;
            }
            self.by_name.insert(name.into(), Sums::default());
        }
        if let Some(sums) = self.by_name.get_mut(name) {
            sums.weight = sums.weight.saturating_add(weight);
            let room = MAX_PIDS.saturating_sub(sums.processes.len());
            sums.processes.extend(processes.into_iter().take(room));
        }
    }

    /// The processes with the most. `period_ns`: the CPU time that a weight of one stands for, if it stands for some.
    pub(crate) fn finding(&self, period_ns: Option<u64>) -> Option<Finding> {
        let total = self.total();
        let mut rows: Vec<(&[u8], &Sums)> = (self.by_name.iter())
            .map(|(name, sums)| (&**name, sums))
            .collect();
        rows.sort_unstable_by_key(|(name, sums)| (Reverse(sums.weight), *name));
        let is_worth_it = |sums: &Sums| sums.weight.saturating_mul(WORTH_ONE_IN) >= total;
        let shown = rows.iter().take(MAX_SHOWN);
        let shown = shown.filter(|(_, sums)| is_worth_it(sums));
        let mut parts: Vec<String> = shown
            .map(|(name, sums)| {
                let processes = match (sums.processes.len(), sums.processes.iter().next()) {
                    (1, Some((pid, _))) => format!("PID {pid}"),
                    (MAX_PIDS, _) => format!("{} or more processes", grouped(MAX_PIDS as u64)),
                    (count, _) => counted(count as u64, "process"),
                };
                let cpus = self.cpus(sums.weight, period_ns);
                let of = share(sums.weight as f64, total as f64);
                format!("{of} {} ({processes}{cpus})", owner_name(name))
            })
            .collect();
        if parts.is_empty() {
            return None;
        }
        let others = rows.iter().skip(parts.len());
        let others: HashSet<_> = others.flat_map(|(_, sums)| &sums.processes).collect();
        if !others.is_empty() {
            parts.push(counted(others.len() as u64, "other process"));
        }
        if self.rest > 0 {
            let of = share(self.rest as f64, total as f64);
            parts.push(format!("{of} of more names than are told apart"));
        }
        Some(Finding::new("processes", parts.join(", ")))
    }

    /// The profiler's own share, in words; none where it has none.
    pub(crate) fn own_share(&self) -> Option<String> {
        (self.own > 0).then(|| share(self.own as f64, self.total() as f64))
    }

    fn total(&self) -> u64 {
        let weights = self.by_name.values().map(|sums| sums.weight);
        weights.fold(self.rest.saturating_add(self.own), u64::saturating_add)
    }

    fn cpus(&self, weight: u64, period_ns: Option<u64>) -> String {
        let elapsed = self.elapsed.as_nanos() as f64;
        match period_ns {
            Some(period_ns) if elapsed > 0.0 => {
                let cpus = weight as f64 * period_ns as f64 / elapsed;
                format!(", {cpus:.2} CPUs")
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Window;
    use crate::profile::normalized::{Label, NormalizedKey, Sums as Counted};
    use std::sync::Arc;

    fn profile(samples: &[(&str, Option<&str>, u32, u64)]) -> NormalizedProfile {
        let mut normalized = NormalizedProfile::new(Window::until(Duration::from_secs(1)));
        for &(thread, process, pid, weight) in samples {
            let mut comm = [0; 16];
            comm[..thread.len()].copy_from_slice(thread.as_bytes());
            if let Some(process) = process {
                normalized.name_process(pid, 1, &Arc::from(process.as_bytes()));
            }
            let key = NormalizedKey {
                label: Label {
                    pid,
                    start: 1,
                    comm,
                    ..Label::default()
                },
                ..NormalizedKey::default()
            };
            normalized.add(
                key,
                Counted {
                    weight,
                    count: weight,
                },
            );
        }
        normalized
    }

    #[test]
    fn processes_of_one_name_are_summed_up_over_threads_and_windows() {
        let first = profile(&[
            ("pool-1", Some("java Main"), 7, 30),
            ("GC", Some("java Main"), 7, 10),
            ("sh", None, 8, 5),
            ("sh", None, 9, 5),
        ]);
        let mut busiest = Busiest::of(&first);
        let finding = |busiest: &Busiest| busiest.finding(Some(10_000_000)).unwrap();
        let expected = "80.0% java Main (PID 7, 0.40 CPUs), 20.0% sh (2 processes, 0.10 CPUs)";
        assert_eq!(finding(&busiest), Finding::new("processes", expected));
        busiest.add(Busiest::of(&profile(&[("sh", None, 9, 50)])));
        let expected = "60.0% sh (2 processes, 0.30 CPUs), 40.0% java Main (PID 7, 0.20 CPUs)";
        assert_eq!(finding(&busiest), Finding::new("processes", expected));
        let without = busiest.finding(None).unwrap();
        assert!(!without.text.contains("CPUs"), "{without:?}");
        assert_eq!(Busiest::default().finding(None), None);
    }

    #[test]
    fn names_beyond_the_limit_are_told_as_a_sum_and_empty_ones_marked() {
        let mut busiest = Busiest::of(&profile(&[("", None, 1, 75)]));
        for name in 0..MAX_NAMES {
            busiest.count(format!("n{name}").as_bytes(), [(2, 1)], 0);
        }
        busiest.count(b"one more", [(3, 1)], 25);
        let text = busiest.finding(None).unwrap().text;
        assert!(text.starts_with("75.0% [nameless] (PID 1), "), "{text}");
        let end = "25.0% of more names than are told apart";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn small_ones_are_counted_alone() {
        let mut samples = vec![("big", None, 1, 10_000)];
        let pid = |number| 2 + number as u32;
        samples.extend((0..9).map(|number| (["a", "b", "c"][number % 3], None, pid(number), 1)));
        let finding = Busiest::of(&profile(&samples)).finding(None).unwrap();
        assert_eq!(finding.text, "99.9% big (PID 1), 9 other processes");
    }
}
