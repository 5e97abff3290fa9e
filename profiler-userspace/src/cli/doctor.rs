//! The command line of `flame-bpf doctor`.
//!
//! In: its flags. Out: what is to be tried, each written as the command line of a recording. Never tries anything.

use super::{Args, plan, value};
use crate::plan::{Doctoring, Plan};
use anyhow::{Context as _, Result};
use clap::Parser as _;

/// Try what can be recorded here, and say what mends the rest; exit 0: all works, 1: something is missing, 2: nothing works
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Try it on these processes, with their files and symbols
    #[arg(short, long, value_name = "PID[,PID]", value_parser = value::pids, allow_negative_numbers = true)]
    pid: Vec<value::Ids>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Recordings to try beside that of on-CPU time, each with its flags. Unwind tables are tried there.
const OTHERS: [(&str, &str); 6] = [
    ("waits", "--off-wake"),
    ("wall time", "--wall"),
    ("I/O", "--io --io-files"),
    ("system calls", "--syscalls"),
    ("locks", "--locks"),
    // A function that every program has, such as this one.
    ("functions", "-e uprobe:flame-bpf:main"),
];

/// Everything that is to be tried.
pub(super) fn build(args: &DoctorArgs) -> Result<Doctoring> {
    let pids = args.pid.iter().flat_map(|ids| &ids.0);
    let pids: Vec<String> = pids.map(u32::to_string).collect();
    let target = match pids.is_empty() {
        true => "-a".to_owned(),
        false => format!("-p {}", pids.join(",")),
    };
    let others = OTHERS.iter().map(|(name, flags)| {
        Ok((
            (*name).to_owned(),
            recording(&format!("-p 1 {flags} --call-graph fp --no-runtimes"))?,
        ))
    });
    Ok(Doctoring {
        sampling: recording(&target)?,
        others: others.collect::<Result<_>>()?,
        json: args.json,
    })
}

/// The plan that flags ask for.
fn recording(flags: &str) -> Result<Plan> {
    let words = std::iter::once("flame-bpf").chain(flags.split(' '));
    let args = Args::try_parse_from(words).with_context(|| format!("flame-bpf {flags}"))?;
    plan::build(args.record, true, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Task, parse};
    use crate::plan::Target;
    use std::ffi::OsString;

    #[test]
    fn every_kind_of_recording_is_tried() {
        for (line, target, json) in [
            ("doctor", Target::All, false),
            ("doctor --json -p 7,8", Target::Processes(vec![7, 8]), true),
        ] {
            let words = std::iter::once("flame-bpf").chain(line.split(' '));
            let task = parse(words.map(OsString::from), true);
            let Ok(Task::Doctor(doctoring)) = task else {
                panic!("{line}: {task:?}");
            };
            assert_eq!(doctoring.sampling.target, target);
            assert_eq!(doctoring.json, json);
            assert_eq!(doctoring.others.len(), OTHERS.len());
        }
    }
}
