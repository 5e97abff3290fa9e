//! The flame-bpf command: parse, do it, exit code.

use flame_bpf::allocator::{self, Counting};
use flame_bpf::cli::{self, Exit, InspectNames, InspectUnwind, Task};
use flame_bpf::{inspect, pipeline, session};
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// Symbolizing keeps to its memory limit by what this counts.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let task = match read_task() {
        Ok(task) => task,
        Err(exit) => return end(&exit),
    };
    let done = match task {
        Task::Record(plan) => {
            allocator::share_heap();
            let check = || match read_task().map_err(|exit| exit.reason().to_owned())? {
                Task::Record(plan) => session::check(&plan).map_err(|error| format!("{error:#}")),
                _ => Ok(()),
            };
            session::run(&plan, check).map(ended)
        }
        Task::Check(plan) => pipeline::check(&plan).and_then(|()| show("all options are right\n")),
        Task::Render(rendering) => pipeline::render(&rendering).map(|()| ExitCode::SUCCESS),
        Task::Diff(diffing) => {
            pipeline::diff(&diffing).map(|outcome| ExitCode::from(outcome.exit_code()))
        }
        Task::Annotate(asked) => session::annotate(&asked).and_then(|text| match text {
            Some(text) => show(&text),
            None => Ok(ExitCode::FAILURE),
        }),
        Task::Doctor(doctoring) => {
            let examination = session::doctor(&doctoring);
            let text = match doctoring.json {
                true => examination.json(),
                false => examination.text(),
            };
            show(&text).map(|_| ExitCode::from(examination.exit_code()))
        }
        Task::InspectNames(asked) => {
            let InspectNames {
                file,
                naming,
                servers,
                verbose,
            } = &asked;
            let input = std::io::stdin().lock();
            inspect::names(file, input, naming, servers, *verbose).and_then(|text| show(&text))
        }
        Task::InspectUnwind(InspectUnwind { file, address }) => {
            inspect::unwind(&file, address).and_then(|text| show(&text))
        }
    };
    done.unwrap_or_else(|error| {
        pipeline::print(&format!("flame-bpf: {error:#}\n"));
        ExitCode::FAILURE
    })
}

fn ended(outcome: session::Outcome) -> ExitCode {
    let error = match outcome {
        session::Outcome::Done(code) => return ExitCode::from(code),
        // The process stays the same for whoever watches it; nothing else of it is left.
        session::Outcome::Again => Command::new("/proc/self/exe")
            .arg0(std::env::args_os().next().unwrap_or_default())
            .args(std::env::args_os().skip(1))
            .exec(),
    };
    pipeline::print(&format!("flame-bpf: cannot begin anew: {error}\n"));
    ExitCode::FAILURE
}

/// The task that the command line, and what stands instead of it, asks for.
fn read_task() -> Result<Task, Exit> {
    let arguments = cli::with_settings(
        std::env::args_os().collect(),
        |path| std::fs::read_to_string(path),
        |name| std::env::var(name).ok().filter(|value| !value.is_empty()),
    )?;
    cli::parse(arguments, std::io::stdout().is_terminal())
}

fn show(text: &str) -> anyhow::Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // A reader that stops early, as `head` does, has seen enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn end(exit: &Exit) -> ExitCode {
    if exit.code == 0 {
        // A closed pipe, as behind `head`, is no failure.
        let _nobody_there = std::io::stdout().write_all(exit.text.as_bytes());
    } else {
        pipeline::print(&exit.text);
    }
    ExitCode::from(exit.code)
}
