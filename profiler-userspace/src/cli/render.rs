//! The command line of `flame-bpf render`.
//!
//! In: the arguments of the process. Out: what to render, and how, if that was asked for. Never opens the
//! file.

use std::path::{Path, PathBuf};

use super::flags::{LookArgs, NameArgs, OutputArgs};
use super::{plan, value};
use crate::clock::Moment;
use crate::plan::{Output, Rendering, Verbosity};
use anyhow::{Result, ensure};

/// Draw a raw recording (-o NAME.fbpf): on any machine, as often as wanted; needs no privileges
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "flame-bpf render FILE... [OPTIONS]",
    max_term_width = 120
)]
pub(super) struct RenderArgs {
    /// Raw recordings or folded stacks of any tool, shown together; `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Skip windows that end before TIME: 14:05, "2026-11-22 14:05:30", or 90s, 2h after the start
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    from: Option<Moment>,
    /// Skip windows that begin at TIME or later
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    to: Option<Moment>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    look: LookArgs,
    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
    /// Print where the raw recording comes from and what it holds
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// What to render.
pub(super) fn build(args: RenderArgs, stdout_is_terminal: bool) -> Result<Rendering> {
    ensure!(
        !args.quiet || args.verbose == 0,
        "-q prints less and -v prints more; keep one of them"
    );
    let stdin = args.files.iter().filter(|file| *file == Path::new("-"));
    ensure!(
        stdin.count() < 2,
        "- is stdin, which can be read once; keep one of them"
    );
    let outputs = plan::outputs(&args.output, stdout_is_terminal)?;
    for output in &outputs {
        if let Output::RawRecording { path } = output {
            anyhow::bail!(
                "{}: render does not write raw recordings; copy the file instead",
                path.display()
            );
        }
    }
    let is_drawn = outputs.iter().any(Output::is_drawn);
    Ok(Rendering {
        files: args.files,
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
    use crate::cli::{Exit, Task};
    use crate::output::Format;
    use std::ffi::OsString;

    use crate::symbolize::Demangling;
    use std::time::Duration;

    fn parse(line: &str) -> Result<Rendering, Exit> {
        let words = std::iter::once("flame-bpf").chain(line.split_whitespace());
        match crate::cli::parse(words.map(OsString::from), true)? {
            Task::Render(rendering) => Ok(*rendering),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn render_takes_a_file_and_flags_for_outputs_names_and_style() {
        let line =
            "render a.fbpf -o b.svg -f --inline --simplify --debug-dir /d --title T --inverted";
        let asked = parse(line).unwrap();
        assert_eq!(asked.files, [Path::new("a.fbpf")]);
        assert_eq!(asked.title.as_deref(), Some("T"));
        assert!(asked.naming.inlined && asked.style.inverted);
        assert_eq!(asked.naming.demangling, Demangling::Simplified);
        let formats: Vec<_> = asked.outputs.iter().map(Output::format).collect();
        assert_eq!(formats, [Some(Format::SVG), Some(Format::FOLDED)]);
        let windows = parse("render a.fbpf --from 14:05 --to 2h").unwrap();
        assert!(matches!(windows.from, Some(Moment::Time(_))));
        assert_eq!(windows.to, Some(Moment::After(Duration::from_secs(7200))));
        let usual = parse("render a.fbpf").unwrap();
        assert_eq!(usual.outputs[0].format(), Some(Format::SVG));
    }

    #[test]
    fn anything_else_is_refused_and_help_is_given() {
        for line in [
            "render",
            "render - a -",
            "render a -p 1",
            "render a -F 9",
            "render a -o b.fbpf",
            "render a -q -v",
            "render a --debuginfod=x",
            "render a -f --title T",
            "render a --from yesterday",
            "render a --to 25:00",
        ] {
            assert_eq!(parse(line).unwrap_err().code, 2, "{line}");
        }
        let help = parse("render --help").unwrap_err();
        assert_eq!(help.code, 0);
        assert!(help.text.contains("--debug-dir"), "{}", help.text);
    }
}
