//! What one firing takes in the kernel, and what each frame adds to it.
//!
//! In: a program under stacks of several depths. Out: the kernel's own measure of the BPF programs that sample it. What the
//! interrupt takes before and after them is not in it; `slowdown` has that.

use anyhow::{Result, ensure};

use super::bpf::{self, Programs, Statistics};
use super::figure::{Figure, Table, Unit};
use super::program::Stack;
use super::recording::Recording;
use super::tool::{Order, Tool};
use super::{Bench, machine};

const DEPTHS: [u32; 3] = [10, 30, 100];

const RATE: u32 = 997;

/// What one tool's programs took, in each of its runs.
#[derive(Default)]
struct Taken {
    firing_ns: [Figure; DEPTHS.len()],
    frame_ns: Figure,
    map_mib: Figure,
}

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let seconds = if bench.quick { 0.3 } else { 3.0 };
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.stack(cpu)?;
    let turns = program.turns_for(seconds)?;
    let _statistics = Statistics::keep()?;
    let tools: Vec<&Tool> = bench
        .tools
        .iter()
        .filter(|tool| tool.uses_bpf() && tool.keeps_to_a_cpu())
        .collect();
    let mut all: Vec<Taken> = tools.iter().map(|_| Taken::default()).collect();
    for _ in 0..bench.runs {
        for (tool, taken) in tools.iter().zip(&mut all) {
            once(tool, cpu, &mut program, turns, taken)?;
        }
    }
    let mut table = Table::new("What a firing takes in the kernel");
    let figures = |of: &dyn Fn(&Taken) -> &Figure| {
        let names = tools.iter().map(|tool| tool.name);
        names
            .zip(all.iter().map(|taken| of(taken).clone()))
            .collect::<Vec<_>>()
    };
    for (place, depth) in DEPTHS.iter().enumerate() {
        table.compare(
            &format!("a firing at {depth} frames"),
            Unit::Nanoseconds,
            figures(&|taken| &taken.firing_ns[place]),
        );
    }
    table.compare(
        "each frame",
        Unit::Nanoseconds,
        figures(&|taken| &taken.frame_ns),
    );
    table.compare(
        "memory of BPF maps",
        Unit::Mebibytes,
        figures(&|taken| &taken.map_mib),
    );
    table.note(format!(
        "{seconds} s under each depth at {RATE} Hz on CPU {cpu}, by the kernel's BPF statistics; each frame: the slope over the \
         depths. perf has no BPF program, and bpftrace cannot keep to a CPU."
    ));
    Ok(table)
}

fn once(tool: &Tool, cpu: usize, program: &mut Stack, turns: u64, taken: &mut Taken) -> Result<()> {
    let order = Order {
        rate: RATE,
        seconds: None,
        cpu: Some(cpu),
    };
    let mut recording = Recording::start(tool, order)?;
    recording.settle()?;
    let programs = Programs::of(recording.pid());
    ensure!(!programs.is_empty(), "{} shows no BPF program", tool.name);
    taken
        .map_mib
        .add(bpf::map_bytes(recording.pid()) as f64 / f64::from(1 << 20));
    let mut points = Vec::new();
    for (&depth, figure) in DEPTHS.iter().zip(&mut taken.firing_ns) {
        let before = programs.runs();
        program.work(depth, turns)?;
        let after = programs.runs();
        let count = after.count - before.count;
        ensure!(count > 0, "{}'s program did not run", tool.name);
        let each = (after.ns - before.ns) as f64 / count as f64;
        figure.add(each);
        points.push((f64::from(depth), each));
    }
    taken.frame_ns.add(slope(&points));
    recording.interrupt()
}

/// Of the straight line that lies closest to the points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (x_mean, y_mean) = (
        points.iter().map(|(x, _)| x).sum::<f64>() / count,
        points.iter().map(|(_, y)| y).sum::<f64>() / count,
    );
    let rise: f64 = points
        .iter()
        .map(|(x, y)| (x - x_mean) * (y - y_mean))
        .sum();
    let run: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    rise / run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_a_line_is_its_own() {
        let points = [10.0, 30.0, 100.0].map(|x| (x, 700.0 + 21.0 * x));
        assert!((slope(&points) - 21.0).abs() < 1e-9);
    }
}
