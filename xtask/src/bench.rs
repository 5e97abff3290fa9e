//! Measures what flame-bpf costs, beside perf, libbpf-tools, blazesym, inferno, flamegraph.pl, `go tool pprof` and py-spy
//! where they are installed.
//!
//! In: which figures are wanted. Out: tables on stdout, one row to a figure and peer. It never says which figure is good
//! enough, and it leaves nothing behind: not a process, not a file, not a changed setting of the kernel.
//!
//! The chore has two halves. The first builds, as the user who asked. The second measures, as root, because profilers need
//! it; it is this same program, started again as `cargo xtask bench-measure`.

mod bpf;
mod command;
mod cost;
mod crowd;
mod figure;
mod firing;
mod interpreters;
pub(crate) mod interrupt;
mod large;
mod machine;
mod numbers;
mod outputs;
mod peer;
mod size;
mod slowdown;
mod storm;
mod switches;
mod symbols;
mod workload;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use crate::build;
use crate::root;
use crate::workspace::{Workspace, in_path};
use figure::{Figure, Table, Unit};
use peer::Profiler;
use workload::Programs;

/// Which figures to take, and how thoroughly.
#[derive(Args)]
pub(crate) struct Choice {
    /// The sections wanted; all of them where none is named
    sections: Vec<Section>,
    /// How often each figure is taken; the median is printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure no other profiler
    #[arg(long)]
    alone: bool,
}

/// A group of figures that are taken together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Time that a program of fixed work loses
    Slowdown,
    /// CPU time that the shortest-lived processes lose
    Storm,
    /// Time that a switch between threads loses while waits are recorded
    Switches,
    /// Time that a firing, and each frame, takes in the kernel
    Firing,
    /// CPU time, memory and disk of 10 s of the whole machine
    Cost,
    /// The same beside a browser, interpreters, a codec and compilers, where they are installed
    Crowd,
    /// From start to the first sample
    Startup,
    /// Naming the code of large objects
    Symbols,
    /// Writing a million samples in each format
    Outputs,
    /// Inputs much larger than one recording
    Size,
    /// Functions of Python, beside py-spy
    Interpreters,
}

/// Arguments that the first half passes to the second.
#[derive(Args)]
pub(crate) struct Order {
    #[command(flatten)]
    choice: Choice,
    /// The flame-bpf to measure
    #[arg(long)]
    flame_bpf: PathBuf,
    /// blazesym as a program
    #[arg(long)]
    blazesym: PathBuf,
    /// The folder of the workloads
    #[arg(long)]
    programs: PathBuf,
}

/// Profilers, programs and settings of every section's measurements.
struct Bench {
    /// flame-bpf first, then the peers that run here.
    profilers: Vec<Profiler>,
    programs: Programs,
    /// The binary that is measured.
    flame_bpf: PathBuf,
    /// blazesym as a program.
    blazesym: PathBuf,
    /// How often each figure is taken.
    runs: u32,
    /// Whether no other profiler is measured.
    alone: bool,
}

/// How a section takes its figures.
type Measure = fn(&Bench) -> Result<Table>;

/// Builds, then becomes the half that measures; returns only when that fails.
pub(crate) fn bench(choice: &Choice) -> Result<()> {
    let workspace = Workspace::find()?;
    let flame_bpf = build::flame_bpf(&workspace)?;
    let blazesym = build::blazesym(&workspace)?;
    let programs = workspace.target.join("bench");
    let sources = workspace.root.join("tests/workloads");
    workload::build(&sources, &programs)?;
    crowd::build(&sources, &programs)?;
    if choice.wants(Section::Symbols) {
        large::build(&programs)?;
    }
    let own = [
        ("--flame-bpf", flame_bpf),
        ("--blazesym", blazesym),
        ("--programs", programs),
    ];
    root::other_half("bench-measure", own)
}

/// Takes the figures and prints them.
pub(crate) fn measure(order: &Order) -> Result<()> {
    interrupt::listen()?;
    println!("{}", machine::describe());
    let choice = &order.choice;
    let programs = Programs::new(&order.programs);
    let sections: [(Section, Measure); 11] = [
        (Section::Slowdown, slowdown::measure),
        (Section::Storm, storm::measure),
        (Section::Switches, switches::measure),
        (Section::Firing, firing::measure),
        (Section::Cost, cost::measure),
        (Section::Crowd, crowd::measure),
        (Section::Startup, cost::startup),
        (Section::Symbols, symbols::measure),
        (Section::Outputs, outputs::measure),
        (Section::Size, size::measure),
        (Section::Interpreters, interpreters::measure),
    ];
    let ours = |name, more: &str| peer::flame_bpf(name, &order.flame_bpf, more);
    let mut profilers = vec![
        ours("flame-bpf", "-a"),
        ours("flame-bpf, fp", "-a --call-graph fp"),
    ];
    if let Some(perf) = peer::perf().filter(|_| !choice.alone) {
        profilers.push(perf);
    }
    // On an idle machine there is nothing to sample.
    let load = programs.loads(0..1)?;
    for profiler in &profilers {
        profiler
            .try_out()
            .with_context(|| format!("{} does not run", profiler.name))?;
    }
    drop(load);
    let bench = Bench {
        profilers,
        programs,
        flame_bpf: order.flame_bpf.clone(),
        blazesym: order.blazesym.clone(),
        runs: choice.runs,
        alone: choice.alone,
    };
    for (section, measure) in sections {
        if choice.wants(section) {
            println!("\n{}", measure(&bench)?);
        }
    }
    println!("\nLoad average at the end: {}.", machine::load());
    Ok(())
}

impl Choice {
    fn wants(&self, section: Section) -> bool {
        self.sections.is_empty() || self.sections.contains(&section)
    }
}

impl Bench {
    /// Measures each tool so often, in turns, and returns each of the `N` figures with the tools' names.
    fn each<T, const N: usize>(
        &self,
        tools: &[(&'static str, T)],
        mut measure: impl FnMut(&T) -> Result<[f64; N]>,
    ) -> Result<[Vec<(&'static str, Figure)>; N]> {
        let empty = || tools.iter().map(|(name, _)| (*name, Figure::default()));
        let mut figures: [Vec<_>; N] = std::array::from_fn(|_| empty().collect());
        for _ in 0..self.runs {
            for (place, (_, tool)) in tools.iter().enumerate() {
                interrupt::check()?;
                for (figure, value) in figures.iter_mut().zip(measure(tool)?) {
                    figure[place].1.add(value);
                }
            }
        }
        Ok(figures)
    }

    /// Runs command lines so often, in turns, ours first, and adds their CPU time and memory to a table. What they print
    /// stays in the folder as `out`.
    fn run_each(
        &self,
        folder: &Path,
        table: &mut Table,
        what: &str,
        commands: &[(&'static str, String)],
    ) -> Result<()> {
        let [cpu, peak] = self.each(commands, |line| {
            let used = command::run(&format!("{line} > out"), folder)?;
            Ok([used.cpu_s * 1000.0, used.peak_mib])
        })?;
        table.compare(&format!("{what}: CPU"), Unit::Milliseconds, cpu);
        table.compare(&format!("{what}: peak"), Unit::Mebibytes, peak);
        Ok(())
    }

    /// The command line of another program, if it is installed and wanted.
    fn peer(&self, name: &'static str, line: &str) -> Option<(&'static str, String)> {
        (!self.alone && in_path(name).is_some()).then(|| (name, line.to_owned()))
    }

    /// All profilers.
    fn all(&self) -> Vec<(&'static str, &Profiler)> {
        self.profilers.iter().map(|one| (one.name, one)).collect()
    }
}
