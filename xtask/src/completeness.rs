//! Profiles stock programs at real work, and counts how many stacks go down to the root.
//!
//! In: which programs, and for how long. Out: a table in Markdown, and whether every program that ran reached its target. It
//! leaves no process and no file behind, and installs nothing unless it is told to.
//!
//! The chore has two halves, as `bench` does: the first builds, as the user who asked, the second profiles, as root.

mod program;
mod report;
mod setup;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::bench::interrupt;
use crate::build;
use crate::files;
use crate::root;
use crate::vm::debian;
use crate::workspace::Workspace;
use program::{PROGRAMS, Program, Shape};
use report::{Outcome, Report};
use setup::Setup;

/// Samples a second on each CPU: many, and not in step with anything.
const RATE: u32 = 997;

/// A process that ends before flame-bpf looks at it ends the recording; its parent goes on.
const ATTEMPTS: u32 = 5;

/// Which programs to profile, and how long.
#[derive(Args)]
pub(crate) struct Choice {
    /// The programs wanted; all of them where none is named
    programs: Vec<String>,
    /// How long each is profiled
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Install what is missing, by apt-get
    #[arg(long)]
    install: bool,
    /// Leave each program's folded stacks in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Further arguments of flame-bpf, split at white space
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    flags: String,
}

/// Arguments that the first half passes to the second.
#[derive(Args)]
pub(crate) struct Order {
    #[command(flatten)]
    choice: Choice,
    /// The flame-bpf that profiles
    #[arg(long)]
    flame_bpf: PathBuf,
    /// The Rust compiler that is profiled
    #[arg(long)]
    rustc: PathBuf,
}

/// Builds, then becomes the half that profiles; returns only when that fails.
pub(crate) fn completeness(choice: &Choice) -> Result<()> {
    let known = |name: &String| PROGRAMS.iter().any(|program| program.name == name);
    if let Some(unknown) = choice.programs.iter().find(|name| !known(name)) {
        let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        bail!(
            "there is no program {unknown:?} here, but {}",
            names.join(", ")
        );
    }
    let flame_bpf = build::flame_bpf(&Workspace::find()?)?;
    let rustc = crate::workspace::Rustc::find()?.sysroot.join("bin/rustc");
    root::other_half(
        "completeness-measure",
        [("--flame-bpf", flame_bpf), ("--rustc", rustc)],
    )
}

/// Profiles, and prints the table; says whether every program that ran reached its target.
pub(crate) fn measure(order: &Order) -> Result<bool> {
    interrupt::listen()?;
    let choice = &order.choice;
    let wanted = |program: &&Program| {
        choice.programs.is_empty() || choice.programs.iter().any(|name| name == program.name)
    };
    let wanted: Vec<&Program> = PROGRAMS.iter().filter(wanted).collect();
    if choice.install {
        install(&wanted)?;
    }
    let mut report = Report::default();
    for program in wanted {
        eprintln!("{}...", program.name);
        let outcome = match program.missing() {
            Some(missing) => Outcome::Absent(missing),
            None => match profile(program, order) {
                Ok(folded) => Outcome::of(&folded, program.comms)?,
                Err(error) => {
                    interrupt::check()?;
                    Outcome::Failed(format!("{error:#}"))
                }
            },
        };
        report.add(program.name, program.target, outcome);
    }
    println!("{report}");
    Ok(report.is_good())
}

/// Installs the packages of the programs that are not there.
fn install(programs: &[&Program]) -> Result<()> {
    let mut packages: Vec<&str> = programs
        .iter()
        .filter(|program| program.missing().is_some())
        .flat_map(|program| program.packages)
        .copied()
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    packages.sort_unstable();
    packages.dedup();
    debian::install(&packages)
}

/// Folded stacks of a program at work.
fn profile(program: &Program, order: &Order) -> Result<Vec<u8>> {
    let mut setup = Setup::new(program, &order.rustc)?;
    setup.prepare()?;
    match program.shape {
        Shape::Worker => setup.start("work")?,
        Shape::Server => {
            setup.start("serve")?;
            setup.await_server()?;
            setup.start("load")?;
        }
        Shape::Commands => {}
    }
    let folded = record(&mut setup, program, order)?;
    let bytes = files::read(&folded)?;
    if let Some(folder) = &order.choice.keep {
        files::write(&folder.join(program.name).with_extension("folded"), &bytes)?;
    }
    ensure!(!bytes.is_empty(), "there are no samples of it");
    Ok(bytes)
}

/// Profiles what runs there; returns the file with the folded stacks.
fn record(setup: &mut Setup, program: &Program, order: &Order) -> Result<PathBuf> {
    let folded = setup.folder().join("profile.folded");
    let mut left = ATTEMPTS;
    loop {
        let mut command = Command::new(&order.flame_bpf);
        command.args(["-U", "-F", &RATE.to_string()]);
        let seconds = order.choice.seconds.to_string();
        command.arg("-o").arg(&folded);
        command.args(order.choice.flags.split_whitespace());
        if program.shape == Shape::Commands {
            command.args(["--", "timeout", &seconds]);
            command.args(Setup::shell("work"));
        } else {
            command.args(["-d", &seconds, "-p", &setup.pids()?]);
        }
        left -= 1;
        match setup.run(&mut command) {
            Ok(()) => return Ok(folded),
            Err(error) if left == 0 => return Err(error),
            Err(_) => interrupt::check()?,
        }
    }
}
