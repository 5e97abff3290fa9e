//! An interpreter that runs programs under `workloads/`, and what a profile of any must show.
//!
//! In: how it is called, and what ends the names of its functions with `--annotate`. Out: running programs, their functions in
//! a stack, and checks that hold for all: shares by the program's own clock, and stacks of known depth, chains and lines that the
//! program names. Never: what only one
//! language has.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Folded, Grammar, Invocation, NEARLY_ALL, Run, Said, Stack, Workload, source};

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
    /// The same language's interpreter at another place.
    pub fn at(self, path: PathBuf) -> Self {
        let path = path.into_os_string().into_string();
        Self {
            command: path.expect("the path is text").leak(),
            ..self
        }
    }

    /// Those that a tool for several versions has installed, as far as it is understood what their folders are called. The tool's
    /// own folder is that of a variable, or one in the user's home; in it, `versions` holds a folder for each, with `program`.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn others(
        self,
        (variable, home): (&str, &str),
        (versions, program): (&str, &str),
        understood: impl Fn(&str) -> bool,
    ) -> Result<Vec<Self>, String> {
        let root = env::var_os(variable).map_or_else(
            || Path::new(&env::var_os("HOME").unwrap_or_default()).join(home),
            PathBuf::from,
        );
        let folder = root.join(versions);
        let all =
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let found: Vec<Self> = all
            .flatten()
            .filter(|version| understood(&version.file_name().to_string_lossy()))
            .map(|version| self.at(version.path().join(program)))
            .collect();
        match found.is_empty() {
            true => Err(format!("{} has none that is understood", folder.display())),
            false => Ok(found),
        }
    }

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
        self.check_shares_of(program, &[], Workload::stop)
    }

    /// As [`Interpreter::check_shares`], for a program that takes arguments and ends in a way of its own.
    ///
    /// # Panics
    ///
    /// When they have not.
    #[track_caller]
    pub fn check_shares_of(
        &self,
        program: &str,
        arguments: &[&str],
        end: fn(Workload) -> Said,
    ) -> Folded {
        let workload = self.start(program, arguments);
        // Some 6,000 samples, however busy the machine is.
        let folded = Invocation::new("-f -F 1997")
            .run_for_cpu_time(&workload, 3.0)
            .folded();
        let shares = end(workload).shares();
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

    /// Checks that every stack of a program, over so many seconds of CPU time, is a chain that it allows.
    ///
    /// # Panics
    ///
    /// When one is not.
    #[track_caller]
    pub fn check_chains(
        &self,
        program: &str,
        seconds: f64,
        functions: impl Fn(&Stack) -> Vec<String>,
    ) {
        let workload = self.start(program, &[]);
        let folded = annotated(&workload, seconds);
        Grammar::of(&workload.stop()).check(&folded, functions);
    }

    /// Checks that nearly all stacks of a program hold each of these lines.
    ///
    /// # Panics
    ///
    /// When they do not.
    #[track_caller]
    pub fn check_lines(&self, program: &str, lines: &[&str]) {
        let workload = self.start(program, &[]);
        let folded = profile("-f -F 997 -d 1 --lines", &workload).folded();
        for line in lines {
            let on_line = folded.share(|stack| stack.mentions(line));
            assert!(on_line > NEARLY_ALL, "{line}: {on_line} in {folded}");
        }
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
pub fn is_of(frame: &str, function: &str) -> bool {
    frame
        .strip_prefix(function)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}
