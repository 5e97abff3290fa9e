//! What a profiler takes from processes that live for as short as can be.
//!
//! In: a program that makes a fixed number of processes on one CPU. Out: how much more CPU time they and it take; how much of
//! that the profiler's BPF program has; and what the profiler uses for itself meanwhile.
//!
//! Storms are fast at one moment and slow at another, by more than any profiler takes. So they are short and many: each
//! profiled one is compared with the bare ones just before and after it, and the median of several such comparisons is one
//! measurement. Time in which something else had the CPU does not count.

use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::time::TimeValLike as _;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

use super::figure::{Figure, Table, Unit};
use super::program::Stack;
use super::recording::Recording;
use super::tool::{Order, Tool};
use super::{Bench, bpf, machine, patience};

/// Samples a second on each CPU: what is asked for where details matter, and what flame-bpf does unless told, which is
/// what is left running.
const RATES: [u32; 2] = [997, 99];

/// What the processes do, and the number by which the program knows it.
const KINDS: [(&str, u32); 2] = [("fork, exit", 1), ("fork, exec, exit", 2)];

/// How long a storm takes, in seconds.
const STORM: f64 = 0.5;

/// How many profiled storms make one measurement, unless it is to be quick.
const STORMS: u32 = 8;

/// How many times as long the storm is beside which it is measured what the profiler itself uses.
const LONG: u64 = 8;

/// What one tool took, in each of its runs.
#[derive(Default)]
struct Taken {
    percent: Figure,
    /// By its BPF program, of the storm's CPU.
    program: Figure,
    /// By the tool itself, in hundredths of one CPU.
    own: Figure,
}

/// A storm of a fixed size.
struct Storm {
    cpu: usize,
    kind: u32,
    processes: u64,
    /// How often it is sampled.
    rate: u32,
}

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.storm(cpu)?;
    // What no profiler can lower: everybody is interrupted, and nobody looked at but us, who wait.
    let alone = Tool::flame_bpf_of(&bench.flame_bpf, std::process::id());
    let tools: Vec<&Tool> = bench.tools.iter().chain([&alone]).collect();
    let _statistics = bpf::Statistics::keep()?;
    let mut table = Table::new("What a storm of processes loses");
    let mut numbers = Vec::new();
    for (does, kind) in KINDS {
        let processes = processes_for(&mut program, kind)?;
        let each_second = processes as f64 / STORM;
        numbers.push(format!("{each_second:.0} a second of \"{does}\""));
        for rate in RATES {
            let storm = Storm {
                cpu,
                kind,
                processes,
                rate,
            };
            let all = take(bench, &tools, &storm, &mut program)?;
            let figures = |of: fn(&Taken) -> &Figure| {
                let with_names = tools.iter().zip(&all);
                let with_names =
                    with_names.map(move |(tool, taken)| (tool.name, of(taken).clone()));
                with_names.filter(|(_, figure)| !figure.is_empty())
            };
            table.compare(
                &format!("slowdown of \"{does}\" at {rate} Hz"),
                Unit::Percent,
                figures(|taken| &taken.percent),
            );
            table.compare(
                "of that, in the BPF program",
                Unit::Percent,
                figures(|taken| &taken.program),
            );
            table.compare(
                "own CPU time meanwhile, of one CPU",
                Unit::Percent,
                figures(|taken| &taken.own),
            );
        }
    }
    table.note(format!(
        "CPU time of one process after the other on CPU {cpu}, {}; all CPUs being sampled. {} storms of {STORM} s a run, \
         each between two bare ones; and one of {} s for the rows below the first. \"{}\" is flame-bpf at work for a process \
         that sleeps.",
        numbers.join(" and "),
        storms(bench),
        STORM * LONG as f64,
        alone.name,
    ));
    Ok(table)
}

/// How many profiled storms make one measurement.
fn storms(bench: &Bench) -> u32 {
    if bench.quick { 1 } else { STORMS }
}

