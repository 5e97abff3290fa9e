//! An interpreter that runs programs under `workloads/`, and what a profile of any must show.
//!
//! In: how it is called, and what ends the names of its functions with `--annotate`. Out: running programs, their functions in
//! a stack, and checks that hold for all: shares by the program's own clock, and stacks of known depth. Never: what only one
//! language has.

use std::path::Path;
use std::process::Command;

use crate::{Folded, Invocation, Run, Stack, Workload, source};

/// How far a share may be from the truth, as in `kernel_on_cpu`: three standard deviations at 6,000 samples.
const TOLERANCE: f64 = 0.02;

/// An interpreter.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    /// Its name, which is looked up in `PATH`.
    pub command: &'static str,
    /// Arguments before the program: to leave the machine's own settings out.
    pub arguments: &'static [&'static str],
    /// The folder under `workloads/`.
    pub folder: &'static str,
    /// Suffix of the names of its functions with `--annotate`.
    pub suffix: &'static str,
}

impl Interpreter {
    /// Starts a program of its folder.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Workload {
        let script = source(&format!("{}/{program}", self.folder));
        let mut command = Command::new(self.command);
        Workload::start(command.args(self.arguments).arg(script).args(arguments))
    }

    /// Profiles a program of its folder that ends by itself. `path` is the interpreter's.
    pub fn run(&self, path: &Path, flags: &str, program: &str) -> Folded {
        let script = source(&format!("{}/{program}", self.folder));
        let script = script.to_str().expect("the path is text");
        Invocation::new(flags)
            .command(path, &[self.arguments, &[script]].concat())
            .run()
            .expect_no_panic()
            .expect_code(0)
            .folded()
    }

    /// The interpreter's functions in a stack of a profile with `--annotate`, from the root, with what follows their names.
    pub fn functions<'a>(&self, stack: &'a Stack) -> impl Iterator<Item = &'a str> {
        let suffix = self.suffix;
        let frames = stack.frames.iter();
        frames.filter_map(move |frame| frame.strip_suffix(suffix))
    }

    /// Checks that the phases of a program have the shares that it measured itself, and returns its profile.
    ///
    /// # Panics
    ///
    /// When they have not.
    #[track_caller]
    pub fn check_shares(&self, program: &str) -> Folded {
        let workload = self.start(program, &[]);
        let folded = profile("-f -F 997 -d 6", &workload).folded();
        let shares = workload.stop().shares();
        let has = |stack: &Stack, phase: &str| stack.frames.iter().any(|frame| is_of(frame, phase));
        for (phase, truth) in &shares {
            let shown = folded.share_among(
                |stack| shares.iter().any(|(phase, _)| has(stack, phase)),
                |stack| has(stack, phase),
            );
            assert!(
                (shown - truth).abs() < TOLERANCE,
                "{phase}: {shown}, {truth} in {folded}"
            );
        }
        folded
    }

    /// Checks that 900 calls of a function in itself are whole, and 5,000 cut with a mark.
    ///
    /// # Panics
    ///
    /// When they are not.
    #[track_caller]
    pub fn check_depths(&self, program: &str, function: &str) {
        for (depth, is_whole) in [("900", true), ("5000", false)] {
            let workload = self.start(program, &[depth]);
            let folded = profile("-f -F 997 -d 1", &workload).folded();
            let stack = folded.heaviest();
            let frames = stack.frames.iter();
            let calls = frames.filter(|frame| is_of(frame, function)).count();
            assert_eq!(stack.has("[truncated]"), !is_whole, "{stack:?}");
            if is_whole {
                assert_eq!(calls, 901, "{stack:?}");
            } else {
                assert!((1000..=1024).contains(&calls), "{calls} in {stack:?}");
            }
        }
    }
}

/// Profiles a running program.
#[track_caller]
pub fn profile(flags: &str, workload: &Workload) -> Run {
    Invocation::new(flags)
        .flag("-p", workload.pid())
        .run()
        .expect_no_panic()
        .expect_code(0)
}

/// Profile of a running program over so many seconds of CPU time, with the interpreter's functions
/// annotated.
#[track_caller]
pub fn annotated(workload: &Workload, seconds: f64) -> Folded {
    Invocation::new("-f -F 1997 --annotate")
        .run_for_cpu_time(workload, seconds)
        .folded()
}

/// Whether a frame is of a function, wherever that is defined.
fn is_of(frame: &str, function: &str) -> bool {
    frame
        .strip_prefix(function)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}
