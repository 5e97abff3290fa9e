//! pprof: profiles for `go tool pprof`, and for all that reads its format.
//!
//! In: a profile and its style. Out: a gzipped `profile.proto`, the same bytes for the same profile. IDs are dense and
//! begin at 1, the number of firings comes first and the weight last, the balance is in the comments.
//! Never: a name that a reader would demangle once more, or a mapping that it would look for on its own machine.

mod mappings;
mod samples;
mod strings;
mod tables;
#[cfg(test)]
mod tests;

use super::together::{Column, Together};
use super::value_types::{self, nanoseconds, signed};
use super::{Error, Style};
use crate::pprof::{self, ValueType};
use crate::profile::Profile;
use flate2::{Compression, GzBuilder};
use prost::Message as _;
use samples::Samples;
use std::io::{self, Write};
use strings::Strings;
use tables::Tables;

/// Writes the profile. Fails on one without samples, of which there is nothing to tell.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    let values = Together::alone(profile);
    let column = Column {
        samples: profile.samples(),
        first: 0,
        is_weighed: values.len() > 1,
    };
    write_columns(profile, &values, &[column], style, out)
}

/// Writes several events: a sample has a value of its own, and zeros for all others.
pub(super) fn write_together(
    together: &Together,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (values, columns) = (together.values(), together.columns());
    write_columns(together.profile(), &values, &columns, style, out)
}

fn write_columns(
    profile: &Profile,
    values: &[(String, &'static str)],
    columns: &[Column<'_>],
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if profile.samples().is_empty() {
        return Err(Error::Empty);
    }
    // Neither a time nor a file's name, so that equal profiles are equal files.
    let mut gzip = GzBuilder::new().write(out, Compression::default());
    write_message(profile, values, columns, style, &mut gzip)?;
    gzip.finish()?;
    Ok(())
}

/// Writes the message sample by sample: messages behind each other are one, with the lists of all.
fn write_message(
    profile: &Profile,
    values: &[(String, &'static str)],
    columns: &[Column<'_>],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut write = |message: pprof::Profile| {
        bytes.clear();
        message
            .encode(&mut bytes)
            .expect("a vector grows as needed");
        out.write_all(&bytes)
    };
    let mut strings = Strings::new();
    let types = types(profile, values, &mut strings);
    // Weights of different events have no common order; the first event's is the one that is looked at.
    let weighing = columns.iter().map(|column| column.samples);
    let weighing = { weighing }.find(|samples| !samples.is_empty());
    let (mapping, mapping_ids) =
        mappings::mappings(profile, weighing.unwrap_or_default(), &mut strings);
    let mut tables = Tables::new(profile, strings, mapping_ids);
    let mut written = Samples {
        profile,
        tables: &mut tables,
    };
    write(pprof::Profile {
        sample_type: types.sample_type,
        ..pprof::Profile::default()
    })?;
    for column in columns {
        for counted in &*samples::timeless(profile, column.samples) {
            let mut value = vec![0; values.len()];
            value[column.first] = signed(counted.count);
            if column.is_weighed {
                value[column.first + 1] = signed(counted.weight);
            }
            let sample = pprof::Sample {
                location_id: written.stack(counted),
                value,
                label: written.labels(counted),
            };
            write(pprof::Profile {
                sample: vec![sample],
                ..pprof::Profile::default()
            })?;
        }
    }
    // Notes begin with the title where nobody asked for another.
    let notes = style.notes.strip_prefix(&*style.title);
    let notes = notes.filter(|rest| rest.is_empty() || rest.starts_with('\n'));
    let notes = notes.unwrap_or(&style.notes).lines();
    let comment = std::iter::once(style.title.as_str())
        .chain(notes)
        .filter(|comment| !comment.is_empty())
        .map(|comment| tables.strings.number(comment))
        .collect();
    let started = profile.origin.since_1970();
    let window = profile.window;
    write(pprof::Profile {
        sample_type: Vec::new(),
        mapping,
        location: tables.locations,
        function: tables.functions,
        string_table: tables.strings.into_table(),
        time_nanos: started.map_or(0, nanoseconds),
        duration_nanos: nanoseconds(window.length()),
        comment,
        ..types
    })
}

/// Type of what is counted, as in `values`. Nothing else is filled in.
fn types(
    profile: &Profile,
    values: &[(String, &'static str)],
    strings: &mut Strings,
) -> pprof::Profile {
    let mut value_type = |(kind, unit): (&str, &str)| ValueType {
        kind: strings.number(kind),
        unit: strings.number(unit),
    };
    let values = values.iter().map(|(kind, unit)| (&**kind, *unit));
    let sample_type: Vec<_> = values.map(&mut value_type).collect();
    let period = profile.origin.period_ns;
    pprof::Profile {
        default_sample_type: sample_type.last().map_or(0, |last| last.kind),
        sample_type,
        period_type: period.map(|_| value_type(value_types::PERIOD)),
        period: period.map_or(0, signed),
        ..pprof::Profile::default()
    }
}
