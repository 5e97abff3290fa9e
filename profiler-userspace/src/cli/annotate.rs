//! The command line of `flame-bpf annotate`.
//!
//! In: the arguments of the process. Out: which function to show, and how. Never opens the file.

use super::flags::NameArgs;
use super::{plan, value};
use crate::clock::Moment;
use crate::plan::Annotating;
use crate::symbolize::Naming;
use anyhow::Result;
use std::path::PathBuf;

/// Show the instructions of a native function in a raw recording, with samples; needs its object's file
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "flame-bpf annotate FILE FUNCTION [OPTIONS]",
    max_term_width = 120
)]
pub(super) struct AnnotateArgs {
    /// A raw recording (-o NAME.fbpf), also one that still grows
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The function's name, or a regular expression; of several the hottest
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// Skip windows that end before TIME: 14:05, "2026-11-22 14:05:30", or 90s, 2h after the start
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    from: Option<Moment>,
    /// Skip windows that begin at TIME or later
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    to: Option<Moment>,
    /// Show source from DIR, the top of its tree, between instructions; implies --lines. Repeatable
    #[arg(long, value_name = "DIR")]
    source: Vec<PathBuf>,
    #[command(flatten)]
    names: NameArgs,
}

/// The annotation that the arguments ask for.
pub(super) fn build(args: AnnotateArgs) -> Result<Annotating> {
    let servers = plan::servers(args.names.debuginfod.as_deref())?;
    let naming = plan::naming(args.names);
    Ok(Annotating {
        file: args.file,
        function: args.function,
        from: args.from,
        to: args.to,
        naming: Naming {
            lines: naming.lines || !args.source.is_empty(),
            ..naming
        },
        servers,
        source: args.source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Exit, Task, parse};
    use std::ffi::OsString;

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
        assert_eq!(asked.file, PathBuf::from("x.fbpf"));
        assert_eq!(asked.function, "work::<.*>");
        assert_eq!(asked.source, [PathBuf::from("src"), PathBuf::from("lib")]);
        assert!(asked.naming.lines);
        let Ok(Task::Annotate(asked)) = annotate("x.fbpf work") else {
            panic!("an annotation");
        };
        assert!(!asked.naming.lines && asked.source.is_empty());
    }

    #[test]
    fn anything_else_is_refused() {
        for line in ["x.fbpf", "x.fbpf a b", "x.fbpf a -p 1"] {
            assert_eq!(annotate(line).unwrap_err().code, 2, "{line}");
        }
    }
}
