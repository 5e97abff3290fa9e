//! Names and draws what was recorded before.
//!
//! In: raw recordings and folded text, and how they are to be named and drawn. Out: the outputs, and what the recording said at
//! its end, with what there is to say of names now. Never touches the kernel half, and needs no privileges.

use super::prepare;
use crate::clock::shown;
use crate::debuginfod::{Client, Fetched, Limits};
use crate::object::{BuildId, Fetch};
use crate::output::Style;
use crate::pipeline::deliver::{Named, deliver};
use crate::pipeline::input::Input;
use crate::pipeline::look;
use crate::pipeline::progress::Progress;
use crate::plan::Rendering;
use crate::profile::fold::{self, visible};
use crate::profile::{Origin, Profile, Unit, off_cpu};
use crate::raw_recording::{Missing, RawRecording, Read, Wanted, Windows};
use crate::report::debug_info;
use crate::report::distro::Distro;
use crate::report::findings::{Finding, Summary};
use crate::report::names;
use crate::report::print;
use crate::report::text::{counted, grouped};
use crate::symbolize::{self, Sources};
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
    let wanted: Wanted<'_> = (asked.from.is_some() || asked.to.is_some()).then_some(&time);
    let files = asked.files.iter();
    let inputs: Vec<Input> = files
        .map(|file| Input::read(file, wanted))
        .collect::<Result<_>>()?;
    // Folded text does not say what it counts; recordings beside it do.
    let unit = inputs.iter().find_map(|input| match input {
        Input::Recording(read) => Some(read.raw_recording.facts.unit.clone()),
        Input::Folded(_) => None,
    });
    let unit = unit.unwrap_or(Unit::Samples);
    let pieces = asked
        .files
        .iter()
        .zip(inputs)
        .map(|(file, input)| match input {
            Input::Recording(read) => Ok(of_recording(asked, *read)),
            Input::Folded(text) => of_text(file, &text, unit.clone()),
        });
    let Piece {
        profile,
        title,
        mut summary,
        about,
        missing,
    } = merged(pieces.collect::<Result<_>>()?)?;
    let look = look::usual(profile.origin.activity, profile.off_cpu);
    let style = Style {
        title: asked.title.clone().unwrap_or(title),
        notes: summary.lines(),
        colors: asked.colors.unwrap_or(look.palette),
        subtitle: asked
            .style
            .subtitle
            .clone()
            .or(look.subtitle.map(str::to_owned)),
        ..asked.style.clone()
    };
    let named = Named {
        profile: &profile,
        style: &style,
    };
    let places = deliver(&sinks, &asked.outputs, Some(&named), None)?;
    if asked.verbosity.verbose > 0 {
        print(&about);
    }
    if !asked.verbosity.quiet {
        let wrote = places.into_iter().map(|place| Finding::new("wrote", place));
        summary.findings.extend(wrote);
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
fn of_recording(asked: &Rendering, mut read: Read) -> Piece {
    let normalized = std::mem::take(&mut read.raw_recording.normalized);
    let shown = Shown {
        firings: normalized.total_count(),
        locations: normalized.locations().len(),
        stacks: normalized.stacks().len(),
        samples: normalized.samples().len(),
    };
    let RawRecording {
        facts,
        objects,
        closing,
        ..
    } = &read.raw_recording;

    let progress = Progress::new(None, asked.verbosity.quiet);
    let tell_fetched = |fetched: &Fetched| progress.fetching(fetched);
    let servers = asked.servers.addresses();
    let client = Client::new(servers, Limits::from_environment(), &tell_fetched);
    let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
    // Whoever fetches says more of it.
    let naming = client.is_none().then(|| progress.naming());
    let told = |done, all| {
        if let Some(naming) = &naming {
            naming.tell(done, all);
        }
    };
    let symbolized = symbolize::symbolize_stored(
        normalized,
        objects,
        facts.unit.clone(),
        &Sources {
            naming: &asked.naming,
            fetch: fetch.as_ref().map(|fetch| fetch as &Fetch<'_>),
            progress: Some(&told),
        },
    );
    drop(naming);
    progress.clear();
    let mut profile = symbolized.profile;
    profile.origin = Origin {
        started: Some(facts.started),
        period_ns: facts.period_ns,
        activity: facts.activity,
    };
    let profile = match facts.off_cpu {
        Some(how) => off_cpu::view(profile, how),
        None => profile,
    };

    let several = read.windows.as_ref().filter(|windows| windows.taken != 1);
    let mut summary = match (several, closing) {
        (Some(windows), _) => of_windows(&read, windows, &shown),
        (None, Some(closing)) => Summary::parse(closing),
        (None, None) => Summary {
            title: visible(&title(&read)).into_owned(),
            findings: Vec::new(),
        },
    };
    let findings = &mut summary.findings;
    findings.extend(missing(&read, &shown));
    let fetched = client.as_ref().map(Client::fetched);
    findings.extend(fetched.iter().flat_map(names::on_fetching));
    findings.extend(names::on_names(
        &symbolized.unnamed,
        shown.firings,
        &Distro::here(client.is_some()),
    ));
    let limit = asked.naming.memory.bytes;
    findings.extend(debug_info::on_details(&symbolized.untold, limit));
    let missing = missing(&read, &shown).map_or_else(String::new, |Finding { label, text }| {
        let title = visible(&facts.title);
        format!("flame-bpf: {title}: {label}: {text}\n")
    });
    Piece {
        profile,
        title: title(&read),
        summary,
        about: about(&read, &shown),
        missing,
    }
}

/// How much of a raw recording is shown.
struct Shown {
    firings: u64,
    locations: usize,
    stacks: usize,
    samples: usize,
}

/// What the graph is called unless told otherwise: of windows, it says from when to when they are.
fn title(read: &Read) -> String {
    let title = &read.raw_recording.facts.title;
    match &read.windows {
        None => title.clone(),
        Some(Windows { time, .. }) => {
            let (from, to) = (shown(time.start), shown(time.end));
            // The day once.
            let day = from.split_once(' ').map_or("", |(day, _)| day);
            let to = to.strip_prefix(day).map_or(&*to, str::trim_start);
            format!("{title}, {from} to {to}")
        }
    }
}

/// What several windows say of what was recorded, and lost.
fn of_windows(read: &Read, windows: &Windows, shown: &Shown) -> Summary {
    let noun = visible(&read.raw_recording.facts.noun);
    let lost = match windows.lost {
        0 => Finding::new("lost", "nothing"),
        lost => Finding::new(
            "LOST",
            format!(
                "{} in {}; choose one with --from and --to to see why",
                counted(lost, &noun),
                counted(windows.lost_in as u64, "window"),
            ),
        ),
    };
    let recorded = format!(
        "{}, {} in {} of {}",
        counted(windows.recorded, &noun),
        counted(shown.stacks as u64, "distinct stack"),
        windows.taken,
        counted(windows.all as u64, "window"),
    );
    Summary {
        title: visible(&title(read)).into_owned(),
        findings: vec![Finding::new("recorded", recorded), lost],
    }
}

/// What to say of a file that is not all there.
fn missing(read: &Read, shown: &Shown) -> Option<Finding> {
    let why = match read.missing? {
        Missing::CutOff => "ends early",
        Missing::Damaged => "is damaged",
        Missing::TooLarge => "is larger than may be taken into memory",
    };
    let facts = &read.raw_recording.facts;
    let shown = shown.firings;
    let noun = visible(&facts.noun);
    let what = match (
        read.recorded.saturating_sub(shown),
        &read.raw_recording.closing,
    ) {
        (0, Some(_)) => return None,
        (0, None) => "what the recording said of losses".to_owned(),
        (rest, Some(_)) => counted(rest, &noun),
        (rest, None) => format!(
            "{} and what the recording said of losses",
            counted(rest, &noun)
        ),
    };
    let remedy = match (read.missing, &read.windows) {
        (Some(Missing::TooLarge), Some(_)) => "; choose fewer windows with --from and --to",
        _ => "",
    };
    Some(Finding::new(
        "MISSING",
        format!(
            "{what}: the raw recording {why}; {} shown{remedy}",
            counted(shown, &noun)
        ),
    ))
}

/// Where a raw recording comes from, a fact to a line.
fn about(read: &Read, extent: &Shown) -> String {
    let RawRecording { facts, objects, .. } = &read.raw_recording;
    let words = facts.command_line.iter().map(|word| word.to_string_lossy());
    let since_1970 = facts.started.duration_since(std::time::UNIX_EPOCH);
    let proven = objects.iter().filter(|object| object.proof.is_some());
    let lines = [
        ("made by", facts.writer.clone()),
        ("command", words.collect::<Vec<_>>().join(" ")),
        ("host", facts.host.clone()),
        ("kernel", facts.kernel.clone()),
        ("event", facts.event.clone()),
        (
            "began",
            format!(
                "{}, {} s after 1970",
                shown(facts.started),
                since_1970.unwrap_or_default().as_secs()
            ),
        ),
        (
            "windows",
            read.windows.as_ref().map_or_else(
                || "none".to_owned(),
                |windows| {
                    let (from, to) = (shown(windows.time.start), shown(windows.time.end));
                    format!("{} of {}, from {from} to {to}", windows.taken, windows.all)
                },
            ),
        ),
        (
            "holds",
            format!(
                "{} objects, {} of them known by build ID or size and time, {} locations, {} stacks, {} samples",
                objects.len(),
                proven.count(),
                extent.locations,
                extent.stacks,
                extent.samples,
            ),
        ),
    ];
    let line = |(what, text): (&str, String)| format!("{what}: {}\n", visible(&text));
    lines.into_iter().map(line).collect()
}
