//! Puts every output into its place.
//!
//! In: places, outputs, and what can be written. Out: files that are complete. Whoever has no profile with
//! names, or no raw recording, has no output that wants one.

use crate::output::sink::{Delivery, Sink};
use crate::output::{self, Style};
use crate::plan::Output;
use crate::profile::Profile;
use crate::raw_recording::{self, RawRecording};
use anyhow::{Context as _, Result};

/// A profile with names, and how it is to look.
pub(crate) struct Named<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) style: &'a Style,
}

/// Writes all outputs, and returns the names of the files.
pub(crate) fn deliver(
    sinks: &[Sink],
    outputs: &[Output],
    named: Option<&Named<'_>>,
    raw_recording: Option<&RawRecording>,
) -> Result<Vec<String>> {
    let mut places = Vec::new();
    for (sink, output) in sinks.iter().zip(outputs) {
        let delivery = match output.format() {
            Some(format) => {
                let Named { profile, style } = named.context("there is no profile with names")?;
                sink.deliver(|out| output::write(profile, format, style, out))?
            }
            None => {
                let raw_recording = raw_recording.context("there is no raw recording")?;
                sink.deliver(|out| Ok(raw_recording::write(raw_recording, out)?))?
            }
        };
        if delivery == Delivery::Complete && !sink.is_stdout() {
            places.push(sink.name().display().to_string());
        }
    }
    Ok(places)
}
