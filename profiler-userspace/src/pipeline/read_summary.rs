//! Summary of a raw recording that was read.
//!
//! In: what was read, and how much of it is shown. Out: a title, a summary, and what is missing.

use crate::clock::shown;
use crate::profile::fold::visible;
use crate::profile::normalized::NormalizedProfile;
use crate::raw_recording::{Missing, RawRecording, Read, Windows};
use crate::report::findings::{Finding, Summary};
use crate::text::number::counted;

/// How much of a raw recording is shown.
pub(crate) struct RenderedShare {
    firings: u64,
    locations: usize,
    stacks: usize,
    samples: usize,
}

impl RenderedShare {
    /// All of what was read.
    pub(crate) fn of(normalized: &NormalizedProfile) -> Self {
        Self {
            firings: normalized.total_count(),
            locations: normalized.locations().len(),
            stacks: normalized.stacks().len(),
            samples: normalized.samples().len(),
        }
    }
}

/// Summary that the recording has from its end, or that of its windows, and what is missing.
pub(crate) fn summary(read: &Read, shown: &RenderedShare) -> Summary {
    let mut summary = match &read.raw_recording.closing {
        Some(closing) => Summary::parse(closing),
        None => of_windows(read, &read.windows, shown),
    };
    summary.findings.extend(missing(read, shown));
    summary
}

/// Title of the graph unless told otherwise: of windows, it says from when to when they are.
pub(crate) fn title(read: &Read) -> String {
    let title = &read.raw_recording.facts.title;
    let Windows {
        time,
        taken,
        all,
        is_continuous,
        ..
    } = &read.windows;
    if taken == all && !is_continuous {
        return title.clone();
    }
    let (from, to) = (shown(time.start), shown(time.end));
    // The day once.
    let day = from.split_once(' ').map_or("", |(day, _)| day);
    let to = to.strip_prefix(day).map_or(&*to, str::trim_start);
    format!("{title}, {from} to {to}")
}

/// Summary of several windows: what was recorded, and lost.
fn of_windows(read: &Read, windows: &Windows, shown: &RenderedShare) -> Summary {
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

/// Finding on a file that is not all there.
pub(crate) fn missing(read: &Read, shown: &RenderedShare) -> Option<Finding> {
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
        // Each window of a recording in windows says what was lost.
        read.raw_recording.closing.is_some() || read.windows.is_continuous,
    ) {
        (0, true) => return None,
        (0, false) => "what the recording said of losses".to_owned(),
        (rest, true) => counted(rest, &noun),
        (rest, false) => format!(
            "{} and what the recording said of losses",
            counted(rest, &noun)
        ),
    };
    let remedy = match read.missing {
        Some(Missing::TooLarge) => "; choose fewer windows with --from and --to",
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
pub(crate) fn about(read: &Read, extent: &RenderedShare) -> String {
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
        ("windows", {
            let windows = &read.windows;
            let (from, to) = (shown(windows.time.start), shown(windows.time.end));
            format!("{} of {}, from {from} to {to}", windows.taken, windows.all)
        }),
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
