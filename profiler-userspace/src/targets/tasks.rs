//! The targets as `/proc` shows them: do they exist, do they still run, what have they used?

use crate::machine::Trouble;
use crate::plan::Target;
use crate::process::{Stat, Status};
use anyhow::{Result, anyhow, bail};
use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// Rejects a `/proc` that shows other processes than those we know by their IDs.
pub(crate) fn check_proc() -> Result<(), Trouble> {
    const MOUNT: &str = "mount -t proc proc /proc";
    let own = fs::read_link("/proc/self").ok();
    let own = own.and_then(|link| link.to_str()?.parse().ok());
    if own == Some(std::process::id()) {
        return Ok(());
    }
    if !std::path::Path::new("/proc/version").exists() {
        return Err(Trouble::command("/proc is not mounted", MOUNT));
    }
    Err(Trouble::command(
        "/proc is of another PID namespace, so it shows other processes than those here",
        MOUNT,
    ))
}

/// Rejects targets that do not exist, and threads given as processes. Of several, those that have ended are left out, and
/// returned.
pub(crate) fn without_ended(target: &mut Target) -> Result<Vec<u32>> {
    let (ids, check): (_, Check) = match target {
        Target::Processes(ids) => (ids, check_process),
        Target::Threads(ids) => (ids, check_thread),
        Target::All | Target::Launched | Target::Matching(_) | Target::Cgroups(_) => {
            return Ok(Vec::new());
        }
    };
    let (mut running, mut ended, mut first) = (Vec::new(), Vec::new(), None);
    for &id in &*ids {
        match check(id) {
            Ok(()) => running.push(id),
            Err(Unfit::Ended(error)) => {
                ended.push(id);
                first.get_or_insert(error);
            }
            Err(Unfit::Thread(error)) => return Err(error),
        }
    }
    match first {
        Some(error) if running.is_empty() => Err(error),
        _ => {
            *ids = running;
            Ok(ended)
        }
    }
}

/// Whether an ID is a target.
type Check = fn(u32) -> Result<(), Unfit>;

/// Why an ID is no target.
enum Unfit {
    /// Nothing that runs has it.
    Ended(anyhow::Error),
    /// It is a thread's, and not a process's.
    Thread(anyhow::Error),
}

fn check_process(pid: u32) -> Result<(), Unfit> {
    match process_of(pid) {
        Some(process) if process == pid => {
            runs_or_bail("process", "PID", pid).map_err(Unfit::Ended)
        }
        Some(process) => Err(Unfit::Thread(anyhow!(
            "{pid} is a thread of process {process}; use -t {pid} for that thread, or -p {process} for the whole process"
        ))),
        None => Err(Unfit::Ended(anyhow!(
            "there is no process with PID {pid}; `pgrep -a NAME` finds the PID of a program"
        ))),
    }
}

fn check_thread(tid: u32) -> Result<(), Unfit> {
    let found = match process_of(tid) {
        Some(_) => runs_or_bail("thread", "TID", tid),
        None => Err(anyhow!(
            "there is no thread with TID {tid}; `ps -L -p PID` lists the threads of a process"
        )),
    };
    found.map_err(Unfit::Ended)
}

fn runs_or_bail(noun: &str, id_noun: &str, id: u32) -> Result<()> {
    if Stat::read(id).is_some_and(Stat::runs) {
        return Ok(());
    }
    bail!(
        "the {noun} with {id_noun} {id} is a zombie: it has ended, and its parent has not reaped it"
    );
}

fn process_of(id: u32) -> Option<u32> {
    Status::of(id)?.number("Tgid:")
}

/// The given IDs, if there are any.
pub(crate) fn ids(target: &Target) -> &[u32] {
    match target {
        Target::Processes(ids) | Target::Threads(ids) => ids,
        // Processes in cgroups come and go.
        Target::All | Target::Launched | Target::Matching(_) | Target::Cgroups(_) => &[],
    }
}

