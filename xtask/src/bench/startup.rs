//! How long it takes until samples are taken.
//!
//! In: a machine with one busy CPU. Out: the time from a profiler's start to its first sample: the first run of its BPF
//! program, or the first time that perf noted.

use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use super::bpf::{Programs, Statistics};
use super::figure::{Figure, Table, Unit};
use super::recording::Recording;
use super::tool::{Order, Tool};
use super::{Bench, machine};

const RATE: u32 = 997;

/// How often the kernel is asked whether the program ran; the figures are as coarse as this.
const STEP: Duration = Duration::from_micros(500);

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let _statistics = Statistics::keep()?;
    let cpus = machine::cpus();
    let _load = bench.programs.loads(cpus - 1..cpus)?;
    let mut figures: Vec<Figure> = bench.tools.iter().map(|_| Figure::default()).collect();
    for _ in 0..bench.runs {
        for (tool, figure) in bench.tools.iter().zip(&mut figures) {
            figure.add(once(tool)? * 1000.0);
        }
    }
    let mut table = Table::new("From start to the first sample");
    let names = bench.tools.iter().map(|tool| tool.name);
    table.compare("until sampling", Unit::Milliseconds, names.zip(figures));
    table.note(format!(
        "The whole machine at {RATE} Hz, with files in the cache; to 0.5 ms. BPF programs: the first run that the kernel counts; \
         perf: the first time it noted."
    ));
    Ok(table)
}

/// In seconds.
fn once(tool: &Tool) -> Result<f64> {
    let order = Order {
        rate: RATE,
        seconds: None,
        cpu: None,
    };
    let start = clock_gettime(ClockId::Monotonic);
    let mut recording = Recording::start(tool, order)?;
    if tool.uses_bpf() {
        let mut programs = None;
        let has_sampled = |pid| {
            // Looking through all descriptors takes time: not again once it is found.
            let programs = programs.get_or_insert_with(|| Programs::of(pid));
            if programs.is_empty() {
                *programs = Programs::of(pid);
            }
            programs.runs().count > 0
        };
        recording.await_that("takes a sample", has_sampled, STEP)?;
        let took = recording.started.elapsed().as_secs_f64();
        recording.interrupt()?;
        return Ok(took);
    }
    recording.settle()?;
    recording.interrupt()?;
    let start = start.tv_sec as f64 + start.tv_nsec as f64 / 1e9;
    Ok(tool.first_sample(recording.folder())? - start)
}
