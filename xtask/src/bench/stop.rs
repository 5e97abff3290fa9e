//! How long one waits for the graph.
//!
//! In: a recording of a busy machine. Out: the time from Ctrl-C until the graph is complete on disk and the last process has
//! ended.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::figure::{Figure, Table, Unit};
use super::recording::Recording;
use super::tool::Order;
use super::{Bench, machine, patience};

const RATE: u32 = 997;

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let seconds = if bench.quick { 1 } else { 10 };
    let mut figures: Vec<Figure> = bench.tools.iter().map(|_| Figure::default()).collect();
    for _ in 0..bench.runs {
        for (tool, figure) in bench.tools.iter().zip(&mut figures) {
            let _loads = bench.programs.loads(0..machine::cpus())?;
            let order = Order {
                rate: RATE,
                seconds: None,
                cpu: None,
            };
            let mut recording = Recording::start(tool, order)?;
            recording.settle()?;
            patience::pause(Duration::from_secs(seconds))?;
            let began = Instant::now();
            recording.interrupt()?;
            recording.draw()?;
            figure.add(began.elapsed().as_secs_f64() * 1000.0);
        }
    }
    let mut table = Table::new("From Ctrl-C to the graph");
    let names = bench.tools.iter().map(|tool| tool.full_name.as_str());
    table.compare(
        "until it is on disk",
        Unit::Milliseconds,
        names.zip(figures),
    );
    table.note(format!(
        "After {seconds} s of the whole machine at {RATE} Hz, every CPU being busy, also while the graph is drawn."
    ));
    Ok(table)
}
