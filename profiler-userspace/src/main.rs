//! The flame-bpf command: parse, record, exit code.

use flame_bpf::cli::{self, Exit, ShowNames, ShowUnwind};
use flame_bpf::{inspect, pipeline, session};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(asked) = ShowUnwind::parse(&arguments) {
        let text = |asked: ShowUnwind| inspect::show_unwind(&asked.file, asked.address);
        return asked.map_or_else(|exit| end(&exit), |asked| show(text(asked)));
    }
    if let Some(asked) = ShowNames::parse(&arguments) {
        let text = |asked: ShowNames| {
            let input = std::io::stdin().lock();
            let ShowNames {
                file,
                naming,
                servers,
                verbose,
            } = &asked;
            inspect::show_names(file, input, naming, servers, *verbose)
        };
        return asked.map_or_else(|exit| end(&exit), |asked| show(text(asked)));
    }
    let is_terminal = std::io::stdout().is_terminal();
    if let Some(asked) = cli::parse_render(&arguments, is_terminal) {
        return match asked {
            Ok(asked) => {
                pipeline::render(&asked).map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS)
            }
            Err(exit) => end(&exit),
        };
    }
    let plan = match cli::parse(arguments, is_terminal) {
        Ok(plan) => plan,
        Err(exit) => return end(&exit),
    };
    session::run(&plan).map_or_else(|error| fail(&error), ExitCode::from)
}

fn show(text: anyhow::Result<String>) -> ExitCode {
    match text {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            // Whoever stops reading, as `head` does, has seen enough.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => fail(&error.into()),
            _ => ExitCode::SUCCESS,
        },
        Err(error) => fail(&error),
    }
}

fn end(exit: &Exit) -> ExitCode {
    // Whoever reads help through `head` may have closed the pipe: nobody to tell, no failure.
    let _nobody_there = if exit.code == 0 {
        std::io::stdout().write_all(exit.text.as_bytes())
    } else {
        std::io::stderr().write_all(exit.text.as_bytes())
    };
    ExitCode::from(exit.code)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let _nobody_there = writeln!(std::io::stderr(), "flame-bpf: {error:#}");
    ExitCode::FAILURE
}
