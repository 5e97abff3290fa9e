//! Conducts a rendering: windows come from files, and all of them go to the same outputs.
//!
//! In: raw recordings and folded text, and how they are to be named and drawn. Out: the outputs, and what the recording said at
//! its end, with what there is to say of names now. Never touches the kernel half, and needs no privileges.

use super::prepare;
use crate::pipeline::input::Input;
use crate::pipeline::read_summary::{self, Shown};
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::view::{style, viewed};
use crate::pipeline::write::{write, wrote};
use crate::plan::{Output, Rendering};
use crate::profile::fold::{self, visible};
use crate::profile::{Origin, Profile, Unit};
use crate::raw_recording::{Read, Wanted};
use crate::report::findings::{Finding, Summary};
use crate::report::print;
use crate::report::text::{counted, grouped};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Renders as asked.
///
/// # Errors
/// When an input cannot be read or is neither a raw recording nor folded text, when inputs cannot be shown together,
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
    let divided = asked.outputs.iter().any(Output::has_windows);
    let wanted: Wanted<'_> = (asked.from.is_some() || asked.to.is_some()).then_some(&time);
    let files = asked.files.iter();
    let inputs: Vec<Input> = files
        .map(|file| Input::read(file, wanted, divided))
        .collect::<Result<_>>()?;
    // Folded text does not say what it counts; recordings beside it do.
    let unit = inputs.iter().find_map(|input| match input {
        Input::Recording(read) => Some(read.raw_recording.facts.unit.clone()),
        Input::Folded(_) => None,
    });
    let unit = unit.unwrap_or(Unit::Samples);
    let symbolizer = Symbolizer::new(&asked.naming, &asked.servers, asked.verbosity.quiet);
    let pieces = asked
        .files
        .iter()
        .zip(inputs)
        .map(|(file, input)| match input {
            Input::Recording(read) => Ok(of_recording(&symbolizer, *read)),
            Input::Folded(text) => of_text(file, &text, unit.clone()),
        });
    let Piece {
        profile,
        title,
        mut summary,
        about,
        missing,
    } = merged(pieces.collect::<Result<_>>()?)?;
    let title = asked.title.clone().unwrap_or(title);
    let style = style(
        &asked.style,
        asked.colors,
        (title, summary.lines()),
        &profile,
    );
    let files = write(&sinks, &asked.outputs, Some(profile), &style, None)?;
    if asked.verbosity.verbose > 0 {
        print(&about);
    }
    if !asked.verbosity.quiet {
        summary.findings.extend(wrote(files));
        print(&summary.shown());
    } else {
        print(&missing);
    }
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

/// Folded text, whose weights are in this unit.
fn of_text(file: &Path, text: &[u8], unit: Unit) -> Result<Piece> {
    let name = match file == Path::new("-") {
        true => "stdin".to_owned(),
        false => file.display().to_string(),
    };
    let profile = fold::parse(text, unit).with_context(|| {
        format!("cannot render {name}: read as folded text, as it is not a raw recording")
    })?;
    ensure!(
        !profile.samples().is_empty(),
        "cannot render {name}: there is no stack in it, such as `main;work 42`"
    );
    let weight = profile.unit.shown(profile.total_weight());
    let recorded = format!(
        "folded text: {} {} in {}",
        grouped(weight),
        profile.unit.noun(),
        counted(profile.samples().len() as u64, "line")
    );
    Ok(Piece {
        title: name.clone(),
        summary: Summary {
            title: visible(&name).into_owned(),
            findings: vec![Finding::new("input", recorded)],
        },
        about: format!("input: {} is folded text\n", visible(&name)),
        missing: String::new(),
        profile,
    })
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
