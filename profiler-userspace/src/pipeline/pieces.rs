//! Inputs one after the other, and what there is to say of each.
//!
//! In: files of any kind. Out: for each its samples, and what there is to say of it; of several recordings, one profile whose
//! objects were named once. Never: keeps an input that was read.

use crate::input::Wanted as ForeignWanted;
use crate::pipeline::foreign::{self, Foreign};
use crate::pipeline::input::{self, Input};
use crate::pipeline::read_summary::{self, Shown};
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::view::viewed;
use crate::plan::RootPer;
use crate::profile::fold::visible;
use crate::profile::{Origin, Profile, Unit};
use crate::raw_recording::{self, Facts, Merged, Wanted};
use crate::report::findings::{Finding, Summary};
use anyhow::{Context as _, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Inputs, and how they are read.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) files: &'a [PathBuf],
    /// The windows of recordings that are wanted, and by how many of them samples are told apart.
    pub(super) windows: (Wanted<'a>, usize),
    /// Which of the things that an input counts is shown; none for the usual one.
    pub(super) sample_type: Option<&'a str>,
    pub(super) root_per: Option<RootPer>,
    /// Whether lines of one function are frames of their own. Of recordings, symbols have none unless it is so.
    pub(super) lines: bool,
}

/// Facts about an input for readers.
#[derive(Default)]
pub(super) struct Told {
    pub(super) title: String,
    pub(super) summary: Summary,
    /// Where it comes from, a fact to a line.
    pub(super) about: String,
    /// Sentences for stderr in any case; empty if there are none.
    pub(super) missing: String,
    /// The event of a raw recording.
    pub(super) event: Option<String>,
}

/// Samples of an input, and what there is to say of it.
pub(super) struct Piece {
    pub(super) told: Told,
    pub(super) content: Content,
    /// Its name where inputs are told apart.
    pub(super) source: Option<String>,
}

/// Samples of an input.
pub(super) enum Content {
    /// Without names.
    Recording(Box<Facts>, Merged),
    Profile(Profile),
}

/// Reads each input and gives it to `take` with its number. Some do not say what they count, which is what the others do: they come
/// last.
pub(super) fn each(
    asked: Asked<'_>,
    take: &mut dyn FnMut(usize, Piece) -> Result<()>,
) -> Result<()> {
    let mut unit = None;
    let mut put_off = Vec::new();
    for (number, path) in asked.files.iter().enumerate() {
        match Input::open(path)? {
            Input::Foreign(file) if !file.kind.has_unit() => {
                // Others are opened again: there may be more than a process may have open.
                let stdin = input::is_stdin(path).then_some(Input::Foreign(file));
                put_off.push((number, path, stdin));
            }
            input => {
                let piece = read(asked, path, input, &Unit::Samples)?;
                unit.get_or_insert_with(|| piece.content.unit().clone());
                take(number, piece)?;
            }
        }
    }
    let unit = unit.unwrap_or(Unit::Samples);
    for (number, path, stdin) in put_off {
        let input = stdin.map_or_else(|| Input::open(path), Ok)?;
        take(number, read(asked, path, input, &unit)?)?;
    }
    Ok(())
}

/// The samples of an input, which are of this unit unless it says something else.
fn read(asked: Asked<'_>, path: &Path, input: Input, unit: &Unit) -> Result<Piece> {
    let name = input::name(path);
    let (told, content, host) = match input {
        Input::Recording(bytes) => {
            ensure!(
                asked.sample_type.is_none(),
                "cannot read {name}: a raw recording counts one thing alone; leave --sample-type out"
            );
            let (wanted, windows) = asked.windows;
            let mut read = raw_recording::read(bytes, wanted, windows)
                .with_context(|| format!("cannot read {name}"))?;
            let told = Told::of_recording(&read);
            let merged = Merged::of(&mut read.raw_recording);
            let facts = read.raw_recording.facts;
            let host = facts.host.clone();
            let content = Content::Recording(Box::new(facts), merged);
            (told, content, Some(host))
        }
        Input::Foreign(file) => {
            ensure!(
                asked.windows.0.is_none(),
                "cannot read {name}: it is {}, and only raw recordings have windows; leave --from and --to out",
                file.kind.name()
            );
            let wanted = ForeignWanted {
                unit: unit.clone(),
                sample_type: asked.sample_type,
            };
            let Foreign {
                mut profile,
                summary,
                about,
            } = foreign::read(&name, file, &wanted)?;
            profile.line_frames = asked.lines;
            let told = Told {
                title: summary.title.clone(),
                summary,
                about,
                ..Told::default()
            };
            (told, Content::Profile(profile), None)
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
    Ok(Piece {
        told,
        content,
        source,
    })
}

impl Told {
    fn of_recording(read: &raw_recording::Read) -> Self {
        let recording = &read.raw_recording;
        let shown = Shown::of(&recording.normalized);
        let missing = read_summary::missing(read, &shown);
        let missing = missing.map_or_else(String::new, |Finding { label, text }| {
            let title = visible(&recording.facts.title);
            format!("flame-bpf: {title}: {label}: {text}\n")
        });
        Self {
            title: read_summary::title(read),
            summary: read_summary::summary(read, &shown),
            about: read_summary::about(read, &shown),
            missing,
            event: Some(recording.facts.event.clone()),
        }
    }
}

impl Content {
    fn unit(&self) -> &Unit {
        match self {
            Self::Recording(facts, _) => &facts.unit,
            Self::Profile(profile) => &profile.unit,
        }
    }

    /// The samples with names, and what there is to remark on these.
    pub(super) fn named(
        self,
        source: Option<&str>,
        symbolizer: &Symbolizer<'_>,
    ) -> (Profile, Vec<Finding>) {
        let (mut profile, findings) = match self {
            Self::Profile(profile) => (profile, Vec::new()),
            Self::Recording(facts, merged) => {
                let (normalized, objects) = merged.into_parts();
                let (profile, on_names) =
                    symbolizer.stored(normalized, &objects, facts.unit.clone());
                let origin = Origin {
                    started: Some(facts.started),
                    period_ns: facts.period_ns,
                    activity: facts.activity,
                };
                (viewed(profile, origin, facts.off_cpu), on_names)
            }
        };
        if let Some(source) = source {
            profile.set_source(source);
        }
        (profile, findings)
    }
}
