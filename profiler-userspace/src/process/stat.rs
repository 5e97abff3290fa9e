//! State and use of a process or a thread, as `/proc` says it.
//!
//! In: its file `stat`. Out: the fields that somebody asks for.

use std::fs;

/// The fields of `/proc/ID/stat`; see `proc_pid_stat(5)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) cpu_ticks: u64,
    pub(crate) threads: u64,
    pub(crate) started_ticks: u64,
}

impl Stat {
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        // The name is in parentheses and may contain any characters; the last parenthesis ends it.
        let name_end = text.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            cpu_ticks: number(11)? + number(12)?,
            threads: number(17)?,
            started_ticks: number(19)?,
        })
    }

    /// That of a process or a thread.
    pub(crate) fn read(id: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{id}/stat")).ok()?)
    }

    /// For how many thousandths of its life it has run, at so many ticks since the machine was started.
    pub(crate) fn permille(self, now_ticks: u64) -> u64 {
        let life = now_ticks.saturating_sub(self.started_ticks).max(1);
        self.cpu_ticks.saturating_mul(1000) / life
    }

    /// A zombie has ended, unless it is the first thread of a process whose other threads go on.
    pub(crate) fn runs(self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x') || self.threads > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_whatever_its_name() {
        let line = b"42 (a ) S 9 (\xff\n) R 1 42 42 0 -1 4194304 95 0 0 0 7 5 0 0 20 0 3 0 100 1 1";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(
            stat,
            Stat {
                state: b'R',
                parent: 1,
                cpu_ticks: 12,
                threads: 3,
                started_ticks: 100
            }
        );
        assert_eq!(Stat::parse(b"42 (x) R 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn a_zombie_leader_runs_while_it_has_other_threads() {
        let stat = |state, threads| Stat {
            state,
            parent: 1,
            cpu_ticks: 0,
            threads,
            started_ticks: 0,
        };
        assert!(stat(b'S', 1).runs() && stat(b'Z', 2).runs());
        assert!(!stat(b'Z', 1).runs() && !stat(b'X', 1).runs());
    }
}
