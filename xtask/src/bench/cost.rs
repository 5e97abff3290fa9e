//! What a profiler uses for itself, from its start to the graph.
//!
//! In: a machine kept busy by a known load. Out: CPU time, memory, and bytes written, everything included that it takes to get
//! a graph.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::figure::{Figure, Table, Unit};
use super::recording::SAID;
use super::spent::{Spent, spend};
use super::tool::{GRAPH, Order, PRINTED, Tool};
use super::{Bench, machine};

const RATE: u32 = 997;

/// What one tool used, in each of its runs.
#[derive(Default)]
struct Used {
    cpu_s: Figure,
    peak_mib: Figure,
    disk_mib: Figure,
}

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let seconds = if bench.quick { 1 } else { 10 };
    let mut all: Vec<Used> = bench.tools.iter().map(|_| Used::default()).collect();
    for _ in 0..bench.runs {
        for (tool, used) in bench.tools.iter().zip(&mut all) {
            let _loads = bench.programs.loads(0..machine::cpus())?;
            once(tool, seconds, used)?;
        }
    }
    let mut table = Table::new(format!(
        "What {seconds} s of the whole machine at {RATE} Hz cost"
    ));
    let figures = |of: fn(&Used) -> &Figure| {
        let names = bench.tools.iter().map(|tool| tool.full_name.as_str());
        names
            .zip(all.iter().map(|used| of(used).clone()))
            .collect::<Vec<_>>()
    };
    table.compare("own CPU time", Unit::Seconds, figures(|used| &used.cpu_s));
    table.compare(
        "peak memory",
        Unit::Mebibytes,
        figures(|used| &used.peak_mib),
    );
    table.compare(
        "written to disk",
        Unit::Mebibytes,
        figures(|used| &used.disk_mib),
    );
    table.note(
        "Every CPU is busy with hundreds of call paths of 5 to 36 frames. CPU time in user and kernel mode, of all processes \
         up to the graph; memory resident in the largest of them, without BPF maps and ring buffers.",
    );
    Ok(table)
}

fn once(tool: &Tool, seconds: u32, used: &mut Used) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let order = Order {
        rate: RATE,
        seconds: Some(seconds),
        cpu: None,
    };
    let mut sum = spend(&tool.record(order), folder.path())?;
    if let Some(step) = tool.draw() {
        let Spent { cpu, peak_bytes } = spend(&step, folder.path())?;
        sum = sum.and(Spent { cpu, peak_bytes });
    }
    tool.check(folder.path())?;
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    used.cpu_s.add(sum.cpu.as_secs_f64());
    used.peak_mib.add(mebibytes(sum.peak_bytes));
    used.disk_mib.add(mebibytes(written(folder.path())?));
    Ok(())
}

/// The bytes of all files in the folder, but not of the messages, nor of text that a pipe could have taken to the graph.
fn written(folder: &Path) -> Result<u64> {
    let drawn = folder.join(GRAPH).exists();
    let mut sum = 0;
    for entry in fs::read_dir(folder).context("cannot list what was written")? {
        let entry = entry.context("cannot list what was written")?;
        let name = entry.file_name();
        if name != SAID && !(drawn && name == PRINTED) {
            sum += entry
                .metadata()
                .context("cannot see what was written")?
                .len();
        }
    }
    Ok(sum)
}
