//! What a profiler takes from processes that live for as short as can be.
//!
//! In: a program that makes a fixed number of processes on one CPU. Out: how much more CPU time they and it take; how much
//! of that the profiler's BPF program has; and what the profiler uses for itself meanwhile.
//!
//! Storms are fast at one moment and slow at another, by more than any profiler takes. So they are short and many: each
//! profiled one is compared with the bare ones just before and after it, and the median of several such comparisons is one
//! measurement. Never counts time in which something else had the CPU.

use std::time::Duration;

use anyhow::Result;

use super::figure::{Figure, Table, Unit};
use super::peer::{self, Profiler, Recording};
use super::workload::{Kind, Workload};
use super::{Bench, bpf, interrupt, machine};

/// Samples a second on each CPU: what is asked for where details matter, and what is usual.
const RATES: [u32; 2] = [997, 99];

/// What the processes do, and the number by which the program knows it.
const KINDS: [(&str, u32); 2] = [("fork, exit", 1), ("fork, exec, exit", 2)];

/// How long a storm takes, in seconds.
const STORM: f64 = 0.5;

/// How many times as long the storm is beside which the profiler itself is measured.
const LONG: u64 = 8;

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.start(Kind::Storm, cpu)?;
    // What no profiler can lower: everybody is interrupted, and only this process, which waits, is recorded.
    let filter = format!("-p {}", std::process::id());
    let alone = peer::flame_bpf("interrupts alone", &bench.flame_bpf, &filter);
    let profilers: Vec<&Profiler> = bench.profilers.iter().chain([&alone]).collect();
    let _statistics = bpf::Statistics::keep()?;
    let storms = if bench.quick { 1 } else { 8 };
    let mut table = Table::new("What a storm of processes loses");
    for (does, kind) in KINDS {
        let processes = program.turns_for(kind, STORM, 500)?;
        table.note(format!(
            "\"{does}\": {:.0} processes a second.",
            processes as f64 / STORM
        ));
        for rate in RATES {
            let [more, in_program, own] = bench.each(&profilers, |profiler| {
                let mut more = Figure::default();
                for _ in 0..storms {
                    more.add(slowdown(profiler, rate, &mut program, kind, processes)?);
                }
                let mut recording = rested(profiler, rate, Some(cpu))?;
                let pid = recording.process.pid();
                let programs = bpf::Programs::of(pid);
                let (used, ran) = (bpf::cpu_seconds(pid)?, programs.runs().ns);
                let seconds = program.work(kind, processes * LONG)?;
                let ran = (programs.runs().ns - ran) as f64 / 1e9;
                let used = bpf::cpu_seconds(pid)? - used;
                recording.discard()?;
                Ok([more.median(), ran / seconds * 100.0, used / seconds * 100.0])
            })?;
            let what = format!("\"{does}\" at {rate} Hz");
            table.compare(&format!("slowdown of {what}"), Unit::Percent, more);
            table.compare("of that, in the BPF program", Unit::Percent, in_program);
            table.compare("own CPU time, of one CPU", Unit::Percent, own);
        }
    }
    table.note(format!(
        "CPU time of one process after the other on CPU {cpu}, all CPUs being sampled. {storms} storms of {STORM} s a run, \
         each between two bare ones; and one of {} s for the rows below the first. \"{}\" is flame-bpf at work for a process \
         that sleeps.",
        STORM * LONG as f64,
        alone.name,
    ));
    Ok(table)
}

/// How much more CPU time a profiled storm takes, in hundredths.
fn slowdown(
    profiler: &Profiler,
    rate: u32,
    program: &mut Workload,
    kind: u32,
    processes: u64,
) -> Result<f64> {
    let before = program.work(kind, processes)?;
    let mut recording = rested(profiler, rate, None)?;
    let profiled = program.work(kind, processes)?;
    recording.discard()?;
    let after = program.work(kind, processes)?;
    Ok((profiled / f64::midpoint(before, after) - 1.0) * 100.0)
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
