//! Time that a profiler takes from processes that live for as short as can be.
//!
//! In: a program that makes processes on one CPU. Out: how much of that CPU the profiler's BPF program has, and how much the
//! profiler itself uses meanwhile. Never compares the storm's own speed: it changes by more than any profiler takes.

use std::time::Duration;

use anyhow::Result;

use super::figure::{Table, Unit};
use super::peer::{self, Profiler, Recording};
use super::workload::Kind;
use super::{Bench, bpf, interrupt, machine};

const RATE: u32 = 997;

/// Actions of the processes, and the numbers by which the program knows them.
const KINDS: [(&str, u32); 2] = [("fork, exit", 1), ("fork, exec, exit", 2)];

/// How long a storm takes, in seconds.
const SECONDS: f64 = 4.0;

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.start(Kind::Storm, cpu)?;
    // The floor: all are interrupted, and only this process, which waits, is recorded.
    let filter = format!("-p {}", std::process::id());
    let alone = peer::flame_bpf("interrupts alone", &bench.flame_bpf, &filter);
    let mut profilers = bench.all();
    profilers.retain(|(_, profiler)| profiler.uses_bpf);
    profilers.push((alone.name, &alone));
    let _statistics = bpf::Statistics::keep()?;
    let mut table = Table::new("What a storm of processes loses");
    for (does, kind) in KINDS {
        let processes = program.turns_for(kind, SECONDS, 500)?;
        let [in_program, own] = bench.each(&profilers, |profiler| {
            let mut recording = rested(profiler, RATE, Some(cpu))?;
            let pid = recording.process.pid();
            let programs = bpf::Programs::of(pid);
            let (used, ran) = (bpf::cpu_seconds(pid)?, programs.runs().ns);
            let seconds = program.work(kind, processes)?;
            let ran = (programs.runs().ns - ran) as f64 / 1e9;
            let used = bpf::cpu_seconds(pid)? - used;
            recording.discard()?;
            Ok([ran / seconds * 100.0, used / seconds * 100.0])
        })?;
        table.compare(
            &format!("{does}: in the BPF program"),
            Unit::Percent,
            in_program,
        );
        table.compare(&format!("{does}: own CPU time"), Unit::Percent, own);
        let rate = processes as f64 / SECONDS;
        table.note(format!("{does}: {rate:.0} processes a second."));
    }
    table.note(format!(
        "Of one CPU, {SECONDS} s at {RATE} Hz. \"{}\" is flame-bpf at work for a process that sleeps.",
        alone.name,
    ));
    Ok(table)
}

/// A profiler that samples and has got to know the machine: it has come to rest, or keeps on working.
fn rested(profiler: &Profiler, rate: u32, cpu: Option<usize>) -> Result<Recording<'_>> {
    let recording = Recording::settled(profiler, rate, cpu)?;
    let pid = recording.process.pid();
    for _ in 0..5 {
        let before = bpf::cpu_seconds(pid)?;
        interrupt::pause(Duration::from_millis(200))?;
        if bpf::cpu_seconds(pid)? - before < 0.004 {
            break;
        }
    }
    Ok(recording)
}
