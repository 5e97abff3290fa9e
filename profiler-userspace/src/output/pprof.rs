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

use super::{Error, Style, value_types};
use crate::pprof::{self, ValueType};
use crate::profile::Profile;
use flate2::{Compression, GzBuilder};
use prost::Message as _;
use samples::Samples;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};
use strings::Strings;
use tables::Tables;

/// Writes the profile. Fails on one without samples, of which there is nothing to tell.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    if profile.samples().is_empty() {
        return Err(Error::Empty);
    }
    // Neither a time nor a file's name, so that equal profiles are equal files.
    let mut gzip = GzBuilder::new().write(out, Compression::default());
    write_message(profile, style, &mut gzip)?;
    gzip.finish()?;
    Ok(())
}

/// Writes the message sample by sample: messages behind each other are one, with the lists of all.
fn write_message(profile: &Profile, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut write = |message: pprof::Profile| {
        bytes.clear();
        message
            .encode(&mut bytes)
            .expect("a vector grows as needed");
        out.write_all(&bytes)
    };
    let mut strings = Strings::new();
    let types = types(profile, &mut strings);
    let (mapping, mapping_ids) = mappings::mappings(profile, &mut strings);
    let mut tables = Tables::new(profile, strings, mapping_ids);
    let mut samples = Samples {
        profile,
        tables: &mut tables,
    };
    let values = types.sample_type.len();
    write(pprof::Profile {
        sample_type: types.sample_type,
        ..pprof::Profile::default()
    })?;
    for counted in profile.samples() {
        let value = [signed(counted.count), signed(counted.weight)];
        let sample = pprof::Sample {
            location_id: samples.stack(counted),
            value: value[..values].to_vec(),
            label: samples.labels(counted),
        };
        write(pprof::Profile {
            sample: vec![sample],
            ..pprof::Profile::default()
        })?;
    }
    let comments = std::iter::once(style.title.as_str()).chain(style.notes.lines());
    let comment = comments
        .filter(|comment| !comment.is_empty())
        .map(|comment| tables.strings.number(comment))
        .collect();
    let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    let started = profile.origin.started.and_then(since_1970);
    let window = profile.window;
    write(pprof::Profile {
        sample_type: Vec::new(),
        mapping,
        location: tables.locations,
        function: tables.functions,
        string_table: tables.strings.into_table(),
        time_nanos: started.map_or(0, nanoseconds),
        duration_nanos: nanoseconds(window.end.saturating_sub(window.start)),
        comment,
        ..types
    })
}

/// What is counted: firings first, and last what they weigh, if that is something else. Nothing else is filled in.
fn types(profile: &Profile, strings: &mut Strings) -> pprof::Profile {
    let mut value_type = |(kind, unit): (&str, &str)| ValueType {
        kind: strings.number(kind),
        unit: strings.number(unit),
    };
    let mut sample_type = vec![value_type(value_types::SAMPLES)];
    let weight = value_types::weight(profile);
    sample_type.extend(weight.map(|(kind, unit)| value_type((&kind, unit))));
    let period = profile.origin.period_ns;
    pprof::Profile {
        default_sample_type: sample_type.last().map_or(0, |last| last.kind),
        sample_type,
        period_type: period.map(|_| value_type(value_types::PERIOD)),
        period: period.map_or(0, signed),
        ..pprof::Profile::default()
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
