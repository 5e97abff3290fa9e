//! Code that a runtime made, read from the process while it runs, or from the jitdump that it left.
//!
//! In: a function's name, the process, and addresses. Out: its instructions as they are now, or were last. Never: code that
//! the process's perf map or jitdump gives another name by now; both, and the memory, are written by the program being
//! profiled.

use super::counted::Counted;
use super::{Code, NO_LINES};
use crate::code::listing::{MAX_BYTES, Stretch};
use crate::object::RegularFile;
use crate::process::{ProcessChange, ProcessKey, Processes};
use crate::profile::fold::visible;
use crate::symbolize::{MadeCode, dumped_code, made_code, made_in_dump};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The code of a function in a process of this ID and start.
pub(super) fn read(name: &str, (pid, start): (u32, u64), counted: &Counted) -> Result<Code> {
    let shown = visible(name);
    let process_key = ProcessKey::new(pid, start);
    let mut processes = Processes::new();
    processes.compare_start_times();
    if processes.look(process_key) == ProcessChange::Gone {
        bail!(
            "the code of `{shown}` was made by process {pid}, which has ended, and recordings do not keep it; annotate \
             while it runs: flame-bpf annotate '{shown}' -p PID -d 5, or name the jitdump that it wrote with --jitdump"
        );
    }
    let addresses: Vec<u64> = counted.addresses.keys().copied().collect();
    let is_it = |made: &MadeCode| made.name == name;
    let made = made_code(&mut processes, process_key, &addresses);
    let made: HashSet<Range<u64>> = (made.into_iter().flatten())
        .filter(is_it)
        .map(|made| made.code)
        .collect();
    ensure!(
        !made.is_empty(),
        "the code of `{shown}` is not where it was in process {pid}: its runtime has made it anew or thrown it away; \
         annotate while it is in use: flame-bpf annotate '{shown}' -p {pid} -d 5"
    );
    let memory = File::open(format!("/proc/{pid}/mem")).with_context(|| {
        format!(
            "the memory of process {pid} cannot be read; run with sudo, or grant CAP_SYS_PTRACE"
        )
    })?;
    let mut made: Vec<(Range<u64>, u64)> = made
        .into_iter()
        .map(|code| (code.clone(), code.start))
        .collect();
    made.sort_unstable_by_key(|(code, _)| (code.start, code.end));
    let stretches = stretches(&memory, &made);
    ensure!(
        !stretches.is_empty(),
        "the code of `{shown}` is not in the memory of process {pid} any more; annotate again while it runs"
    );
    let of = format!("process {pid}, as it is now");
    let calls = |targets: &[u64]| made_code(&mut processes, process_key, targets);
    Ok(code(of, stretches, calls))
}

/// The same from a jitdump, or from that of this process in a directory.
pub(super) fn read_dumped(name: &str, pid: u32, counted: &Counted, path: &Path) -> Result<Code> {
    let within = path.join(format!("jit-{pid}.dump"));
    let path = if path.is_dir() { &*within } else { path };
    let shown_path = visible(&path.display().to_string()).into_owned();
    let dump = RegularFile::open(path).with_context(|| format!("cannot open {shown_path}"))?;
    let addresses: Vec<u64> = counted.addresses.keys().copied().collect();
    let stretches = stretches(&dump.file, &dumped_code(&dump.file, pid, name, &addresses));
    ensure!(
        !stretches.is_empty(),
        "{shown_path} has no code `{}` where process {pid} was recorded in it: it is the dump of another process, or the \
         code was moved",
        visible(name)
    );
    let of = format!("{shown_path}, as process {pid} made it");
    let calls = |targets: &[u64]| made_in_dump(&dump.file, targets);
    Ok(code(of, stretches, calls))
}

/// Code with the names of the functions that it calls, which `made` tells for ascending addresses.
fn code(
    of: String,
    stretches: Vec<Stretch>,
    made: impl FnOnce(&[u64]) -> Vec<Option<MadeCode>>,
) -> Code {
    let mut targets: Vec<u64> = stretches.iter().flat_map(Stretch::targets).collect();
    targets.sort_unstable();
    targets.dedup();
    let names = made(&targets);
    let begins = |(target, made): (u64, Option<MadeCode>)| {
        let made = made.filter(|made| made.code.start == target)?;
        Some((target, made.name))
    };
    Code {
        of,
        object: None,
        names: targets.into_iter().zip(names).filter_map(begins).collect(),
        places: HashMap::new(),
        base: 0,
        stretches,
        without_lines: format!("{NO_LINES}: code made at run time has none"),
    }
}

/// The code at ascending addresses, each with the place where a file has it.
fn stretches(file: &File, all: &[(Range<u64>, u64)]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (code, at) in all {
        // A file that contradicts itself may say that functions overlap.
        let known = stretches.last().map_or(0, |last| last.addresses.end);
        if code.start >= known {
            stretches.extend(stretch(file, code, *at));
        }
    }
    stretches
}

/// The code at some addresses, as far as it can be read where a file has it.
fn stretch(file: &File, code: &Range<u64>, at: u64) -> Option<Stretch> {
    let length = code.end.saturating_sub(code.start).min(MAX_BYTES);
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], at.checked_add(read as u64)?) {
            Ok(more) if more > 0 => read += more,
            _ => break,
        }
    }
    bytes.truncate(read);
    Stretch::of(&bytes, code.start)
}
