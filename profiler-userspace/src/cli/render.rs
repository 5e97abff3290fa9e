//! The command line of `flame-bpf render`.
//!
//! In: the arguments of the process. Out: what to render, and how, if that was asked for. Never opens the
//! file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser as _;

use super::{Exit, LookArgs, NameArgs, OutputArgs, plan, value};
use crate::clock::Moment;
use crate::output::Format;
use crate::plan::{Output, Rendering, Verbosity};
use anyhow::{Result, ensure};

/// What it is asked for by.
const WORD: &str = "render";

/// Names and draws a raw recording, which `flame-bpf -o NAME.fbpf` made: here or on another machine, as often
/// and in as many ways as wanted. Objects are found where they were, if they are the same builds, their debug
/// files as usual; what is not found is shown by module and offset. Needs no privileges.
#[derive(Debug, clap::Parser)]
#[command(
    name = "flame-bpf render",
    override_usage = "flame-bpf render FILE [OPTIONS]",
    max_term_width = 120
)]
struct Args {
    /// The raw recording; `-` for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave out windows that end before TIME: 14:05, "2026-11-22 14:05:30", or 90s, 2h after the beginning
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    from: Option<Moment>,
    /// Leave out windows that begin at TIME or later
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    to: Option<Moment>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    look: LookArgs,
    /// Say nothing but warnings and errors
    #[arg(short, long)]
    quiet: bool,
    /// Say where the raw recording comes from, and what it holds
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// What is asked for, if it is this.
///
/// # Errors
/// What to print and the exit code to end with, where it cannot be obeyed or asks for help.
pub fn parse_render(
    arguments: &[OsString],
    stdout_is_terminal: bool,
) -> Option<Result<Rendering, Exit>> {
    match arguments {
        [_, word, ..] if word == WORD => Some(read(&arguments[1..], stdout_is_terminal)),
        _ => None,
    }
}

fn read(arguments: &[OsString], stdout_is_terminal: bool) -> Result<Rendering, Exit> {
    let args = Args::try_parse_from(arguments).map_err(Exit::from_clap)?;
    build(args, stdout_is_terminal).map_err(|error| Exit::usage(&format!("{error:#}")))
}

fn build(args: Args, stdout_is_terminal: bool) -> Result<Rendering> {
    ensure!(
        !args.quiet || args.verbose == 0,
        "-q says less and -v says more; keep one of them"
    );
    let outputs = plan::outputs(&args.output, stdout_is_terminal)?;
    for output in &outputs {
        if let Output::RawRecording { path } = output {
            anyhow::bail!(
                "{} would be a raw recording, as {} is one already; copy it",
                path.display(),
                args.file.display()
            );
        }
    }
    let is_drawn = outputs
        .iter()
        .any(|output| output.format() == Some(Format::Svg));
    Ok(Rendering {
        file: args.file,
        from: args.from,
        to: args.to,
        style: plan::style(&args.look, &args.output, is_drawn)?,
        colors: args.look.colors,
        outputs,
        title: args.look.title,
        servers: plan::servers(args.names.debuginfod.as_deref())?,
        naming: plan::naming(args.names),
        verbosity: Verbosity {
            quiet: args.quiet,
            verbose: args.verbose,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::symbolize::Demangling;
    use std::path::Path;
    use std::time::Duration;

    fn parse(line: &str) -> Option<Result<Rendering, Exit>> {
        let words = std::iter::once("flame-bpf").chain(line.split_whitespace());
        parse_render(&words.map(OsString::from).collect::<Vec<_>>(), true)
    }

    #[test]
    fn a_file_and_the_flags_about_outputs_names_and_looks_are_taken() {
        let line =
            "render a.fbpf -o b.svg -f --inline --simplify --debug-dir /d --title T --inverted";
        let asked = parse(line).unwrap().unwrap();
        assert_eq!(asked.file, Path::new("a.fbpf"));
        assert_eq!(asked.title.as_deref(), Some("T"));
        assert!(asked.naming.inlined && asked.style.inverted);
        assert_eq!(asked.naming.demangling, Demangling::Simplified);
        let formats: Vec<_> = asked.outputs.iter().map(Output::format).collect();
        assert_eq!(formats, [Some(Format::Svg), Some(Format::Folded)]);
        let windows = parse("render a.fbpf --from 14:05 --to 2h")
            .unwrap()
            .unwrap();
        assert!(matches!(windows.from, Some(Moment::Time(_))));
        assert_eq!(windows.to, Some(Moment::After(Duration::from_secs(7200))));
        let usual = parse("render a.fbpf").unwrap().unwrap();
        assert_eq!(usual.outputs[0].format(), Some(Format::Svg));
    }

    #[test]
    fn anything_else_is_refused_or_somebody_elses() {
        assert!(parse("-d 3").is_none());
        for line in [
            "render",
            "render a b",
            "render a -p 1",
            "render a -F 9",
            "render a -o b.fbpf",
            "render a -q -v",
            "render a --debuginfod=x",
            "render a -f --title T",
            "render a --from yesterday",
            "render a --to 25:00",
        ] {
            assert_eq!(parse(line).unwrap().unwrap_err().code, 2, "{line}");
        }
        let help = parse("render --help").unwrap().unwrap_err();
        assert_eq!(help.code, 0);
        assert!(help.text.contains("--debug-dir"), "{}", help.text);
    }
}
