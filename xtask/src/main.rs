//! The chores of this repository: `cargo xtask CHORE`.
//!
//! In: a command line. Out: a built, checked or tested workspace, and an exit code. Each chore is one module; nothing here
//! is part of what users install.
#![allow(clippy::print_stdout, reason = "a chore's report is its output")]
#![allow(
    clippy::print_stderr,
    reason = "a chore's progress goes beside its output"
)]

mod bench;
mod bless;
mod bpf;
mod bpf_linker;
mod bpf_object;
mod btf;
mod build;
mod check;
mod circles;
mod completeness;
mod dist;
mod files;
mod fuzz;
mod imports;
mod kernel_tests;
mod layering;
mod links;
mod load;
mod object_code;
mod object_lint;
mod outcome;
mod record_memory;
mod root;
mod run;
mod sharing;
mod source;
mod test;
mod test_executable;
mod test_times;
mod transcript;
mod vm;
mod words;
mod workspace;
mod x86_64;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use x86_64 as arch;

/// The chores of the flame-bpf repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build flame-bpf and run it as root
    Run {
        /// Arguments of flame-bpf
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run the tests, those that need root included
    Test(test::Choice),
    /// Check everything that can be checked without running it
    Check(check::Choice),
    /// Make the BPF object under profiler-ebpf/prebuilt from its source
    Bpf {
        /// Change nothing; fail unless the committed object is byte for byte what the source makes
        #[arg(long)]
        check: bool,
    },
    /// Rewrite the files that the golden tests compare with
    Bless,
    /// Make what users install, under target/dist
    Dist,
    /// Boot other kernels under an emulator, and profile there
    Vm(vm::Choice),
    /// Measure what flame-bpf costs, beside the other profilers that are installed
    Bench(bench::Choice),
    /// Feed broken input to everything that reads what others wrote
    Fuzz(fuzz::Choice),
    /// Record what a walk reads of an interpreter's memory, for the tests
    RecordMemory(record_memory::Choice),
    /// Profile stock programs at work, and count how many stacks go down to the root
    Completeness(completeness::Choice),
    /// The half of `completeness` that runs as root
    #[command(hide = true)]
    CompletenessMeasure(completeness::Order),
    /// The half of `bench` that runs as root
    #[command(hide = true)]
    BenchMeasure(bench::Order),
}

fn main() -> ExitCode {
    // rustc calls this very program as the linker of the BPF object; there is no command line of ours to parse then.
    let done = match bpf_linker::requested() {
        Some(linker) => bpf_linker::link(&linker).map(|()| true),
        None => run(Args::parse()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        // The chore has said what is wrong, and its last line shall stay the last.
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does a chore; `false` when it failed and has said all about it.
fn run(args: Args) -> Result<bool> {
    match args.chore {
        Chore::Run { arguments } => run::run(arguments)?,
        Chore::Test(choice) => return test::test(&choice),
        Chore::Check(choice) => check::check(&choice)?,
        Chore::Bpf { check: false } => bpf::make()?,
        Chore::Bpf { check: true } => bpf::check()?,
        Chore::Bless => bless::bless()?,
        Chore::Dist => dist::dist()?,
        Chore::Vm(choice) => return vm::vm(&choice),
        Chore::Bench(choice) => bench::bench(&choice)?,
        Chore::Fuzz(choice) => return fuzz::fuzz(&choice),
        Chore::RecordMemory(choice) => return record_memory::record(&choice),
        Chore::Completeness(choice) => completeness::completeness(&choice)?,
        Chore::CompletenessMeasure(order) => return completeness::measure(&order),
        Chore::BenchMeasure(order) => bench::measure(&order)?,
    }
    Ok(true)
}
