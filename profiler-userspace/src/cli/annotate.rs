//! The command line of `flame-bpf annotate`.
//!
//! In: the arguments of the process. Out: which function to show, and how; and what to record, if no recording is named.
//! Never opens the file.

use super::flags::NameArgs;
use super::record::{RecordArgs, RunningArgs, SamplingArgs, ScopeArgs};
use super::{plan, value};
use crate::clock::Moment;
use crate::plan::{Annotating, Recorded};
use crate::symbolize::Naming;
use anyhow::{Result, bail, ensure};
use std::ffi::OsString;
use std::path::PathBuf;

/// The raw recording of a plan, which is not known where it will be yet.
const RECORDING: &str = "annotated.fbpf";

/// Show the instructions of a function with samples: from a raw recording, or recorded now; code of the kernel and of runtimes as it runs
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "flame-bpf annotate FILE FUNCTION [OPTIONS]\n       flame-bpf annotate FUNCTION -p PID -d DURATION [OPTIONS] [-- COMMAND [ARGS]...]",
    max_term_width = 120
)]
pub(super) struct AnnotateArgs {
    /// A raw recording (-o NAME.fbpf), if one is not made now; and a name or regular expression; of several the hottest
    #[arg(value_name = "[FILE] FUNCTION", num_args = 1..=2, required = true)]
    words: Vec<OsString>,
    /// Run COMMAND and sample it with its children; with -a, -p, -n or -t, sample those until it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Skip windows that end before TIME: 14:05, "2026-11-22 14:05:30", or 90s, 2h after the start
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    from: Option<Moment>,
    /// Skip windows that begin at TIME or later
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    to: Option<Moment>,
    /// Show source from DIR, the top of its tree, between instructions; `debuginfod` asks servers; implies --lines. Repeatable
    #[arg(long, value_name = "DIR")]
    source: Vec<PathBuf>,
    /// Show code that a runtime made as its jitdump has it, also when it has ended; of a directory jit-PID.dump
    #[arg(long, value_name = "FILE|DIR")]
    jitdump: Option<PathBuf>,
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    running: RunningArgs,
}

/// The annotation that the arguments ask for. `usual`: those of a recording that nothing is said of.
pub(super) fn build(args: AnnotateArgs, usual: RecordArgs) -> Result<Annotating> {
    let servers = plan::servers(args.names.debuginfod.as_deref())?;
    let (function, file) = match &args.words[..] {
        [function] => (function, None),
        [file, function] => (function, Some(PathBuf::from(file))),
        _ => bail!("annotate takes a recording and a function, or a function alone to record now"),
    };
    let Some(function) = function.to_str() else {
        bail!("the function's name is no text; give it as the graph shows it");
    };
    let recorded = match file {
        Some(file) => {
            let scope = &args.scope;
            let has_target = scope.is_said() || args.sampling.is_said() || !args.command.is_empty();
            ensure!(
                !has_target,
                "{} is recorded already; leave out what to record, or the file to record now",
                file.display()
            );
            Recorded::File(file)
        }
        None => {
            ensure!(
                args.scope.is_said() || !args.command.is_empty(),
                "name a recording before the function, or say what to record now: -p PID, -a, or -- COMMAND"
            );
            ensure!(
                args.from.is_none() && args.to.is_none(),
                "--from and --to choose a part of a recording; name its file"
            );
            ensure!(
                args.sampling.event.len() <= 1,
                "instructions are shown with the samples of one event; keep one -e"
            );
            let mut record = RecordArgs {
                command: args.command,
                scope: args.scope,
                sampling: args.sampling,
                running: args.running,
                ..usual
            };
            record.output.output = vec![RECORDING.into()];
            // A summary would tell of a file that nobody sees.
            record.running.quiet |= record.running.verbose == 0;
            // Functions that a runtime's memory names have no addresses, those that its map names have.
            record.stacks.no_runtimes = true;
            Recorded::Now(Box::new(plan::build(record, false, None)?))
        }
    };
    let naming = plan::naming(args.names);
    Ok(Annotating {
        recorded,
        function: function.to_owned(),
        from: args.from,
        to: args.to,
        naming: Naming {
            lines: naming.lines || !args.source.is_empty(),
            ..naming
        },
        servers,
        source: args.source,
        jitdump: args.jitdump,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Exit, Task, parse};
    use crate::plan::{Output, Target};
    use std::time::Duration;

    fn annotate(line: &str) -> Result<Task, Exit> {
        let words = ["flame-bpf", "annotate"].into_iter();
        parse(words.chain(line.split(' ')).map(OsString::from), true)
    }

    #[test]
    fn a_function_of_a_recording_is_asked_for() {
        let Ok(Task::Annotate(asked)) = annotate("x.fbpf work::<.*> --source src --source lib")
        else {
            panic!("an annotation");
        };
        assert_eq!(asked.recorded, Recorded::File(PathBuf::from("x.fbpf")));
        assert_eq!(asked.function, "work::<.*>");
        assert_eq!(asked.source, [PathBuf::from("src"), PathBuf::from("lib")]);
        assert!(asked.naming.lines);
        let Ok(Task::Annotate(asked)) = annotate("x.fbpf work") else {
            panic!("an annotation");
        };
        assert!(!asked.naming.lines && asked.source.is_empty());
    }

    #[test]
    fn a_recording_is_made_where_none_is_named() {
        let recorded = |line: &str| match annotate(line) {
            Ok(Task::Annotate(asked)) => match asked.recorded {
                Recorded::Now(plan) => *plan,
                Recorded::File(file) => panic!("{file:?} is recorded"),
            },
            other => panic!("an annotation: {other:?}"),
        };
        let plan = recorded("work -p 7 -d 5 -F 997");
        assert_eq!(plan.target, Target::Processes(vec![7]));
        assert_eq!(plan.duration, Some(Duration::from_secs(5)));
        let outputs: Vec<&Output> = plan.all_outputs().collect();
        assert!(
            matches!(outputs[..], [Output::RawRecording { .. }]),
            "{outputs:?}"
        );
        assert!(plan.verbosity.quiet && !plan.capture.runtimes);
        assert_eq!(recorded("work -a").target, Target::All);
        let launch = recorded("work -- sleep 1").launch;
        assert_eq!(launch, Some(vec!["sleep".into(), "1".into()]));
    }

    #[test]
    fn anything_else_is_refused() {
        for line in [
            "x.fbpf",
            "x.fbpf a b",
            "x.fbpf a -p 1",
            "x.fbpf a -d 5",
            "x.fbpf a -- true",
            "work -p 1 --from 10s",
            "work -p 1 -e cycles -e page-faults",
            "work -F 99",
        ] {
            assert_eq!(annotate(line).unwrap_err().code, 2, "{line}");
        }
    }
}
