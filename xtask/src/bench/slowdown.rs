//! Slowdown of a program by the profiler that samples it.
//!
//! In: a program of fixed work on one CPU, and one that watches the clock there. Out: how much longer the first takes, each
//! profiled run compared with the bare runs just before and after it, so that a machine that gets faster or slower does not
//! count; and the median of the interrupts that the second sees, four of five of which take a sample. Never counts time in
//! which something else had the CPU.

use anyhow::Result;

use super::figure::{Table, Unit};
use super::peer::{Profiler, Recording};
use super::workload::Kind;
use super::{Bench, machine};

/// Samples a second on each CPU, and how many frames the program works under.
const WAYS: [(u32, u32); 2] = [(997, 20), (997, 100)];

/// How long the program works, in seconds.
const SECONDS: f64 = 3.0;

/// How long the clock is watched, in nanoseconds: under some 1,500 samples.
const WATCHED_NS: u64 = 1_500_000_000;

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.start(Kind::Stack, cpu)?;
    let turns = program.turns_for(2, SECONDS, 100_000_000)?;
    let bare = bench.profilers.iter().find_map(Profiler::without_stacks);
    let mut profilers = bench.all();
    profilers.extend(bare.iter().map(|bare| (bare.name, bare)));
    let mut clock = bench.programs.start(Kind::Clock, cpu)?;
    let mut table = Table::new("What a program loses");
    for (rate, depth) in WAYS {
        let mut before = program.work(depth, turns)?;
        let [percent, each] = bench.each(&profilers, |profiler| {
            let mut recording = Recording::settled(profiler, rate, None)?;
            let profiled = program.work(depth, turns)?;
            let interrupt = clock.work(depth, WATCHED_NS)?;
            recording.discard()?;
            let after = program.work(depth, turns)?;
            let bare = f64::midpoint(before, after);
            before = after;
            Ok([(profiled / bare - 1.0) * 100.0, interrupt * 1e6])
        })?;
        let way = format!("{rate} Hz, {depth} frames");
        table.compare(&format!("slowdown at {way}"), Unit::Percent, percent);
        table.compare(&format!("a sample at {way}"), Unit::Microseconds, each);
    }
    table.note(format!(
        "{SECONDS} s of work under so many frames on CPU {cpu}, all CPUs being sampled; profiled {} times in each way by each \
         profiler, between two bare runs each time. A sample is the whole interrupt, as a program that watches the clock \
         sees it.",
        bench.runs
    ));
    Ok(table)
}