/// Whether any of the given targets still runs.
pub(crate) fn any_runs(ids: &[u32]) -> bool {
    ids.iter().any(|&id| Stat::read(id).is_some_and(Stat::runs))
}

/// The CPU time used by the given targets since they began, without those that have ended.
pub(crate) fn cpu_time(ids: &[u32]) -> Duration {
    let ticks: u64 = ids
        .iter()
        .filter_map(|&id| Stat::read(id))
        .map(|stat| stat.cpu_ticks)
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
}

/// The PIDs of all processes that have used CPU time, the busiest first.
pub(crate) fn busiest() -> Vec<u32> {
    let mut used: Vec<(u64, u32)> = all()
        .filter(|(_, stat)| stat.cpu_ticks > 0)
        .map(|(pid, stat)| (stat.cpu_ticks, pid))
        .collect();
    used.sort_unstable_by(|left, right| right.cmp(left));
    used.into_iter().map(|(_, pid)| pid).collect()
}

/// The PIDs of all processes, each with its parent's.
pub(crate) fn parents() -> impl Iterator<Item = (u32, u32)> {
    all().map(|(pid, stat)| (pid, stat.parent))
}

/// All processes.
fn all() -> impl Iterator<Item = (u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, Stat::read(pid)?)))
}

/// The CPU time that each process had used at some moment.
pub(crate) struct CpuTimes(HashMap<u32, u64>);

impl CpuTimes {
    /// That of now.
    pub(crate) fn look() -> Self {
        Self(all().map(|(pid, stat)| (pid, stat.cpu_ticks)).collect())
    }

    /// The PIDs of processes that are likely to run in the next seconds: those that have run since then, the busiest first; then
    /// those that ran for a noticeable share of their lives.
    pub(crate) fn likely_to_run(&self) -> Vec<u32> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let per_second = rustix::param::clock_ticks_per_second();
        let now = u64::try_from(now.tv_sec).unwrap_or(0) * per_second;
        let mut likely: Vec<(u64, u64, u32)> = all()
            .map(|(pid, stat)| {
                let before = self.0.get(&pid).copied().unwrap_or(0);
                let since = stat.cpu_ticks.saturating_sub(before);
                (since, stat.permille(now), pid)
            })
            .filter(|&(since, permille, _)| since > 0 || permille > 0)
            .collect();
        likely.sort_unstable_by(|left, right| right.cmp(left));
        likely.into_iter().map(|(_, _, pid)| pid).collect()
    }
}

/// The name of a process or thread.
pub(crate) fn comm(id: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{id}/comm")).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Some(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_likely_to_run_if_it_has_run_lately_or_often() {
        let stat = |cpu_ticks, started_ticks| Stat {
            state: b'S',
            parent: 1,
            cpu_ticks,
            threads: 1,
            started_ticks,
        };
        assert_eq!(stat(50, 1000).permille(2000), 50);
        assert_eq!(stat(1, 0).permille(100_000), 0);
        assert_eq!(
            stat(3, 2000).permille(2000),
            3000,
            "its clock is a coarse one"
        );
        let before = CpuTimes::look();
        let began = std::time::Instant::now();
        let own = std::process::id();
        while !before.likely_to_run().contains(&own) {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
    }

    #[test]
    fn this_process_exists_and_uses_cpu() {
        let own = std::process::id();
        let mut target = Target::Processes(vec![u32::MAX - 1, own]);
        assert_eq!(without_ended(&mut target).unwrap(), [u32::MAX - 1]);
        assert_eq!(target, Target::Processes(vec![own]));
        assert!(any_runs(&[own]) && !any_runs(&[]));
        let error = without_ended(&mut Target::Processes(vec![u32::MAX - 1]))
            .unwrap_err()
            .to_string();
        assert!(error.contains(&(u32::MAX - 1).to_string()), "{error}");
    }
}
