//! Whether a PID still belongs to the process that was sampled.
//!
//! In: a process key, and when the process that now has its PID began, from `/proc/PID/stat`. A PID may be
//! reused before it is checked, by a process that was not sampled; its mappings are not those of the
//! sampled one.

use super::{ProcessKey, Stat};
use foldhash::HashMap;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// The inode number of the initial time namespace (`include/linux/proc_ns.h`, `PROC_TIME_INIT_INO`).
const INITIAL_TIME_NAMESPACE: u64 = 0xefff_fffa;

/// Unit of times in `/proc/PID/stat` (`include/asm-generic/param.h`, `USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// Which program runs under each PID.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// The latest incarnation seen under each PID: only that one can still be read.
    latest: HashMap<u32, u64>,
    /// Whether start times are comparable with incarnations.
    compares_start_times: bool,
}

impl Liveness {
    /// Has start times compared from now on, where this process sees them as the kernel half does.
    pub(super) fn compare_start_times(&mut self) {
        let namespace = fs::metadata("/proc/self/ns/time").map(|namespace| namespace.ino());
        // Before Linux 5.6 there are none.
        self.compares_start_times = namespace.is_ok_and(|inode| inode == INITIAL_TIME_NAMESPACE)
            || !fs::exists("/proc/self/ns/time").unwrap_or(true);
    }

    /// Notes that this program runs under its PID, or ran before the one that does.
    pub(super) fn note(&mut self, process_key: ProcessKey) {
        let latest = self
            .latest
            .entry(process_key.tgid)
            .or_insert(process_key.incarnation);
        *latest = process_key.incarnation.max(*latest);
    }

    /// Forgets a program.
    pub(super) fn forget(&mut self, process_key: ProcessKey) {
        if self.is_latest(process_key) {
            self.latest.remove(&process_key.tgid);
        }
    }

    /// Whether no later program was seen under the PID, so that `/proc` may still describe this one.
    pub(super) fn is_latest(&self, process_key: ProcessKey) -> bool {
        self.latest.get(&process_key.tgid) == Some(&process_key.incarnation)
    }

    /// Whether the process that now has the PID is this one.
    pub(super) fn is_there(&self, process_key: ProcessKey) -> bool {
        self.is_latest(process_key)
            && (!self.compares_start_times
                || process_key.incarnation == 0
                || began(process_key.tgid).is_some_and(|ticks| is_of(process_key, ticks)))
    }

    /// Whether it has surely ended, or runs another program.
    pub(super) fn has_gone(&self, process_key: ProcessKey) -> bool {
        !self.is_latest(process_key) || !runs(process_key.tgid)
    }
}

/// Whether a process has that PID. No signal is sent.
fn runs(tgid: u32) -> bool {
    if tgid == 0 {
        // The idle task has no PID, and no end.
        return true;
    }
    let Some(pid) = i32::try_from(tgid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    // Others than our own may be refused us, and are there.
    test_kill_process(pid) != Err(Errno::SRCH)
}

/// When it began, in ticks since boot.
fn began(tgid: u32) -> Option<u64> {
    Some(Stat::read(tgid)?.started_ticks)
}

/// Whether a process that began then is the one that was sampled.
fn is_of(process_key: ProcessKey, ticks: u64) -> bool {
    // The incarnation is nanoseconds since boot, and one more for each `exec`.
    let sampled = Duration::from_nanos(process_key.incarnation).as_nanos() / TICK.as_nanos();
    sampled.abs_diff(u128::from(ticks)) <= 1
}

#[cfg(test)]
mod tests {
    use super::super::{ProcessChange, Processes};
    use super::*;

    #[test]
    fn a_process_name_cannot_forge_its_start_time() {
        let stat =
            b"7 (a) 1 1) 1 2 3) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23 24\n";
        let began = |stat| Stat::parse(stat).map(|stat| stat.started_ticks);
        assert_eq!(began(stat), Some(4711));
        for stat in [&b""[..], b"7 (a", b"7 (a) S 1 2", b")"] {
            assert_eq!(began(stat), None);
        }
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let tgid = std::process::id();
        let ticks = began(tgid).unwrap();
        let ourselves = ProcessKey::new(tgid, ticks * u64::try_from(TICK.as_nanos()).unwrap() + 3);
        let predecessor = ProcessKey::new(tgid, ourselves.incarnation - 1_000_000_000);
        for (process_key, look) in [
            (ourselves, ProcessChange::Changed),
            (predecessor, ProcessChange::Gone),
        ] {
            let mut processes = Processes::new();
            processes.compare_start_times();
            if !processes.liveness.compares_start_times {
                return;
            }
            assert_eq!(processes.look(process_key), look);
        }
    }

    #[test]
    fn the_idle_task_never_ends() {
        assert!(runs(0));
        assert!(!runs(u32::MAX));
        assert!(runs(std::process::id()));
    }
}
