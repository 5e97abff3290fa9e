//! The flags of what threads begin and end: system calls, I/O, waiting for locks.
//!
//! In: what was typed. Out: the [`Probe`], or a sentence about flags that do not go together. Never: looks at
//! the machine.

use super::flags::first_given;
use crate::probe::{Io, Locks, Probe};
use anyhow::{Result, bail};
use profiler_common::abi::{CallWeight, FileKinds};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Calls and locks")]
pub(super) struct CallArgs {
    /// Show who makes system calls: count [default] or latency
    #[arg(
        long, value_name = "WHAT", value_parser = calls, num_args = 0..=1, require_equals = true,
        default_missing_value = "count"
    )]
    syscalls: Option<CallWeight>,
    /// Show who reads, writes and syncs files, mmap included: latency [default], bytes or count
    #[arg(
        long, value_name = "WHAT", value_parser = weight, num_args = 0..=1, require_equals = true,
        default_missing_value = "latency"
    )]
    io: Option<CallWeight>,
    /// Limit --io to files [default, with block devices], sockets, pipes, or all
    #[arg(long, value_name = "KINDS", value_parser = kinds)]
    io_kind: Option<FileKinds>,
    /// With --io, add the file's name as the leaf
    #[arg(long)]
    io_files: bool,
    /// Show who waits for locks, and for how long: kernel, user, or all [default]
    #[arg(
        long, value_name = "WHOSE", value_parser = locks, num_args = 0..=1, require_equals = true,
        default_missing_value = "all"
    )]
    locks: Option<Locks>,
    /// Show who allocates memory, in bytes: malloc and the like
    #[arg(long)]
    alloc: bool,
}

impl CallArgs {
    /// The probe that was asked for, if one of these was, and by which flag.
    pub(super) fn probe(&self) -> Result<Option<(&'static str, Probe)>> {
        let io = self.io.map(|weight| {
            Probe::Io(Io {
                weight,
                kinds: self.io_kind.unwrap_or(FileKinds::FILES),
                names: self.io_files,
            })
        });
        let given = [
            ("--syscalls", self.syscalls.map(Probe::Calls)),
            ("--io", io),
            ("--locks", self.locks.map(Probe::Locks)),
            ("--alloc", self.alloc.then_some(Probe::Allocations)),
        ];
        let mut given = given
            .into_iter()
            .filter_map(|(flag, probe)| Some((flag, probe?)));
        let first = given.next();
        if let (Some((one, _)), Some((other, _))) = (&first, given.next()) {
            bail!("{one} does not go with {other}: a recording has one probe; record twice");
        }
        if self.io.is_none() {
            let about_io = [
                ("--io-kind", self.io_kind.is_some()),
                ("--io-files", self.io_files),
            ];
            if let Some(flag) = first_given(about_io) {
                bail!("{flag} is about reading and writing; add --io");
            }
        }
        Ok(first)
    }
}

fn calls(text: &str) -> Result<CallWeight, String> {
    match text {
        "count" => Ok(CallWeight::One),
        "latency" => Ok(CallWeight::Time),
        _ => Err("unknown; use count or latency".to_owned()),
    }
}

fn weight(text: &str) -> Result<CallWeight, String> {
    match text {
        "bytes" => Ok(CallWeight::Bytes),
        _ => calls(text).map_err(|_| "unknown; use latency, bytes or count".to_owned()),
    }
}

fn kinds(text: &str) -> Result<FileKinds, String> {
    text.split(',').try_fold(FileKinds(0), |kinds, word| {
        let kind = match word {
            "files" => FileKinds::FILES,
            "sockets" => FileKinds::SOCKETS,
            "pipes" => FileKinds::PIPES,
            "all" => FileKinds::ALL,
            _ => return Err("unknown; use files, sockets, pipes or all".to_owned()),
        };
        Ok(kinds.with(kind))
    })
}

fn locks(text: &str) -> Result<Locks, String> {
    let (kernel, user) = match text {
        "kernel" => (true, false),
        "user" => (false, true),
        "all" => (true, true),
        _ => return Err("unknown; use kernel, user or all".to_owned()),
    };
    Ok(Locks { kernel, user })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_names_are_parsed() {
        assert_eq!(calls("count"), Ok(CallWeight::One));
        assert_eq!(weight("bytes"), Ok(CallWeight::Bytes));
        assert_eq!(kinds("files,pipes").unwrap().0, 0b101);
        assert_eq!(kinds("all"), Ok(FileKinds::ALL));
        assert!(locks("all").is_ok_and(|locks| locks.kernel && locks.user));
        for (refusal, answer) in [
            (calls("bytes").unwrap_err(), "latency"),
            (weight("x").unwrap_err(), "bytes"),
            (kinds("files,").unwrap_err(), "sockets"),
            (locks("mine").unwrap_err(), "kernel"),
        ] {
            assert!(refusal.contains(answer), "{refusal}");
        }
    }
}
