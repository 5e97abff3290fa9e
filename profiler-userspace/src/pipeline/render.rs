//! Conducts a rendering: windows come from files, and all of them go to the same outputs.
//!
//! In: raw recordings and profiles of other tools, and how they are to be named and drawn. Out: the outputs, and what the recording said at
//! its end, with what there is to say of names now. Never touches the kernel half, and needs no privileges.

use super::prepare;
use crate::desktop;
use crate::output::length;
use crate::pipeline::foreign::{self, Foreign};
use crate::pipeline::input::{self, Input};
use crate::pipeline::read_summary::{self, Shown};
use crate::pipeline::select::select;
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::view::{style, viewed};
use crate::pipeline::write::{write, wrote};
use crate::plan::{Output, Rendering, RootPer};
use crate::profile::fold::visible;
use crate::profile::{MOST_WINDOWS, Origin, Profile, Unit, WindowTotals};
use crate::raw_recording::{Read, Wanted};
use crate::report::findings::{Finding, Summary};
use crate::report::print;
use anyhow::{Result, bail, ensure};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Renders as asked.
///
/// # Errors
/// When an input cannot be read or is of no kind that is known, when nothing of them is selected, when inputs cannot be shown together,
/// or when an output cannot be written.
pub fn render(asked: &Rendering) -> Result<()> {
    let sinks = prepare(asked.outputs.iter())?;
    let time = |began: SystemTime| {
        let from = asked
            .from
            .map_or(SystemTime::UNIX_EPOCH, |from| from.of(began));
        // Beyond what a file can tell.
        let end = || SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::MAX);
        from..asked.to.map_or_else(end, |to| to.of(began))
    };
    let windows = windows(asked);
    let wanted: Wanted<'_> = (asked.from.is_some() || asked.to.is_some()).then_some(&time);
    let read = |file: &PathBuf| Input::read(file, wanted, windows);
    let inputs: Vec<Input> = asked.files.iter().map(read).collect::<Result<_>>()?;
    let symbolizer = Symbolizer::new(&asked.naming, &asked.servers, asked.verbosity.quiet);
    let pieces = pieces(asked, inputs, &symbolizer)?;
    let Piece {
        mut profile,
        title,
        mut summary,
        about,
        missing,
    } = merged(pieces)?;
    divide(&mut profile, asked)?;
    let (profile, left_out) = select(profile, &asked.selection)?;
    summary.findings.extend(left_out);
    let title = asked.title.clone().unwrap_or(title);
    let style = style(
        &asked.style,
        asked.colors,
        (title, summary.lines()),
        &profile,
    );
    let places: Vec<_> = sinks.iter().zip(&asked.outputs).collect();
    let files = write(&places, Some(profile), &style, None)?;
    if asked.verbosity.verbose > 0 {
        print(&about);
    }
    if !asked.verbosity.quiet {
        summary.findings.extend(wrote(files));
        print(&summary.shown());
    } else {
        print(&missing);
    }
    let picture = asked.outputs.iter().find_map(Output::picture);
    if let Some(picture) = picture.filter(|_| asked.opens) {
        print(&desktop::open(picture));
    }
    Ok(())
}

/// More windows take more memory, and most outputs have room for few.
const USUAL_WINDOWS: usize = 40;

/// By how many windows samples are told apart.
fn windows(asked: &Rendering) -> usize {
    match asked.style.chart || asked.resolution.is_some() {
        true => MOST_WINDOWS,
        false if asked.outputs.iter().any(Output::has_windows) => USUAL_WINDOWS,
        false => 1,
    }
}

/// Makes windows as long as was asked for.
fn divide(profile: &mut Profile, asked: &Rendering) -> Result<()> {
    let Some(resolution) = asked.resolution else {
        return Ok(());
    };
    let own = WindowTotals::resolution(&profile.windows);
    ensure!(
        !own.is_zero(),
        "--resolution {resolution:?} cannot be had: several files together, profiles of other tools and --wall have no \
         windows; render one raw recording"
    );
    ensure!(
        resolution * 8 >= own * 7,
        "--resolution {resolution:?} cannot be had: the recording is divided into windows of {}, which cannot be \
         divided again; leave it out, or record again with --resolution {resolution:?}",
        length(own)
    );
    profile.widen_windows(resolution);
    Ok(())
}

/// What an input comes to.
struct Piece {
    profile: Profile,
    title: String,
    summary: Summary,
    /// Where it comes from, a fact to a line.
    about: String,
    /// What is to be said in any case; empty if nothing is.
    missing: String,
}

