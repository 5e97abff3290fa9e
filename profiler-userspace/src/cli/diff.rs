//! The command line of `flame-bpf diff`.
//!
//! In: the arguments of the process. Out: what to compare, and how, if that was asked for. Never opens a file.

use super::flags::{CgroupArgs, NameArgs, SELECTING, SelectArgs};
use super::{plan, value};
use crate::clock::Between;
use crate::diff::{Condition, DiffOptions};
use crate::output::{CalleeOrder, DiffFormat, MinWidth, Style, TextStyle};
use crate::plan::{DiffOutput, Diffing, Verbosity};
use crate::profile::select::Selection;
use anyhow::{Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Compare recordings: what changed, what is noise, and an exit code for CI; needs no privileges
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "flame-bpf diff BEFORE AFTER [OPTIONS]\n       flame-bpf diff BEFORE... [OPTIONS] -- AFTER...",
    after_help = "\
Exit status: 0 compared, no condition met; 1 failed; 2 wrong usage; 3 a condition is met; 4 these
recordings cannot tell whether one is.

Colours: red is more, blue is less, grey is noise; hatched where the inputs do not say how much they vary.",
    max_term_width = 120
)]
pub(super) struct DiffArgs {
    /// Raw recordings (-o NAME.fbpf), which tell noise from change; or what else render reads. `-` for stdin
    #[arg(value_name = "BEFORE", required = true)]
    files: Vec<PathBuf>,
    /// Several recordings of after, behind those of before: they also show what varies from run to run
    #[arg(last = true, value_name = "AFTER")]
    after: Vec<PathBuf>,
    /// Write .svg, .html, .txt (or `-`), .json or .folded (two columns). Repeatable [default: text on stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Compare CPU time (or what is counted) for each second instead of shares, for loads that differ
    #[arg(long)]
    absolute: bool,
    /// End with 3 if met, 4 if that cannot be told: 'self(parse_*) > +2%', 'total(f) > +1 point', 'any > +1 point'. Repeatable
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse)]
    fail_if: Vec<Condition>,
    /// Take samples for independent where inputs have no windows, though they are not: finds far too much
    #[arg(long)]
    assume_independent: bool,
    /// Take of before only the windows of that time: 13:00..14:00, "2026-11-22 13:00..". One input has both sides then
    #[arg(long, value_name = "FROM..TO", value_parser = value::between)]
    before: Option<Between>,
    /// The same for after
    #[arg(long = "after", value_name = "FROM..TO", value_parser = value::between)]
    after_time: Option<Between>,
    /// Compare this of what an input counts: a pprof sample type, a perf event, a bpftrace map
    #[arg(long, value_name = "NAME")]
    sample_type: Option<String>,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten, next_help_heading = SELECTING)]
    cgroups: CgroupArgs,
    #[command(flatten)]
    names: NameArgs,
    /// Title [default: the names of both sides]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Width of the image [default: as wide as the window]
    #[arg(long, value_name = "PIXELS", value_parser = value::pixels)]
    width: Option<u32>,
    /// Join frames narrower than this, in pixels or as a share such as 0.5%; 0 keeps all in files of any size [default: 0.5]
    #[arg(long, value_name = "PIXELS")]
    minwidth: Option<MinWidth>,
    /// Grow downward, as icicles do
    #[arg(long)]
    inverted: bool,
    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

/// The comparison that the arguments ask for.
pub(super) fn build(args: DiffArgs) -> Result<Diffing> {
    let has_times = args.before.is_some() && args.after_time.is_some();
    let (before, after) = match (&*args.files, &*args.after) {
        // Of two times.
        ([one], []) if has_times => (vec![one.clone()], vec![one.clone()]),
        _ => sides(args.files, args.after)?,
    };
    let stdin = before
        .iter()
        .chain(&after)
        .filter(|file| *file == Path::new("-"));
    ensure!(
        stdin.count() < 2,
        "- is stdin, which can be read once; keep one of them"
    );
    let defaults = Style::default();
    let style = Style {
        width: args.width,
        minwidth: args.minwidth.unwrap_or(defaults.minwidth),
        inverted: args.inverted,
        // Where a function stands on one side it should stand on the other.
        order: Some(CalleeOrder::Name),
        text: TextStyle {
            // Where it is not known how wide lines may be.
            cuts_names: false,
            ..defaults.text
        },
        ..defaults
    };
    style.check()?;
    Ok(Diffing {
        before,
        after,
        before_time: args.before,
        after_time: args.after_time,
        sample_type: args.sample_type,
        selection: Selection {
            cgroups: args.cgroups.patterns(),
            ..args.select.selection()
        },
        options: DiffOptions {
            absolute: args.absolute,
            assume_independent: args.assume_independent,
        },
        conditions: args.fail_if,
        outputs: outputs(args.output)?,
        style,
        title: args.title,
        servers: plan::servers(args.names.debuginfod.as_deref())?,
        naming: plan::naming(args.names),
        verbosity: Verbosity {
            quiet: args.quiet,
            verbose: 0,
        },
    })
}