/// What each of the tools took.
fn take(bench: &Bench, tools: &[&Tool], storm: &Storm, program: &mut Stack) -> Result<Vec<Taken>> {
    let mut all: Vec<Taken> = tools.iter().map(|_| Taken::default()).collect();
    for _ in 0..bench.runs {
        for (tool, taken) in tools.iter().zip(&mut all) {
            let percent = slowdown(tool, storm, program, storms(bench))?;
            taken.percent.add(percent);
            use_up(tool, storm, program, taken)?;
        }
    }
    Ok(all)
}

/// How many processes take about as long as a storm.
fn processes_for(program: &mut Stack, kind: u32) -> Result<u64> {
    const TRIAL: u32 = 500;
    // The first ones bring everything into the caches.
    program.work(kind, TRIAL.into())?;
    let trial = program.work(kind, TRIAL.into())?;
    Ok((f64::from(TRIAL) * STORM / trial).max(1.0) as u64)
}

/// How much more CPU time storms take that are profiled, in hundredths: the median of so many.
fn slowdown(tool: &Tool, storm: &Storm, program: &mut Stack, storms: u32) -> Result<f64> {
    let mut more = Figure::default();
    let mut before = program.work(storm.kind, storm.processes)?;
    for _ in 0..storms {
        let mut recording = begin(tool, storm.rate, None)?;
        let profiled = program.work(storm.kind, storm.processes)?;
        recording.interrupt()?;
        patience::pause(Duration::from_millis(100))?;
        let after = program.work(storm.kind, storm.processes)?;
        more.add((profiled / f64::midpoint(before, after) - 1.0) * 100.0);
        before = after;
    }
    Ok(more.median())
}

/// What the tool and its BPF program use beside a long storm.
fn use_up(tool: &Tool, storm: &Storm, program: &mut Stack, taken: &mut Taken) -> Result<()> {
    let mut recording = begin(tool, storm.rate, tool.keeps_to_a_cpu().then_some(storm.cpu))?;
    let programs = bpf::Programs::of(recording.pid());
    let (used_before, runs_before) = (used(recording.pid())?, programs.runs());
    let seconds = program.work(storm.kind, storm.processes * LONG)?;
    let own = used(recording.pid())? - used_before;
    taken.own.add(own.as_secs_f64() / seconds * 100.0);
    if !programs.is_empty() {
        let ns = programs.runs().ns - runs_before.ns;
        taken.program.add(ns as f64 / 1e9 / seconds * 100.0);
    }
    recording.interrupt()
}

/// A recorder that samples and, for all that can be seen, has got to know the machine: it has come to rest, or keeps on
/// working.
fn begin(tool: &Tool, rate: u32, cpu: Option<usize>) -> Result<Recording<'_>> {
    const LOOKS: u32 = 5;
    const LOOK: Duration = Duration::from_millis(200);
    /// As much as one that rests uses from look to look.
    const REST: Duration = Duration::from_millis(4);
    let order = Order {
        rate,
        seconds: None,
        cpu,
    };
    let mut recording = Recording::start(tool, order)?;
    recording.settle()?;
    for _ in 0..LOOKS {
        let before = used(recording.pid())?;
        patience::pause(LOOK)?;
        if used(recording.pid())? - before < REST {
            break;
        }
    }
    Ok(recording)
}

/// The CPU time that a process has used so far, with that of threads that have ended.
fn used(pid: u32) -> Result<Duration> {
    let pid = Pid::from_raw(pid.try_into().context("a PID is a small number")?);
    let clock = clock_getcpuclockid(pid).context("the recorder has ended early")?;
    let now = clock.now().context("cannot read the recorder's CPU time")?;
    Ok(Duration::from_nanos(u64::try_from(now.num_nanoseconds())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_uses_counts() {
        let before = used(std::process::id()).expect("we are there");
        let mut number = 1_u64;
        while used(std::process::id()).expect("we are there") == before {
            number = std::hint::black_box(number).wrapping_mul(3);
        }
        assert!(used(u32::MAX).is_err(), "no PID is that large");
    }
}
