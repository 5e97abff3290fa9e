//! Cost of seeing the functions of Python.
//!
//! In: a program with fixed work under a stack of a given depth. Out: how much longer it takes while it is profiled, what the
//! profiler uses meanwhile and how many samples it took, beside py-spy where that is installed; and what each frame takes in the
//! kernel.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::bpf::{Programs, Runs, Statistics};
use super::command::{Running, last_message};
use super::figure::{Figure, Table, Unit};
use super::workload::Workload;
use super::{Bench, bpf, interrupt, machine};
use crate::workspace::in_path;

/// Samples a second.
const RATES: [u32; 2] = [100, 997];

/// Frames of Python's under which the program works.
const DEPTH: u32 = 20;

/// How long the program works, in seconds.
const SECONDS: f64 = 4.0;

/// From the difference between these depths, in frames, follows what a frame takes.
const DEPTHS: [u32; 2] = [10, 210];

/// Time that a profiler needs until it samples, with room to spare.
const SETTLING: Duration = Duration::from_millis(1000);

/// A profiler of one process, whose folded text is in the file `out.folded`.
struct Tool {
    /// The command line, up to the process ID and the rate.
    record: String,
    rate: &'static str,
}

/// Figures of Python.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let mut table = Table::new("What Python loses, and what it takes to see its functions");
    let Some(python) = in_path("python3") else {
        table.note("python3 is not installed.");
        return Ok(table);
    };
    let tools = tools(bench);
    if tools.len() == 1 && !bench.alone {
        table.note("py-spy is not installed: `pip install py-spy`.");
    }
    table.note(format!("The program is run by {}.", python.display()));
    let mut command = Command::new(&python);
    command.arg("-S").arg(bench.programs.python());
    let mut program = Workload::start(&mut command, machine::cpus() - 1)?;
    let turns = program.turns_for(DEPTH, SECONDS, 1_000_000)?;
    for rate in RATES {
        let mut before = program.work(DEPTH, turns)?;
        let [slowdown, cpu, samples] = bench.each(&tools, |tool| {
            let profiled = tool.profile(&mut program, rate, turns)?;
            let after = program.work(DEPTH, turns)?;
            let bare = f64::midpoint(before, after);
            before = after;
            Ok([
                (profiled.took / bare - 1.0) * 100.0,
                profiled.own_cpu_s,
                profiled.samples / (f64::from(rate) * profiled.took) * 100.0,
            ])
        })?;
        let way = format!("at {rate} Hz");
        table.compare(&format!("slowdown {way}"), Unit::Percent, slowdown);
        table.compare(&format!("own CPU time {way}"), Unit::Seconds, cpu);
        table.compare(
            &format!("samples of those due {way}"),
            Unit::Percent,
            samples,
        );
    }
    let each = frame(bench, &mut program, turns)?;
    table.compare(
        "each frame, in the kernel",
        Unit::Nanoseconds,
        [("flame-bpf", each)],
    );
    table.note(format!(
        "{SECONDS} s of work under {DEPTH} functions on one CPU, profiled {} times by each profiler, between two bare runs each \
         time. Own CPU time with start and end. Samples may be more than are due: start and end of the recording are not those \
         of the work. A frame: between {} and {} functions, by the kernel's statistics of BPF programs.",
        bench.runs,
        DEPTHS[0],
        DEPTHS[1],
    ));
    Ok(table)
}

fn tools(bench: &Bench) -> Vec<(&'static str, Tool)> {
    let flame_bpf = bench.flame_bpf.display();
    let record = format!("'{flame_bpf}' -q -e cpu-clock -o out.folded -p");
    let mut tools = vec![("flame-bpf", Tool { record, rate: "-F" })];
    if let Some(py_spy) = in_path("py-spy").filter(|_| !bench.alone) {
        for (name, more) in [("py-spy", ""), ("py-spy --native", "--native")] {
            let program = py_spy.display();
            let record = format!("'{program}' record {more} -d 1000 -f raw -o out.folded -p");
            tools.push((name, Tool { record, rate: "-r" }));
        }
    }
    tools
}

/// Figures of a profiled run.
struct Profiled {
    /// In seconds of the program's CPU.
    took: f64,
    own_cpu_s: f64,
    samples: f64,
}

impl Tool {
    /// Profiles one run of the program's.
    fn profile(&self, program: &mut Workload, rate: u32, turns: u64) -> Result<Profiled> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let line = format!(
            "exec {} {} {} {rate}",
            self.record,
            program.pid(),
            self.rate
        );
        let mut running = Running::start(&line, folder.path())?;
        interrupt::pause(SETTLING)?;
        let took = program.work(DEPTH, turns)?;
        let used = running.interrupt()?;
        let text = std::fs::read_to_string(folder.path().join("out.folded")).unwrap_or_default();
        let weights = text
            .lines()
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        let samples: f64 = weights.sum();
        ensure!(
            samples > 0.0,
            "`{line}` recorded nothing{}",
            last_message(folder.path())
        );
        Ok(Profiled {
            took,
            own_cpu_s: used.cpu_s,
            samples,
        })
    }
}

/// Time that a frame takes, in nanoseconds.
fn frame(bench: &Bench, program: &mut Workload, turns: u64) -> Result<Figure> {
    let _statistics = Statistics::keep()?;
    let (_, tool) = &tools(bench)[0];
    let mut figure = Figure::default();
    for _ in 0..bench.runs {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let line = format!("exec {} {} -F 997", tool.record, program.pid());
        let mut running = Running::start(&line, folder.path())?;
        interrupt::until(Duration::from_millis(5), Duration::from_secs(60), || {
            ensure!(
                !running.has_ended()?,
                "flame-bpf has ended early{}",
                last_message(folder.path())
            );
            Ok(bpf::has_perf_event(running.pid()).then_some(()))
        })?;
        interrupt::pause(SETTLING)?;
        let programs = Programs::of(running.pid());
        let mut firing = |depth: u32| -> Result<f64> {
            let before = programs.runs();
            program.work(depth, turns / 2)?;
            let Runs { count, ns } = programs.runs();
            Ok((ns - before.ns) as f64 / (count - before.count).max(1) as f64)
        };
        // The first finds functions that are new.
        firing(DEPTHS[1])?;
        let [few, many] = [firing(DEPTHS[0])?, firing(DEPTHS[1])?];
        figure.add((many - few) / f64::from(DEPTHS[1] - DEPTHS[0]));
        running.interrupt()?;
    }
    Ok(figure)
}