/// All pieces as one.
fn merged(mut pieces: Vec<Piece>) -> Result<Piece> {
    let mut all = pieces.remove(0);
    if pieces.is_empty() {
        return Ok(all);
    }
    let count = pieces.len() + 1;
    all.title = format!("{}, and {} more", all.title, count - 1);
    all.summary.title = visible(&all.title).into_owned();
    for piece in pieces {
        all.profile.merge(&piece.profile)?;
        let name = Finding::new("and", piece.summary.title);
        all.summary.findings.push(name);
        all.summary.findings.extend(piece.summary.findings);
        all.about.push_str(&piece.about);
        all.missing.push_str(&piece.missing);
    }
    Ok(all)
}

/// What each input comes to, in the order of the inputs.
fn pieces(
    asked: &Rendering,
    inputs: Vec<Input>,
    symbolizer: &Symbolizer<'_>,
) -> Result<Vec<Piece>> {
    // Some do not say what they count, which is what the others do. So these come first.
    let says_unit = |input: &Input| match input {
        Input::Recording(_) => true,
        Input::Foreign { kind, .. } => kind.has_unit(),
    };
    let numbered = asked.files.iter().zip(inputs).enumerate();
    let (first, then): (Vec<_>, Vec<_>) = numbered.partition(|(_, (_, input))| says_unit(input));
    let mut pieces: Vec<(usize, Piece)> = Vec::new();
    for (number, (file, input)) in first.into_iter().chain(then) {
        let name = input::name(file);
        let unit = pieces.first().map(|(_, piece)| piece.profile.unit.clone());
        let (mut piece, host) = match input {
            Input::Recording(read) => {
                ensure!(
                    asked.sample_type.is_none(),
                    "cannot render {name}: a raw recording counts one thing alone; leave --sample-type out"
                );
                let host = read.raw_recording.facts.host.clone();
                (of_recording(symbolizer, *read), Some(host))
            }
            Input::Foreign { kind, bytes } => {
                let wanted = input_wanted(asked, unit);
                let foreign = foreign::read(&name, kind, &bytes, &wanted)?;
                (Piece::from(foreign), None)
            }
        };
        let source = match (asked.root_per, host) {
            (None, _) => None,
            (Some(RootPer::File), _) => Some(name),
            (Some(RootPer::Host), Some(host)) => Some(host),
            (Some(RootPer::Host), None) => bail!(
                "cannot render {name}: it does not name its host, as raw recordings do; use --root-per file"
            ),
        };
        if let Some(source) = source {
            piece.profile.set_source(&source);
        }
        pieces.push((number, piece));
    }
    pieces.sort_by_key(|(number, _)| *number);
    Ok(pieces.into_iter().map(|(_, piece)| piece).collect())
}

/// What is wanted of a profile of another tool, which stands beside others of this unit.
fn input_wanted(asked: &Rendering, unit: Option<Unit>) -> crate::input::Wanted<'_> {
    crate::input::Wanted {
        unit: unit.unwrap_or(Unit::Samples),
        sample_type: asked.sample_type.as_deref(),
    }
}

impl From<Foreign> for Piece {
    fn from(foreign: Foreign) -> Self {
        let Foreign {
            profile,
            summary,
            about,
        } = foreign;
        Self {
            profile,
            title: summary.title.clone(),
            summary,
            about,
            missing: String::new(),
        }
    }
}

/// A raw recording, with names.
fn of_recording(symbolizer: &Symbolizer<'_>, mut read: Read) -> Piece {
    let normalized = std::mem::take(&mut read.raw_recording.normalized);
    let shown = Shown::of(&normalized);
    let facts = &read.raw_recording.facts;
    let objects = &read.raw_recording.objects;
    let (profile, on_names) = symbolizer.stored(normalized, objects, facts.unit.clone());
    let origin = Origin {
        started: Some(facts.started),
        period_ns: facts.period_ns,
        activity: facts.activity,
    };
    let mut summary = read_summary::summary(&read, &shown);
    summary.findings.extend(on_names);
    let missing = read_summary::missing(&read, &shown);
    let missing = missing.map_or_else(String::new, |Finding { label, text }| {
        let title = visible(&facts.title);
        format!("flame-bpf: {title}: {label}: {text}\n")
    });
    Piece {
        profile: viewed(profile, origin, facts.off_cpu),
        title: read_summary::title(&read),
        summary,
        about: read_summary::about(&read, &shown),
        missing,
    }
}
