//! Conducts a comparison: both sides come from files, and the result goes to outputs.
//!
//! In: raw recordings and profiles of other tools, before and after. Out: the outputs, and whether a condition is met.
//! Never touches the kernel half, and needs no privileges.

use crate::diff::{self, Outcome};
use crate::input::Time;
use crate::output::sink::Sink;
use crate::output::{DiffReport, Style, diff_summary, write_diff};
use crate::pipeline::pieces::{self, InputRequest, Told};
use crate::pipeline::select::select;
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::write::on;
use crate::plan::Diffing;
use crate::profile::fold::visible;
use crate::profile::{LabelFrames, Profile};
use crate::report::print;
use anyhow::{Context as _, Result, ensure};
use std::path::PathBuf;

/// By how many windows samples are told apart at most. A recording has 20 to 40, of which neighbours are put together
/// where there are more than this.
const WINDOWS: usize = 100;

/// Compares as asked.
///
/// # Errors
/// When an input cannot be read, when the sides cannot be compared, or when an output cannot be written.
pub fn diff(asked: &Diffing) -> Result<Outcome> {
    let sink = |path: &Option<PathBuf>| match path {
        Some(path) => Ok(Sink::prepare(path)?),
        None => Ok(Sink::stdout()),
    };
    let outputs = asked.outputs.iter();
    let sinks: Vec<Sink> = outputs
        .map(|output| sink(&output.path))
        .collect::<Result<_>>()?;
    let symbolizer = Symbolizer::new(&asked.naming, &asked.servers, asked.verbosity.quiet);
    let files: Vec<PathBuf> = asked.before.iter().chain(&asked.after).cloned().collect();
    let times = [asked.before_time, asked.after_time];
    for (files, time) in [&asked.before, &asked.after].into_iter().zip(times) {
        for (file, time) in files.iter().zip(time) {
            pieces::check_time(file, time)?;
        }
    }
    let [before_time, after_time] =
        times.map(|time| move |began| time.map_or(began..began, |time| time.of(began)));
    let before_time = (asked.before_time.is_some()).then_some(&before_time as Time<'_>);
    let after_time = (asked.after_time.is_some()).then_some(&after_time as Time<'_>);
    let of_before = asked.before.iter().map(|_| before_time);
    let times: Vec<_> = of_before
        .chain(asked.after.iter().map(|_| after_time))
        .collect();
    let wanted = InputRequest {
        files: &files,
        times: &times,
        windows: WINDOWS,
        cgroups: &asked.selection.cgroups,
        sample_type: asked.sample_type.as_deref(),
        lines: asked.naming.lines,
        quiet: asked.verbosity.quiet,
        ..InputRequest::default()
    };
    let mut pieces = Vec::new();
    pieces::each(wanted, &mut |number, piece| {
        pieces.push((number, piece));
        Ok(())
    })?;
    pieces.sort_by_key(|(number, _)| *number);
    let named = |(_, piece): (usize, pieces::InputSamples)| {
        let (profile, _) = piece.content.named(None, &symbolizer);
        (piece.told, profile)
    };
    let mut before: Vec<NamedInput> = pieces.into_iter().map(named).collect();
    one_event(&files, &before)?;
    for (told, _) in &before {
        print(&told.missing);
    }
    let after = before.split_off(asked.before.len());
    let titles = [title(&before), title(&after)];
    let sides = [profiles(before, asked)?, profiles(after, asked)?];
    let comparison = diff::compare(sides, asked.options)?;
    let conditions = asked.conditions.iter();
    let answers: Vec<_> = conditions
        .map(|condition| (condition.to_string(), condition.of(&comparison)))
        .collect();
    let report = DiffReport {
        comparison: &comparison,
        titles: &titles,
        answers: &answers,
    };
    let style = Style {
        title: (asked.title.clone()).unwrap_or_else(|| format!("{} → {}", titles[0], titles[1])),
        ..asked.style.clone()
    };
    let mut files = Vec::new();
    for (sink, output) in sinks.iter().zip(&asked.outputs) {
        let style = on(sink, &style);
        sink.deliver(|out| write_diff(&report, output.format, &style, out))?;
        if !sink.is_stdout() {
            files.push(format!("wrote: {}\n", sink.name().display()));
        }
    }
    if !asked.verbosity.quiet {
        if sinks.iter().all(|sink| !sink.is_stdout()) {
            print(&diff_summary(&report));
        }
        print(&files.concat());
    }
    let outcomes = answers.iter().map(|(_, answer)| answer.outcome);
    Ok(outcomes.max().unwrap_or(Outcome::NotMet))
}

/// An input with names.
type NamedInput = (Told, Profile);

/// Refuses recordings of different events, whose shares have nothing to do with each other.
fn one_event(files: &[PathBuf], pieces: &[NamedInput]) -> Result<()> {
    let mut events = files
        .iter()
        .zip(pieces)
        .filter_map(|(file, (told, _))| Some((file, told.event.as_ref()?)));
    let Some((first, event)) = events.next() else {
        return Ok(());
    };
    if let Some((other, found)) = events.find(|(_, other)| *other != event) {
        anyhow::bail!(
            "cannot compare {} with {}: one is of {}, the other of {}; record both with the same -e",
            first.display(),
            other.display(),
            visible(event),
            visible(found)
        );
    }
    Ok(())
}

fn title(pieces: &[NamedInput]) -> String {
    let first = pieces
        .first()
        .map_or_else(String::new, |(told, _)| visible(&told.title).into_owned());
    match pieces.len() {
        0 | 1 => first,
        many => format!("{first}, and {} more", many - 1),
    }
}

/// The part of each input that is compared. Threads and CPUs have other numbers in each run.
fn profiles(pieces: Vec<NamedInput>, asked: &Diffing) -> Result<Vec<Profile>> {
    let selected = |(told, profile): NamedInput| -> Result<Profile> {
        let title = told.title;
        let (mut profile, _) = select(profile, &asked.selection)
            .with_context(|| format!("cannot compare {}", visible(&title)))?;
        profile.label_frames = LabelFrames {
            threads: false,
            cpus: false,
        };
        ensure!(
            !profile.samples().is_empty(),
            "{}: there is not one sample; record while the target is busy",
            visible(&title)
        );
        Ok(profile)
    };
    pieces.into_iter().map(selected).collect()
}
