//! Profiles with names, one of each input.
//!
//! In: inputs of any kind. Out: for each a profile as it is viewed, and what there is to say of it. Never: puts inputs
//! together.

use crate::pipeline::foreign::{self, Foreign};
use crate::pipeline::input::{self, Input};
use crate::pipeline::read_summary::{self, Shown};
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::view::viewed;
use crate::plan::RootPer;
use crate::profile::fold::visible;
use crate::profile::{Origin, Profile, Unit};
use crate::raw_recording::Read;
use crate::report::findings::{Finding, Summary};
use anyhow::{Result, bail, ensure};
use std::path::PathBuf;

/// Inputs, and how they are read.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) files: &'a [PathBuf],
    /// Which of the things that an input counts is shown; none for the usual one.
    pub(super) sample_type: Option<&'a str>,
    pub(super) root_per: Option<RootPer>,
    /// Whether lines of one function are frames of their own. Of recordings, symbols have none unless it is so.
    pub(super) lines: bool,
}

/// Profile of an input, and what there is to say of it.
pub(super) struct Piece {
    pub(super) profile: Profile,
    pub(super) title: String,
    pub(super) summary: Summary,
    /// Where it comes from, a fact to a line.
    pub(super) about: String,
    /// Sentences for stderr in any case; empty if there are none.
    pub(super) missing: String,
    /// The event of a raw recording.
    pub(super) event: Option<String>,
}

/// The profile of each input, in the order of the inputs.
pub(super) fn pieces(
    asked: Asked<'_>,
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
                    "cannot read {name}: a raw recording counts one thing alone; leave --sample-type out"
                );
                let host = read.raw_recording.facts.host.clone();
                (of_recording(symbolizer, *read), Some(host))
            }
            Input::Foreign { kind, bytes } => {
                let wanted = input_wanted(asked, unit);
                let mut foreign = foreign::read(&name, kind, &bytes, &wanted)?;
                foreign.profile.line_frames = asked.lines;
                (Piece::from(foreign), None)
            }
        };
        let source = match (asked.root_per, host) {
            (None, _) => None,
            (Some(RootPer::File), _) => Some(name),
            (Some(RootPer::Host), Some(host)) => Some(host),
            (Some(RootPer::Host), None) => bail!(
                "cannot read {name}: it does not name its host, as raw recordings do; use --root-per file"
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

/// The wanted part of a profile of another tool, which stands beside others of this unit.
fn input_wanted(asked: Asked<'_>, unit: Option<Unit>) -> crate::input::Wanted<'_> {
    crate::input::Wanted {
        unit: unit.unwrap_or(Unit::Samples),
        sample_type: asked.sample_type,
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
            event: None,
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
        event: Some(read.raw_recording.facts.event.clone()),
    }
}
