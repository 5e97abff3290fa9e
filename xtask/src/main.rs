//! The chores of this repository: `cargo xtask CHORE`.
//!
//! In: a command line. Out: a built, checked or tested workspace, and an exit code. Each chore is one module; nothing here
//! is part of what users install.
#![allow(clippy::print_stdout, reason = "a chore's report is its output")]
#![allow(
    clippy::print_stderr,
    reason = "a chore's progress goes beside its output"
)]

mod bpf;
mod bpf_linker;
mod bpf_object;
mod btf;
mod object_code;
mod object_lint;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The chores of the flame-bpf repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Make the BPF object under profiler-ebpf/prebuilt from its source
    Bpf {
        /// Change nothing; fail unless the committed object is byte for byte what the source makes
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    // rustc calls this very program as the linker of the BPF object; there is no command line of ours to parse then.
    let done = match bpf_linker::requested() {
        Some(linker) => bpf_linker::link(&linker),
        None => run(Args::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<()> {
    match args.chore {
        Chore::Bpf { check: false } => bpf::make(),
        Chore::Bpf { check: true } => bpf::check(),
    }
}
