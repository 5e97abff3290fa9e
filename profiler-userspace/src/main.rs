//! The flame-bpf command: parse, record, exit code.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the one place that prints help and errors"
)]

use std::io::IsTerminal as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let plan = match flame_bpf::cli::parse(std::env::args_os(), std::io::stdout().is_terminal()) {
        Ok(plan) => plan,
        Err(exit) => {
            if exit.code == 0 {
                print!("{}", exit.text);
            } else {
                eprint!("{}", exit.text);
            }
            return ExitCode::from(exit.code);
        }
    };
    match flame_bpf::recording::run(&plan) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("flame-bpf: {error:#}");
            ExitCode::FAILURE
        }
    }
}
