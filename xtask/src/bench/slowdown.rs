//! Slowdown of a program by the profiler that samples it.
//!
//! In: a program of fixed work on one CPU. Out: how much longer it takes, and the time that each sample took from it. Each
//! profiled run is compared with the bare runs just before and after it, so that a machine that gets faster or slower does
//! not count. Never counts time in which something else had the CPU.

use anyhow::Result;

use super::figure::{Table, Unit};
use super::peer::{Profiler, Recording};
use super::workload::Kind;
use super::{Bench, machine};

/// Samples a second on each CPU, and how many frames the program works under.
const WAYS: [(u32, u32); 2] = [(997, 20), (997, 100)];

/// How long the program works, in seconds.
const SECONDS: f64 = 3.0;

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.start(Kind::Stack, cpu)?;
    let turns = program.turns_for(2, SECONDS, 100_000_000)?;
    let bare = bench.profilers.iter().find_map(Profiler::without_stacks);
    let mut profilers = bench.all();
    profilers.extend(bare.iter().map(|bare| (bare.name, bare)));
    let mut table = Table::new("What a program loses");
    for (rate, depth) in WAYS {
        let mut before = program.work(depth, turns)?;
        let [percent, each] = bench.each(&profilers, |profiler| {
            let mut recording = Recording::settled(profiler, rate, None)?;
            let profiled = program.work(depth, turns)?;
            recording.discard()?;
            let after = program.work(depth, turns)?;
            let bare = f64::midpoint(before, after);
            before = after;
            Ok([
                (profiled / bare - 1.0) * 100.0,
                (profiled - bare) * 1e6 / (f64::from(rate) * profiled),
            ])
        })?;
        let way = format!("{rate} Hz, {depth} frames");
        table.compare(&format!("slowdown at {way}"), Unit::Percent, percent);
        table.compare(&format!("a sample at {way}"), Unit::Microseconds, each);
    }
    table.note(format!(
        "{SECONDS} s of work under so many frames on CPU {cpu}, all CPUs being sampled; profiled {} times in each way by each \
         profiler, between two bare runs each time.",
        bench.runs
    ));
    Ok(table)
}
