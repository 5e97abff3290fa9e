//! Keeps a recording to the memory that it may take.
//!
//! In: `--max-memory`, and each second what this process and its BPF maps take. Out: names given up, and no more room for unwind
//! tables, where it gets scarce; and what to say of it at the end. Samples are never given up.

use crate::kernel::{Kernel, Tables};
use crate::pipeline::window::Pipeline;
use crate::plan::Plan;
use crate::report::findings::Finding;
use crate::text::number::{counted, mebibytes};
use crate::unwind::loader::TableLoader;
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
    /// Since when unwind tables have no more room.
    tables: Option<Duration>,
}

/// The next to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Names,
    Tables,
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
        self.last = now;
        let of_tables = tables.map_or(0, |tables| tables.loaded().bytes);
        let taken = resident() + kernel.map_bytes() + of_tables;
        match self.next(taken, now) {
            Some(Next::Names) => {
                self.names.0 = Some(now);
                self.names.1 += pipeline.forget();
            }
            Some(Next::Tables) => {
                self.tables = Some(self.began.elapsed());
                if let Some(tables) = tables {
                    tables.stop_growing();
                }
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
    pub(super) fn finding(&self) -> Finding {
        let mut text = format!(
            "{} of {} allowed",
            mebibytes(self.most),
            mebibytes(self.limit)
        );
        if self.names.1 > 0 {
            let names = counted(self.names.1 as u64, "name");
            text.push_str(&format!("; {names} given up"));
        }
        if let Some(since) = self.tables {
            text.push_str(&format!(
                "; from {:.0} s on unwind tables made room for each other",
                since.as_secs_f64()
            ));
        }
        if self.most > self.limit {
            text.push_str("; more than allowed: what was sampled is kept; use shorter windows");
        }
        Finding::new("memory", text)
    }
}

/// Memory of this process, in bytes; `statm` counts pages (`proc_pid_statm(5)`).
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
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

    #[test]
    fn names_go_first_and_tables_once() {
        let mut watch = watch(100 << 20);
        let now = Instant::now();
        assert_eq!(watch.next(80 << 20, now), None);
        assert_eq!(watch.next(95 << 20, now), Some(Next::Names));
        watch.names.0 = Some(now);
        assert_eq!(watch.next(95 << 20, now + STEP), Some(Next::Tables));
        watch.tables = Some(STEP);
        assert_eq!(watch.next(95 << 20, now + STEP * 2), None);
        assert_eq!(watch.next(95 << 20, now + NAMES_KEPT), Some(Next::Names));
    }

    #[test]
    fn what_was_given_up_is_said() {
        let mut watch = watch(100 << 20);
        watch.next(50 << 20, Instant::now());
        assert_eq!(watch.finding().text, "50.0 MiB of 100.0 MiB allowed");
        watch.names = (None, 1200);
        watch.tables = Some(Duration::from_secs(7));
        watch.most = 101 << 20;
        assert_eq!(
            watch.finding().text,
            "101.0 MiB of 100.0 MiB allowed; 1,200 names given up; from 7 s on unwind tables made room for each \
             other; more than allowed: what was sampled is kept; use shorter windows"
        );
    }

    #[test]
    fn this_process_takes_memory() {
        assert!(resident() > 1 << 20);
    }
}
