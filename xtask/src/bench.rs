//! Measures what flame-bpf costs, beside the other profilers that are installed.
//!
//! In: which figures are wanted. Out: tables on stdout, one row to a figure and peer. It never says which figure is good enough,
//! and it leaves nothing behind: not a process, not a file, not a changed setting of the kernel.
//!
//! The chore has two halves. The first builds, as the user who asked. The second measures, as root, because profilers need
//! it; it is this same program, started again as `cargo xtask bench-measure`.

mod bpf;
mod cost;
mod figure;
mod firing;
mod large;
mod machine;
mod one_look;
pub(crate) mod patience;
mod program;
mod recording;
mod slowdown;
pub(crate) mod spent;
mod startup;
mod stop;
mod storm;
mod switches;
mod symbols;
mod tables;
mod tool;

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use crate::build;
use crate::root::Root;
use crate::workspace::Workspace;
use figure::Table;
use program::Programs;
use tool::{Absent, Tool};

/// Where bcc looks for the kernel's headers when it is not the usual place.
const BCC_HEADERS: &str = "BCC_KERNEL_SOURCE";

/// Which figures to take, and how thoroughly.
#[derive(Args)]
pub(crate) struct Choice {
    /// The sections wanted; all of them where none is named
    sections: Vec<Section>,
    /// See that everything runs; the figures are worth little
    #[arg(long)]
    quick: bool,
    /// How often each figure is taken; the median is printed
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Measure only the tools with this in their name; flame-bpf always is
    #[arg(long)]
    peer: Option<String>,
}

/// A group of figures that are taken together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// What a program of fixed work loses
    Slowdown,
    /// What processes that live for as short as can be lose
    Storm,
    /// What looking at waits takes from programs that switch all the time
    Switches,
    /// What a firing, and each frame, takes in the kernel
    Firing,
    /// CPU time, memory and disk of 10 s of the whole machine
    Cost,
    /// From Ctrl-C to the graph
    Stop,
    /// From start to the first sample
    Startup,
    /// From files to unwind tables in the kernel
    Tables,
    /// Naming the code of large objects
    Symbols,
}

/// What the first half hands to the second.
#[derive(Args)]
pub(crate) struct Order {
    #[command(flatten)]
    choice: Choice,
    /// The flame-bpf to measure
    #[arg(long)]
    flame_bpf: PathBuf,
    /// The folder of the workloads
    #[arg(long)]
    programs: PathBuf,
}

/// What every section measures with.
struct Bench {
    /// flame-bpf first, then the peers that run here.
    tools: Vec<Tool>,
    programs: Programs,
    /// The binary that is measured.
    flame_bpf: PathBuf,
    /// How often each figure is taken.
    runs: u32,
    /// Whether the figures only have to appear.
    quick: bool,
}

/// How a section takes its figures.
type Measure = fn(&Bench) -> Result<Table>;

/// Builds, then becomes the half that measures; returns only when that fails.
pub(crate) fn bench(choice: &Choice) -> Result<()> {
    let workspace = Workspace::find()?;
    let flame_bpf = build::flame_bpf(&workspace)?;
    let programs = workspace.target.join("bench");
    program::build(&workspace.root.join("tests/workloads/c"), &programs)?;
    let names = choice.sections.is_empty() || choice.sections.contains(&Section::Symbols);
    if names && !choice.quick {
        large::build(&programs)?;
    }
    let root = match Root::find() {
        Ok(root) => root,
        Err(reason) => bail!("{reason}; profilers need root"),
    };
    let itself = std::env::current_exe().context("cannot find this program's own path")?;
    let headers = std::env::var_os(BCC_HEADERS);
    let variables: Vec<(&str, &OsStr)> = headers
        .iter()
        .map(|path| (BCC_HEADERS, path.as_os_str()))
        .collect();
    let mut command = root.command(&itself, &variables);
    command.arg("bench-measure").arg("--flame-bpf");
    command.arg(flame_bpf).arg("--programs").arg(programs);
    if choice.quick {
        command.arg("--quick");
    }
    if let Some(runs) = choice.runs {
        command.arg(format!("--runs={runs}"));
    }
    if let Some(peer) = &choice.peer {
        command.arg(format!("--peer={peer}"));
    }
    for section in &choice.sections {
        let value = section.to_possible_value();
        command.arg(value.context("every section has a name")?.get_name());
    }
    Err(command.exec()).with_context(|| format!("cannot start {command:?}"))
}

/// Takes the figures and prints them.
pub(crate) fn measure(order: &Order) -> Result<()> {
    patience::listen()?;
    println!("{}", machine::describe());
    let Order {
        choice,
        flame_bpf,
        programs,
    } = order;
    let programs = Programs::new(programs);
    // On an idle machine there is nothing to sample.
    let load = programs.loads(0..1)?;
    let (tools, absent) = tools(flame_bpf, choice.peer.as_deref())?;
    drop(load);
    for Absent { name, reason } in absent {
        println!("Not compared with {name}: {reason}.");
    }
    let bench = Bench {
        tools,
        programs,
        flame_bpf: flame_bpf.clone(),
        runs: choice.runs.unwrap_or(if choice.quick { 1 } else { 5 }),
        quick: choice.quick,
    };
    if bench.quick {
        println!("A smoke run: these figures are worth little.");
    }
    let sections: [(Section, Measure); 9] = [
        (Section::Slowdown, slowdown::measure),
        (Section::Storm, storm::measure),
        (Section::Switches, switches::measure),
        (Section::Firing, firing::measure),
        (Section::Cost, cost::measure),
        (Section::Stop, stop::measure),
        (Section::Startup, startup::measure),
        (Section::Tables, tables::measure),
        (Section::Symbols, symbols::measure),
    ];
    for (section, measure) in sections {
        if choice.sections.is_empty() || choice.sections.contains(&section) {
            println!("\n{}", measure(&bench)?);
        }
    }
    println!("\nLoad average at the end: {}.", machine::load());
    Ok(())
}

/// flame-bpf and the peers that are installed and run; and those that are not, or do not.
fn tools(flame_bpf: &Path, wanted: Option<&str>) -> Result<(Vec<Tool>, Vec<Absent>)> {
    let (peers, mut absent) = tool::peers();
    let ours = Tool::flame_bpf(flame_bpf);
    ours.try_out().context("flame-bpf does not run here")?;
    let mut tools = vec![ours, Tool::flame_bpf_by_pointers(flame_bpf)];
    for peer in peers {
        if !wanted.is_none_or(|part| peer.name.contains(part)) {
            continue;
        }
        match peer.try_out() {
            Ok(()) => tools.push(peer),
            Err(error) => {
                patience::check()?;
                absent.push(Absent {
                    name: peer.name.to_owned(),
                    reason: format!("it does not run here: {error:#}"),
                });
            }
        }
    }
    Ok((tools, absent))
}
