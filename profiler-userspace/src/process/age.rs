//! Whether a PID is still worn by the process that was sampled.
//!
//! In: an identity, and when the process that now has its PID began, from `/proc/PID/stat`. A PID may be given out
//! again before anybody looks, to a process that was not sampled itself; what that one maps is not what
//! the other did.

use super::{Identity, Processes};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// The inode number of the initial time namespace (`include/linux/proc_ns.h`, `PROC_TIME_INIT_INO`).
const INITIAL_TIME_NAMESPACE: u64 = 0xefff_fffa;

/// What `/proc/PID/stat` counts time in (`include/asm-generic/param.h`, `USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

impl Processes {
    /// From now on, looks at a PID only if the process that has it is as old as the one that was sampled. Where
    /// `/proc` tells of other times than the kernel half, as in a time namespace, that cannot be done.
    pub fn compare_ages(&mut self) {
        let namespace = fs::metadata("/proc/self/ns/time").map(|namespace| namespace.ino());
        // Before Linux 5.6 there are none.
        self.compares_ages = namespace.is_ok_and(|inode| inode == INITIAL_TIME_NAMESPACE)
            || !fs::exists("/proc/self/ns/time").unwrap_or(true);
    }

    /// Whether `/proc` tells of this one right now.
    pub(super) fn is_there(&self, identity: Identity) -> bool {
        self.is_current(identity)
            && (!self.compares_ages
                || identity.incarnation == 0
                || began(identity.tgid).is_some_and(|ticks| is_of(identity, ticks)))
    }
}

/// When the process that has the PID began, in ticks since boot.
fn began(tgid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{tgid}/stat")).ok()?;
    parse(&stat)
}

/// The twenty-second field (`Documentation/filesystems/proc.rst`). The second, in parentheses, may hold anything.
fn parse(stat: &[u8]) -> Option<u64> {
    let behind = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = stat[behind..].split(|&byte| byte == b' ').skip(1);
    str::from_utf8(fields.nth(19)?).ok()?.parse().ok()
}

/// Whether a process that began then is the one that was sampled.
fn is_of(identity: Identity, ticks: u64) -> bool {
    // The incarnation is nanoseconds since boot, and one more for each `exec`.
    let sampled = Duration::from_nanos(identity.incarnation).as_nanos() / TICK.as_nanos();
    sampled.abs_diff(u128::from(ticks)) <= 1
}

#[cfg(test)]
mod tests {
    use super::super::Look;
    use super::*;

    #[test]
    fn a_process_name_cannot_forge_its_start_time() {
        let stat =
            b"7 (a) 1 1) 1 2 3) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23 24\n";
        assert_eq!(parse(stat), Some(4711));
        for stat in [&b""[..], b"7 (a", b"7 (a) S 1 2", b")"] {
            assert_eq!(parse(stat), None);
        }
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let tgid = std::process::id();
        let ticks = began(tgid).unwrap();
        let ourselves = Identity {
            tgid,
            incarnation: ticks * u64::try_from(TICK.as_nanos()).unwrap() + 3,
        };
        let predecessor = Identity {
            incarnation: ourselves.incarnation - 1_000_000_000,
            ..ourselves
        };
        for (identity, look) in [(ourselves, Look::Changed), (predecessor, Look::Gone)] {
            let mut processes = Processes::new();
            processes.compare_ages();
            if !processes.compares_ages {
                return;
            }
            assert_eq!(processes.look(identity), look);
        }
    }
}
