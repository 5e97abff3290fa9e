//! The last step: every output into its place.
//!
//! In: places, outputs, and what can be written. Out: files that are complete, or none. A profile is let go as soon as no
//! output needs more than its view.

use crate::output::sink::{Delivery, Sink};
use crate::output::{self, MIN_COLUMNS, Style, TextStyle};
use crate::plan::Output;
use crate::profile::{Profile, View};
use crate::raw_recording::{self, RawRecording};
use crate::report::findings::Finding;
use crate::text::terminal;
use anyhow::{Context as _, Result};
use std::borrow::Cow;
use std::io;

/// Writes all outputs but shared pages; `raw_recording` and `profile` may be missing where no output is made of them. Returns the names of
/// the files.
///
/// # Errors
/// When an output cannot be written.
pub(crate) fn write(
    places: &[(&Sink, &Output)],
    profile: Option<Profile>,
    style: &Style,
    raw_recording: Option<&RawRecording>,
) -> Result<Vec<String>> {
    let mut complete = vec![false; places.len()];
    let mut of_view = Vec::new();
    for (number, (sink, output)) in places.iter().enumerate() {
        if matches!(output, Output::SharedPage { .. }) {
            // When all that it holds is there.
            continue;
        }
        let delivery = match output.format() {
            None => {
                let raw_recording = raw_recording.context("there is no raw recording")?;
                sink.deliver(|out| Ok(raw_recording::write(raw_recording, out)?))?
            }
            Some(format) => match format.of_view(style) {
                Some(write) => {
                    of_view.push((number, sink, write));
                    continue;
                }
                None => {
                    let profile = profile.as_ref().context("there is no profile")?;
                    let style = &on(sink, style);
                    sink.deliver(|out| output::write(profile, format, style, out))?
                }
            },
        };
        complete[number] = delivery == Delivery::Complete;
    }
    if !of_view.is_empty() {
        let profile = profile.context("there is no profile")?;
        let view = View::delimited(&profile, style.fold.delimited);
        drop(profile);
        for (number, sink, write) in of_view {
            let delivery = sink.deliver(|out| write(&view, style, out))?;
            complete[number] = delivery == Delivery::Complete;
        }
    }
    let sinks = places.iter().map(|(sink, _)| *sink);
    let written = sinks.zip(complete).filter(|(_, complete)| *complete);
    let files = written.filter(|(sink, _)| !sink.is_stdout());
    Ok(files.map(|(sink, _)| name(sink)).collect())
}

/// The style of what is written there: a terminal has its columns and colours.
pub(super) fn on<'a>(sink: &Sink, style: &'a Style) -> Cow<'a, Style> {
    let text = &style.text;
    let columns = match text.cuts_names {
        true => None,
        false => terminal::columns(sink.is_stdout().then(io::stdout)),
    };
    let is_colored = sink.is_stdout() && terminal::has_colors(&io::stdout());
    if columns.is_none() && !is_colored {
        return Cow::Borrowed(style);
    }
    let text = TextStyle {
        columns: columns.map_or(text.columns, |columns| columns.max(MIN_COLUMNS)),
        cuts_names: text.cuts_names || columns.is_some(),
        is_colored,
        ..text.clone()
    };
    Cow::Owned(Style {
        text,
        ..style.clone()
    })
}

/// Writes the raw recordings among the outputs, and nothing else.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn write_raw_recordings(
    places: &[(&Sink, &Output)],
    raw_recording: Option<&RawRecording>,
) -> Result<()> {
    let raw = places
        .iter()
        .filter(|(_, output)| output.format().is_none());
    for (sink, _) in raw {
        let raw_recording = raw_recording.context("there is no raw recording")?;
        sink.deliver(|out| Ok(raw_recording::write(raw_recording, out)?))?;
    }
    Ok(())
}

/// Name of a place in messages.
pub(crate) fn name(sink: &Sink) -> String {
    sink.name().display().to_string()
}

/// Findings on files that were written.
pub(crate) fn wrote(names: impl IntoIterator<Item = String>) -> impl Iterator<Item = Finding> {
    let names = names.into_iter();
    names.map(|name| Finding::new("wrote", name))
}
