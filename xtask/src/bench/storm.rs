//! What a profiler takes from processes that live for as short as can be.
//!
//! In: a program that makes a fixed number of processes on one CPU. Out: how much more CPU time they and it take. As in
//! [`slowdown`](super::slowdown), each profiled storm is compared with the bare ones just before and after it, and time in
//! which something else had the CPU does not count: what a profiler uses for itself is `cost`'s.

use std::time::Duration;

use anyhow::Result;

use super::figure::{Figure, Table, Unit};
use super::program::Stack;
use super::recording::Recording;
use super::tool::{Order, Tool};
use super::{Bench, machine, patience};

const RATE: u32 = 997;

/// What the processes do, and the number by which the program knows it.
const KINDS: [(&str, u32); 2] = [("fork, exit", 1), ("fork, exec, exit", 2)];

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let seconds = if bench.quick { 0.3 } else { 3.0 };
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.storm(cpu)?;
    let tools: Vec<&Tool> = bench.tools.iter().collect();
    let mut table = Table::new("What a storm of processes loses");
    let mut rates = Vec::new();
    for (does, kind) in KINDS {
        let processes = processes_for(&mut program, kind, seconds)?;
        rates.push(format!(
            "{:.0} a second of \"{does}\"",
            processes as f64 / seconds
        ));
        let taken = of_kind(kind, processes, &tools, &mut program, bench.runs)?;
        let names = tools.iter().map(|tool| tool.name);
        table.compare(
            &format!("slowdown of \"{does}\" at {RATE} Hz"),
            Unit::Percent,
            names.zip(taken).collect::<Vec<_>>(),
        );
    }
    table.note(format!(
        "{seconds} s of CPU time of one process after the other on CPU {cpu}, {}; all CPUs being sampled.",
        rates.join(" and ")
    ));
    Ok(table)
}

/// How many processes take about so many seconds.
fn processes_for(program: &mut Stack, kind: u32, seconds: f64) -> Result<u64> {
    const TRIAL: u32 = 200;
    // The first ones bring everything into the caches.
    program.work(kind, TRIAL.into())?;
    let trial = program.work(kind, TRIAL.into())?;
    Ok((f64::from(TRIAL) * seconds / trial) as u64)
}

fn of_kind(
    kind: u32,
    processes: u64,
    tools: &[&Tool],
    program: &mut Stack,
    runs: u32,
) -> Result<Vec<Figure>> {
    let mut taken: Vec<Figure> = tools.iter().map(|_| Figure::default()).collect();
    let mut before = program.work(kind, processes)?;
    for _ in 0..runs {
        for (tool, taken) in tools.iter().zip(&mut taken) {
            let order = Order {
                rate: RATE,
                seconds: None,
                cpu: None,
            };
            let mut recording = Recording::start(tool, order)?;
            recording.settle()?;
            let profiled = program.work(kind, processes)?;
            recording.interrupt()?;
            patience::pause(Duration::from_millis(100))?;
            let after = program.work(kind, processes)?;
            taken.add((profiled / f64::midpoint(before, after) - 1.0) * 100.0);
            before = after;
        }
    }
    Ok(taken)
}
