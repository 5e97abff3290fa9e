//! Keeps a recording to the memory that it may take.
//!
//! In: `--max-memory`, and each second what this process and its BPF maps take. Out: names given up, and no more room for unwind
//! tables, where it gets scarce; and what to say of it at the end. Samples are never given up.

use crate::allocator;
use crate::kernel::{Kernel, Tables};
use crate::pipeline::window::Pipeline;
use crate::plan::Plan;
use crate::report::findings::Finding;
use crate::text::number::{counted, mebibytes};
use crate::unwind::loader::TableLoader;
use crate::usage::resident_bytes;
use std::time::{Duration, Instant};

/// How long a step is.
const STEP: Duration = Duration::from_secs(1);

/// From this share of the limit on, something is given up.
const SCARCE: f64 = 0.9;

/// Names are kept for so long at least: what would be given up sooner is needed, and giving it up only costs CPU time.
const NAMES_KEPT: Duration = Duration::from_secs(30);

/// The watch over one recording's memory.
pub(super) struct MemoryWatch {
    limit: u64,
    began: Instant,
    last: Instant,
    /// The most there was at the end of a step, in bytes.
    most: u64,
    /// When names were given up last, and how many in all.
    names: (Option<Instant>, usize),
    /// Since when unwind tables have no more room, and how many had made room for others by then.
    tables: Option<(Duration, usize)>,
}

/// The next to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Names,
    Tables,
}

/// Memory that can be given up.
trait Holdings {
    /// Gives up the names that are kept for later windows. Returns how many.
    fn give_up_names(&mut self) -> usize;
    /// Has unwind tables make room for each other from now on. Returns how many have until now.
    fn stop_tables(&mut self) -> usize;
}

/// Those of a recording.
struct OfRecording<'a> {
    tables: Option<&'a TableLoader<Tables>>,
    pipeline: &'a mut Pipeline,
}

impl Holdings for OfRecording<'_> {
    fn give_up_names(&mut self) -> usize {
        let names = self.pipeline.forget();
        allocator::give_back();
        names
    }

    fn stop_tables(&mut self) -> usize {
        if let Some(tables) = self.tables {
            tables.stop_growing();
        }
        evicted(self.tables)
    }
}

/// How many unwind tables have made room for others.
fn evicted(tables: Option<&TableLoader<Tables>>) -> usize {
    tables.map_or(0, |tables| tables.loaded().evicted)
}

impl MemoryWatch {
    /// From now on, if the plan has a limit.
    pub(super) fn begin(plan: &Plan) -> Option<Self> {
        let now = Instant::now();
        Some(Self {
            limit: plan.memory.all_bytes?,
            began: now,
            last: now,
            most: 0,
            names: (None, 0),
            tables: None,
        })
    }

    /// Gives something up, if a step is over and memory is scarce.
    pub(super) fn follow(
        &mut self,
        kernel: &Kernel,
        tables: Option<&TableLoader<Tables>>,
        pipeline: &mut Pipeline,
    ) {
        let now = Instant::now();
        if now.duration_since(self.last) < STEP {
            return;
        }
        let of_tables = tables.map_or(0, |tables| tables.loaded().bytes);
        let taken = resident_bytes() + kernel.map_bytes() + of_tables;
        self.step(taken, now, &mut OfRecording { tables, pipeline });
    }

    /// Gives up what is next where so much is taken.
    fn step(&mut self, taken: u64, now: Instant, holdings: &mut dyn Holdings) {
        self.last = now;
        match self.next(taken, now) {
            Some(Next::Names) => {
                self.names.0 = Some(now);
                self.names.1 += holdings.give_up_names();
            }
            Some(Next::Tables) => {
                self.tables = Some((now - self.began, holdings.stop_tables()));
            }
            None => {}
        }
    }

    /// The next to be given up where so much is taken.
    fn next(&mut self, taken: u64, now: Instant) -> Option<Next> {
        self.most = self.most.max(taken);
        let is_scarce = taken as f64 > self.limit as f64 * SCARCE;
        let has_new_names = { self.names.0 }.is_none_or(|last| now - last >= NAMES_KEPT);
        match (is_scarce, has_new_names) {
            (true, true) => Some(Next::Names),
            (true, false) => self.tables.is_none().then_some(Next::Tables),
            (false, _) => None,
        }
    }

    /// A sentence for the summary, when sampling has just ended.
    pub(super) fn finding(&self, tables: Option<&TableLoader<Tables>>) -> Finding {
        self.told(evicted(tables))
    }

    /// The same, when so many unwind tables have made room for others.
    fn told(&self, evicted: usize) -> Finding {
        let mut text = format!(
            "{} of {} allowed",
            mebibytes(self.most),
            mebibytes(self.limit)
        );
        if self.names.1 > 0 {
            let names = counted(self.names.1 as u64, "name");
            text.push_str(&format!("; {names} given up"));
        }
        if let Some((since, before)) = self.tables {
            let given_up = counted(evicted.saturating_sub(before) as u64, "unwind table");
            text.push_str(&format!(
                "; from {:.0} s on {given_up} given up for others",
                since.as_secs_f64()
            ));
        }
        if self.most > self.limit {
            text.push_str("; more than allowed: what was sampled is kept; use shorter windows");
        }
        Finding::new("memory", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(limit: u64) -> MemoryWatch {
        let now = Instant::now();
        MemoryWatch {
            limit,
            began: now,
            last: now,
            most: 0,
            names: (None, 0),
            tables: None,
        }
    }

    /// Notes in which order things are given up: 600 names each time.
    #[derive(Default)]
    struct Noted(Vec<Next>);

    impl Holdings for Noted {
        fn give_up_names(&mut self) -> usize {
            self.0.push(Next::Names);
            600
        }

        fn stop_tables(&mut self) -> usize {
            self.0.push(Next::Tables);
            2
        }
    }

    #[test]
    fn names_are_given_up_first_then_tables_once_and_each_is_counted() {
        let mut watch = watch(100 << 20);
        let (began, mut noted) = (watch.began, Noted::default());
        let mut step = |watch: &mut MemoryWatch, mib: u64, seconds: u32| {
            watch.step(mib << 20, began + STEP * seconds, &mut noted);
            noted.0.clone()
        };
        assert_eq!(step(&mut watch, 80, 1), []);
        assert_eq!(watch.told(0).text, "80.0 MiB of 100.0 MiB allowed");
        assert_eq!(step(&mut watch, 95, 2), [Next::Names]);
        assert_eq!(step(&mut watch, 89, 3), [Next::Names]);
        let both = [Next::Names, Next::Tables];
        assert_eq!(step(&mut watch, 95, 4), both);
        assert_eq!(step(&mut watch, 95, 5), both);
        // Names that were found meanwhile.
        let all = [Next::Names, Next::Tables, Next::Names];
        assert_eq!(step(&mut watch, 95, 32), all);
        assert_eq!(step(&mut watch, 95, 33), all);
        assert_eq!(
            watch.told(5).text,
            "95.0 MiB of 100.0 MiB allowed; 1,200 names given up; from 4 s on 3 unwind tables given up for others"
        );
        step(&mut watch, 101, 34);
        let told = watch.told(5).text;
        let end = "more than allowed: what was sampled is kept; use shorter windows";
        assert!(
            told.starts_with("101.0 MiB") && told.ends_with(end),
            "{told}"
        );
    }
}
