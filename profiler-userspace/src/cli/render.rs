//! The command line of `flame-bpf render`.
//!
//! In: the arguments of the process. Out: what to render, and how, if that was asked for. Never opens the
//! file.

use std::path::{Path, PathBuf};

use super::chart::ChartArgs;
use super::flags::{
    CgroupArgs, LookArgs, NameArgs, OutputArgs, SELECTING, SelectArgs, cgroup_part,
};
use super::{plan, value};
use crate::clock::Moment;
use crate::output::Style;
use crate::plan::{Output, Rendering, RootPer, Verbosity};
use crate::profile::select::Selection;
use anyhow::{Result, ensure};

/// Draw raw recordings (-o NAME.fbpf) and profiles of other tools, on any machine; needs no privileges
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "flame-bpf render FILE... [OPTIONS]",
    max_term_width = 120
)]
pub(super) struct RenderArgs {
    /// Raw recordings, pprof, folded stacks, text of perf script, bpftrace ...; `-` for stdin. Shown together
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Skip windows that end before TIME: 14:05, "2026-11-22 14:05:30", or 90s, 2h after the start
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    from: Option<Moment>,
    /// Skip windows that begin at TIME or later
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    to: Option<Moment>,
    /// Show this of what an input counts: a pprof sample type, a perf event, a bpftrace map
    #[arg(long, value_name = "NAME")]
    sample_type: Option<String>,
    /// Begin stacks with the file, the raw recording's host, or the container, unit, pod or cgroup
    #[arg(long, value_name = "file|host|container|unit|pod|cgroup", value_parser = root_per)]
    root_per: Option<RootPer>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    chart: ChartArgs,
    #[command(flatten)]
    select: SelectArgs,
    /// Show only samples of these CPUs, such as 0-3,8 (of recordings with --per-cpu)
    #[arg(short = 'C', long, value_name = "LIST", value_parser = value::cpus, help_heading = SELECTING)]
    cpu: Option<value::Cpus>,
    #[command(flatten, next_help_heading = SELECTING)]
    cgroups: CgroupArgs,
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

fn root_per(text: &str) -> Result<RootPer, String> {
    match text {
        "file" => Ok(RootPer::File),
        "host" => Ok(RootPer::Host),
        part => (cgroup_part(part).map(RootPer::Part))
            .ok_or_else(|| "say file, host, container, unit, pod or cgroup".to_owned()),
    }
}

/// The rendering that the arguments ask for.
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
    args.chart.check(outputs.iter(), &args.look)?;
    plan::check_source(&args.output, &outputs)?;
    Ok(Rendering {
        files: args.files,
        sample_type: args.sample_type,
        root_per: args.root_per,
        selection: Selection {
            cpus: args.cpu.map_or_else(Vec::new, |cpus| cpus.0),
            cgroups: args.cgroups.patterns(),
            ..args.select.selection()
        },
        from: args.from,
        to: args.to,
        style: Style {
            chart: args.chart.flamechart,
            ..plan::style(&args.look, &args.output, is_drawn)?
        },
        resolution: args.chart.resolution,
        opens: plan::opens(&args.output, is_drawn)?,
        colors: args.look.colors,
        outputs,
        title: args.look.title,
        servers: plan::servers(args.names.debuginfod.as_deref())?,
        naming: plan::naming_for(args.names, &args.output),
        source: args.output.source,
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

    use crate::profile::cgroup::CgroupPart;
    use crate::profile::select::{Pattern, Who};
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
    fn a_part_of_the_profile_is_selected_by_patterns_and_owners() {
        let usual = parse("render a").unwrap();
        assert!(usual.selection.is_all());
        assert_eq!((usual.sample_type, usual.root_per), (None, None));
        let line = "render a b --focus x --focus ^y$ --ignore z --hide h --root-at r --process 7,8 --process sh \
                    --thread w.* --cpu 0-1 --collapse-recursion --sample-type cycles --root-per host";
        let asked = parse(line).unwrap();
        let selection = &asked.selection;
        let focus: Vec<_> = selection.focus.iter().map(Pattern::text).collect();
        assert_eq!(focus, ["x", "^y$"]);
        assert_eq!((selection.processes.len(), selection.threads.len()), (3, 1));
        assert_eq!(selection.processes[1], Who::Id(8));
        assert_eq!(selection.cpus, [0, 1]);
        assert!(selection.collapse_recursion);
        let asked_of = parse("render a --container web --unit nginx --root-per pod").unwrap();
        let wanted: Vec<_> = asked_of
            .selection
            .cgroups
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(wanted, ["container web", "unit nginx.service"]);
        assert_eq!(asked_of.root_per, Some(RootPer::Part(CgroupPart::Pod)));
        let patterns = [&selection.ignore, &selection.hide, &selection.root_at];
        assert!(patterns.iter().all(|patterns| patterns.len() == 1));
        assert_eq!(asked.sample_type.as_deref(), Some("cycles"));
        assert_eq!(asked.root_per, Some(RootPer::Host));
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
            "render a --focus (",
            "render a --process [",
            "render a --cpu x",
            "render a --root-per machine",
            "render a --container=",
        ] {
            assert_eq!(parse(line).unwrap_err().code, 2, "{line}");
        }
        let help = parse("render --help").unwrap_err();
        assert_eq!(help.code, 0);
        assert!(help.text.contains("--debug-dir"), "{}", help.text);
    }
}
