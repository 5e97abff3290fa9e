//! A profiler's own use of CPU, memory and disk, and the waiting for it.
//!
//! In: a machine kept busy by a known load. Out: CPU time, memory and bytes on disk of a whole run; the time from its start
//! to its first sample, and from Ctrl-C to the end. Never counts what reading the profile in a viewer takes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};

use super::bpf::{Programs, Statistics};
use super::command::{MESSAGES, PRINTED};
use super::figure::{Table, Unit};
use super::peer::{Profiler, Recording, Request};
use super::{Bench, machine};

const RATE: u32 = 997;

/// How long is recorded.
const SECONDS: u32 = 10;

/// How often the kernel is asked whether the program ran; the figures are as coarse as this.
const STEP: Duration = Duration::from_micros(500);

/// CPU time, memory and disk.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let [cpu, peak, disk] = bench.each(&bench.all(), |profiler| {
        let _loads = bench.programs.loads(0..machine::cpus())?;
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let request = Request {
            rate: RATE,
            seconds: Some(SECONDS),
            cpu: None,
        };
        let used = profiler.record(request, folder.path())?;
        Ok([used.cpu_s, used.peak_mib, written(folder.path())?])
    })?;
    let title = format!("What {SECONDS} s of the whole machine at {RATE} Hz cost");
    let mut table = Table::new(title);
    table.compare("own CPU time", Unit::Seconds, cpu);
    table.compare("peak memory", Unit::Mebibytes, peak);
    table.compare("written to disk", Unit::Mebibytes, disk);
    table.note(
        "Every CPU is busy with hundreds of call paths of 5 to 36 frames. CPU time in user and kernel mode, of all processes \
         up to the graph, or to text where a peer draws none; memory resident in the largest of them, without BPF maps.",
    );
    Ok(table)
}

/// The MiB of all files in the folder, without messages and without text that a pipe could have taken.
fn written(folder: &Path) -> Result<f64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).context("cannot list what was written")? {
        let entry = entry.context("cannot list what was written")?;
        if ![PRINTED, MESSAGES]
            .iter()
            .any(|name| entry.file_name() == *name)
        {
            bytes += entry.metadata().map_or(0, |file| file.len());
        }
    }
    Ok(bytes as f64 / f64::from(1 << 20))
}

/// From start to the first sample.
pub(super) fn startup(bench: &Bench) -> Result<Table> {
    let _statistics = Statistics::keep()?;
    let cpus = machine::cpus();
    let _load = bench.programs.loads(cpus - 1..cpus)?;
    let [took] = bench.each(&bench.all(), |profiler| Ok([first(profiler)? * 1000.0]))?;
    let mut table = Table::new("From start to the first sample");
    table.compare("until sampling", Unit::Milliseconds, took);
    table.note(format!(
        "The whole machine at {RATE} Hz, with files in the cache; to 0.5 ms. flame-bpf: the first run of its program that the \
         kernel counts; perf: the first time it noted."
    ));
    Ok(table)
}

/// In seconds.
fn first(profiler: &Profiler) -> Result<f64> {
    if !profiler.uses_bpf {
        let start = clock_gettime(ClockId::Monotonic);
        let mut recording = Recording::settled(profiler, RATE, None)?;
        recording.discard()?;
        let start = start.tv_sec as f64 + start.tv_nsec as f64 / 1e9;
        return Ok(recording.first_sample()? - start);
    }
    let began = Instant::now();
    let mut recording = Recording::start(profiler, RATE, None)?;
    let mut programs = None;
    recording.wait_until(STEP, |pid| {
        // Looking through all descriptors takes time: not again once a program is found.
        let programs = programs.get_or_insert_with(|| Programs::of(pid));
        if programs.is_empty() {
            *programs = Programs::of(pid);
        }
        programs.runs().count > 0
    })?;
    let took = began.elapsed().as_secs_f64();
    recording.discard()?;
    Ok(took)
}
