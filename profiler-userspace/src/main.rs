//! The flame-bpf command: parse, record, exit code.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    let plan = match flame_bpf::cli::parse(std::env::args_os(), std::io::stdout().is_terminal()) {
        Ok(plan) => plan,
        Err(exit) => {
            // Whoever reads help through `head` may have closed the pipe: nobody to tell, no failure.
            let _nobody_there = if exit.code == 0 {
                std::io::stdout().write_all(exit.text.as_bytes())
            } else {
                std::io::stderr().write_all(exit.text.as_bytes())
            };
            return ExitCode::from(exit.code);
        }
    };
    match flame_bpf::recording::run(&plan) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _nobody_there = writeln!(std::io::stderr(), "flame-bpf: {error:#}");
            ExitCode::FAILURE
        }
    }
}
