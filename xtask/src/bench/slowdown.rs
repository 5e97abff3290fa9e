//! What a profiler takes from the program that it samples.
//!
//! In: a program of fixed work on one CPU. Out: how much longer it takes, and the time that each sample took from it. Each
//! profiled run is compared with the bare runs just before and after it, so that a machine that gets faster or slower does not
//! count; neither does time in which something else had the CPU.

use std::time::Duration;

use anyhow::Result;

use super::figure::{Figure, Table, Unit};
use super::program::Stack;
use super::recording::Recording;
use super::tool::{Order, Tool};
use super::{Bench, machine, patience};

/// One way to measure.
#[derive(Clone, Copy)]
struct Way {
    rate: u32,
    /// How many frames the program works under.
    depth: u32,
}

const WAYS: [Way; 3] = [
    Way {
        rate: 99,
        depth: 20,
    },
    Way {
        rate: 997,
        depth: 20,
    },
    Way {
        rate: 997,
        depth: 100,
    },
];

/// What one tool took, in each of its runs.
#[derive(Default)]
struct Taken {
    percent: Figure,
    each_us: Figure,
}

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let seconds = if bench.quick { 0.3 } else { 3.0 };
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.stack(cpu)?;
    let turns = program.turns_for(seconds)?;
    let bare = bench.tools.iter().find_map(Tool::without_stacks);
    let tools: Vec<&Tool> = bench.tools.iter().chain(&bare).collect();
    let mut table = Table::new("What a program loses");
    for way in WAYS {
        let Way { rate, depth } = way;
        let taken = in_way(way, &tools, &mut program, turns, bench.runs)?;
        let figures = |of: fn(&Taken) -> &Figure| {
            let names = tools.iter().map(|tool| tool.name);
            names
                .zip(taken.iter().map(|taken| of(taken).clone()))
                .collect::<Vec<_>>()
        };
        table.compare(
            &format!("slowdown at {rate} Hz, {depth} frames"),
            Unit::Percent,
            figures(|taken| &taken.percent),
        );
        table.compare(
            &format!("from the program, a sample at {rate} Hz, {depth} frames"),
            Unit::Microseconds,
            figures(|taken| &taken.each_us),
        );
    }
    table.note(format!(
        "{seconds} s of work under so many frames on CPU {cpu}, all CPUs being sampled; profiled {} times in each way by each \
         tool, between two bare runs each time.",
        bench.runs
    ));
    Ok(table)
}

fn in_way(
    Way { rate, depth }: Way,
    tools: &[&Tool],
    program: &mut Stack,
    turns: u64,
    runs: u32,
) -> Result<Vec<Taken>> {
    let mut taken: Vec<Taken> = tools.iter().map(|_| Taken::default()).collect();
    let mut before = program.work(depth, turns)?;
    for _ in 0..runs {
        for (tool, taken) in tools.iter().zip(&mut taken) {
            let order = Order {
                rate,
                seconds: None,
                cpu: None,
            };
            let mut recording = Recording::start(tool, order)?;
            recording.settle()?;
            let profiled = program.work(depth, turns)?;
            recording.interrupt()?;
            patience::pause(Duration::from_millis(100))?;
            let after = program.work(depth, turns)?;
            let bare = f64::midpoint(before, after);
            taken.percent.add((profiled / bare - 1.0) * 100.0);
            taken
                .each_us
                .add((profiled - bare) * 1e6 / (f64::from(rate) * profiled));
            before = after;
        }
    }
    Ok(taken)
}
