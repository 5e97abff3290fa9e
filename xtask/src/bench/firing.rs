//! Time of one firing in the kernel, and of each frame.
//!
//! In: a program under stacks of several depths. Out: the kernel's own measure of the BPF programs that sample it. Never
//! counts what the interrupt takes before and after them; `slowdown` has that.

use anyhow::{Result, ensure};

use super::bpf::{self, Programs, Statistics};
use super::figure::{Table, Unit};
use super::peer::{Profiler, Recording};
use super::workload::{Kind, Workload};
use super::{Bench, machine};

const DEPTHS: [u32; 3] = [10, 30, 100];

const RATE: u32 = 997;

/// How long the program works under each depth.
const SECONDS: f64 = 3.0;

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.start(Kind::Stack, cpu)?;
    let turns = program.turns_for(2, SECONDS, 100_000_000)?;
    let _statistics = Statistics::keep()?;
    let mut profilers = bench.all();
    profilers.retain(|(_, profiler)| profiler.uses_bpf);
    let [ten, thirty, hundred, frame, maps] = bench.each(&profilers, |profiler| {
        once(profiler, cpu, &mut program, turns)
    })?;
    let mut table = Table::new("What a firing takes in the kernel");
    for (depth, figures) in DEPTHS.iter().zip([ten, thirty, hundred]) {
        let what = format!("a firing at {depth} frames");
        table.compare(&what, Unit::Nanoseconds, figures);
    }
    table.compare("each frame", Unit::Nanoseconds, frame);
    table.compare("memory of BPF maps", Unit::Mebibytes, maps);
    table.note(format!(
        "{SECONDS} s under each depth at {RATE} Hz on CPU {cpu}, by the kernel's BPF statistics; each frame: the slope over \
         the depths."
    ));
    Ok(table)
}

/// A firing at each depth and each frame, in nanoseconds; all maps, in MiB.
fn once(
    profiler: &Profiler,
    cpu: usize,
    program: &mut Workload,
    turns: u64,
) -> Result<[f64; DEPTHS.len() + 2]> {
    let mut recording = Recording::settled(profiler, RATE, Some(cpu))?;
    let pid = recording.process.pid();
    let programs = Programs::of(pid);
    ensure!(
        !programs.is_empty(),
        "{} shows no BPF program",
        profiler.name
    );
    let mut found = [0.0; DEPTHS.len() + 2];
    for (depth, found) in DEPTHS.into_iter().zip(&mut found) {
        let before = programs.runs();
        program.work(depth, turns)?;
        let after = programs.runs();
        let count = after.count - before.count;
        ensure!(count > 0, "{}'s program did not run", profiler.name);
        *found = (after.ns - before.ns) as f64 / count as f64;
    }
    found[DEPTHS.len()] = slope(DEPTHS.map(f64::from).into_iter().zip(found));
    found[DEPTHS.len() + 1] = bpf::map_bytes(pid) as f64 / f64::from(1 << 20);
    recording.discard()?;
    Ok(found)
}

/// Of the straight line that lies closest to the points.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = points.clone().count() as f64;
    let x_mean = points.clone().map(|(x, _)| x).sum::<f64>() / count;
    let y_mean = points.clone().map(|(_, y)| y).sum::<f64>() / count;
    let rise = points.clone().map(|(x, y)| (x - x_mean) * (y - y_mean));
    rise.sum::<f64>() / points.map(|(x, _)| (x - x_mean).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fitted_slope_of_a_line_is_its_slope() {
        let points = DEPTHS.map(f64::from).map(|x| (x, 700.0 + 21.0 * x));
        assert!((slope(points.into_iter()) - 21.0).abs() < 1e-9);
    }
}
