//! The kernel's statistics of running BPF programs.
//!
//! In: a process ID. Out: the CPU time of its threads, how often its programs ran, how long that took, and how much memory
//! its maps hold. The kernel keeps the times only while [`Statistics`] lives.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// `BPF_PROG_TYPE_PERF_EVENT`: the programs that sample, among all that a profiler loads.
const PERF_EVENT: &str = "7";

/// Has the kernel keep statistics; puts the setting back when dropped.
pub(super) struct Statistics {
    before: String,
}

impl Statistics {
    /// Switches them on.
    pub(super) fn keep() -> Result<Self> {
        let before = fs::read_to_string(SWITCH).with_context(|| format!("cannot read {SWITCH}"))?;
        fs::write(SWITCH, "1").with_context(|| format!("cannot write {SWITCH}"))?;
        Ok(Self { before })
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        fs::write(SWITCH, &self.before).ok();
    }
}

/// The sampling programs of one process.
pub(super) struct Programs {
    // Two descriptors may stand for one program.
    files: Vec<(String, PathBuf)>,
}

/// Runs of such programs.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct Runs {
    /// How often they were run.
    pub(super) count: u64,
    /// How long that took, in nanoseconds.
    pub(super) ns: u64,
}

impl Programs {
    /// Those that process `pid` holds now.
    pub(super) fn of(pid: u32) -> Self {
        let mut files: Vec<(String, PathBuf)> = Vec::new();
        for path in descriptors(pid) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if let (Some(PERF_EVENT), Some(id)) =
                (field(&text, "prog_type"), field(&text, "prog_id"))
                && files.iter().all(|(known, _)| known != id)
            {
                files.push((id.to_owned(), path));
            }
        }
        Self { files }
    }

    /// Whether there is one.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Their runs since they were loaded, or since statistics are kept.
    pub(super) fn runs(&self) -> Runs {
        let mut sum = Runs::default();
        for (_, path) in &self.files {
            let text = fs::read_to_string(path).unwrap_or_default();
            sum.count += number(&text, "run_cnt");
            sum.ns += number(&text, "run_time_ns");
        }
        sum
    }
}

/// The memory, in bytes, of all maps that process `pid` holds.
pub(super) fn map_bytes(pid: u32) -> u64 {
    let mut known: Vec<(String, u64)> = Vec::new();
    for path in descriptors(pid) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if let Some(id) = field(&text, "map_id")
            && known.iter().all(|(other, _)| other != id)
        {
            known.push((id.to_owned(), number(&text, "memlock")));
        }
    }
    known.iter().map(|(_, bytes)| bytes).sum()
}

/// The CPU time, in seconds, that the threads of a process have used so far.
///
/// # Errors
/// When it has ended.
pub(super) fn cpu_seconds(pid: u32) -> Result<f64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).context("it has ended early")?;
    let of = |thread: fs::DirEntry| -> Option<f64> {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    Ok(threads.flatten().filter_map(of).sum::<f64>() / 1e9)
}

/// Whether process `pid` holds a perf event, or a link from one to a program: it is about to sample.
pub(super) fn has_perf_event(pid: u32) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    descriptors.flatten().any(|entry| {
        fs::read_link(entry.path()).is_ok_and(|target| {
            ["anon_inode:[perf_event]", "anon_inode:bpf_link"]
                .iter()
                .any(|kind| target.as_os_str() == *kind)
        })
    })
}

fn descriptors(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

fn field<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(str::trim)
}

fn number(text: &str, name: &str) -> u64 {
    field(text, name)
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "pos:\t0\nprog_type:\t7\nrun_time_ns:\t1234\nrun_cnt:\t5\n";
        assert_eq!(field(text, "prog_type"), Some("7"));
        assert_eq!(field(text, "prog"), None);
        assert_eq!(
            (number(text, "run_cnt"), number(text, "run_time_ns")),
            (5, 1234)
        );
        assert_eq!(number(text, "absent"), 0);
    }
}