/// Before and after, of what stands before and behind `--`.
fn sides(mut files: Vec<PathBuf>, after: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    if let Some(option) = after.iter().find(|file| is_option(file)) {
        bail!(
            "{0} behind -- is taken for a recording; name options before --, and a file of that name as ./{0}",
            option.display()
        );
    }
    if !after.is_empty() {
        return Ok((files, after));
    }
    match files.len() {
        1 => bail!(
            "there is nothing to compare {} with; name what came after it",
            files[0].display()
        ),
        2 => {
            let after = files.split_off(1);
            Ok((files, after))
        }
        many => bail!(
            "{many} inputs, and nothing says which are before and which after; put -- between them, as in \
             `flame-bpf diff A1 A2 -- B1 B2`"
        ),
    }
}

/// Whether it reads like an option. `-` alone is stdin.
fn is_option(file: &Path) -> bool {
    let name = file.as_os_str().as_encoded_bytes();
    name.len() > 1 && name[0] == b'-'
}

fn outputs(paths: Vec<PathBuf>) -> Result<Vec<DiffOutput>> {
    let stdout = DiffOutput {
        path: None,
        format: DiffFormat::Text,
    };
    let mut outputs: Vec<DiffOutput> = Vec::new();
    for path in paths {
        let output = match path == Path::new("-") {
            true => stdout.clone(),
            false => DiffOutput {
                format: DiffFormat::from_path(&path)?,
                path: Some(path),
            },
        };
        ensure!(
            !outputs.contains(&output),
            "-o {} is given twice; leave one out",
            output.path.as_deref().unwrap_or(Path::new("-")).display()
        );
        outputs.push(output);
    }
    if outputs.is_empty() {
        outputs.push(stdout);
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Exit, Task};
    use std::ffi::OsString;

    fn parse(line: &[&str]) -> Result<Diffing, Exit> {
        let words = ["flame-bpf", "diff"].iter().chain(line);
        match crate::cli::parse(words.map(OsString::from), true)? {
            Task::Diff(diffing) => Ok(*diffing),
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn two_files_are_before_and_after() {
        let asked = parse(&["a.fbpf", "b.fbpf"]).unwrap();
        assert_eq!(
            (&*asked.before, &*asked.after),
            (&["a.fbpf".into()][..], &["b.fbpf".into()][..])
        );
        assert_eq!(asked.outputs.len(), 1);
        assert_eq!(asked.outputs[0].format, DiffFormat::Text);
        assert_eq!(asked.outputs[0].path, None);
    }

    #[test]
    fn several_stand_on_both_sides_of_two_dashes() {
        let asked = parse(&[
            "a", "b", "-o", "d.folded", "-o", "d.json", "--", "c", "d", "e",
        ])
        .unwrap();
        assert_eq!((asked.before.len(), asked.after.len()), (2, 3));
        let formats: Vec<_> = asked.outputs.iter().map(|output| output.format).collect();
        assert_eq!(formats, [DiffFormat::Folded, DiffFormat::Json]);
        let one = parse(&[
            "a",
            "--absolute",
            "--fail-if",
            "any > +1 point",
            "--fail-if",
            "self(f)>2%",
            "--",
            "b",
        ])
        .unwrap();
        assert_eq!((one.conditions.len(), one.options.absolute), (2, true));
        let all = parse(&["a", "b", "--minwidth", "0"]).unwrap();
        assert!(all.style.minwidth.is_zero());
    }

    #[test]
    fn one_input_has_two_sides_if_their_times_are_said() {
        let times = ["day", "--before", "13:00..14:00", "--after", "14:00.."];
        let asked = parse(&times).unwrap();
        assert_eq!(
            (&asked.before, &asked.after),
            (&vec!["day".into()], &vec!["day".into()])
        );
        assert!(asked.before_time.is_some() && asked.after_time.is_some());
        let two = parse(&["a", "b", "--after", "..14:00"]).unwrap();
        assert_eq!((two.before_time, two.after), (None, vec!["b".into()]));
        for wrong in [
            &["day", "--before", "13:00..14:00"][..],
            &["a", "b", "--before", "13:00"],
        ] {
            assert_eq!(parse(wrong).unwrap_err().code, 2, "{wrong:?}");
        }
    }

    #[test]
    fn anything_else_is_refused_and_help_is_given() {
        for line in [
            &["a"][..],
            &[],
            &["a", "b", "c"],
            &["-", "-"],
            &["a", "b", "-o", "d.fbpf"],
            &["a", "b", "-o", "d.txt", "-o", "d.txt"],
            &["a", "b", "--fail-if", "slower"],
            &["a", "b", "--width", "3"],
        ] {
            assert_eq!(parse(line).unwrap_err().code, 2, "{line:?}");
        }
        let help = parse(&["--help"]).unwrap_err();
        assert!(
            help.code == 0 && help.text.contains("cannot tell"),
            "{}",
            help.text
        );
    }
}
