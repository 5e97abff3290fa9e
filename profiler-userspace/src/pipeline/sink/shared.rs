//! Outputs that several events share.
//!
//! In: the profile of one event after the other, and what there is to say of it. Out: one file with all of them, at the
//! end. Profiles are kept until then.

use crate::output::sink::{Delivery, Sink};
use crate::output::{self, Style, Together};
use crate::pipeline::write::name;
use crate::plan::Output;
use crate::profile::Profile;
use anyhow::{Context as _, Result};

/// All shared outputs.
#[derive(Default)]
pub(crate) struct Shared<'a>(Vec<OutputFile<'a>>);

/// One of them, and what will be written there.
struct OutputFile<'a> {
    sink: &'a Sink,
    output: &'a Output,
    together: Together,
    style: Style,
}

impl<'a> Shared<'a> {
    /// Adds an event's profile; its style tells its title and notes.
    ///
    /// # Errors
    /// When it cannot stand beside those before.
    pub(crate) fn add(
        &mut self,
        (sink, output): (&'a Sink, &'a Output),
        event: &str,
        profile: &Profile,
        style: &Style,
    ) -> Result<()> {
        match self.0.iter_mut().find(|place| place.output == output) {
            Some(place) => {
                let cannot = || format!("cannot write {event} to {}", output.name());
                (place.together.add(event, profile)).with_context(cannot)?;
                place.style.notes = format!("{}\n{}", place.style.notes, style.notes);
            }
            None => self.0.push(OutputFile {
                sink,
                output,
                together: Together::new(event, profile.clone()),
                style: style.clone(),
            }),
        }
        Ok(())
    }

    /// Writes them all. Returns the names of the files.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(crate) fn write(self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for place in self.0 {
            let OutputFile {
                sink,
                output,
                together,
                style,
            } = place;
            let format = output.format().context("there is a format")?;
            let write = |out: &mut dyn std::io::Write| {
                output::write_together(&together, format, &style, out)
            };
            if sink.deliver(write)? == Delivery::Complete {
                files.push(name(sink));
            }
        }
        Ok(files)
    }
}
