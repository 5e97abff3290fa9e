//! OTLP profiles: bytes for OpenTelemetry collectors, and for all that takes what these pass on.
//!
//! In: a profile and its style. Out: a `ProfilesData` of opentelemetry-proto 1.10 (`profiles/v1development`), not
//! compressed, the same bytes for the same profile: a resource for each process, the busiest first; in it a profile for
//! each type of value, the weight first; one dictionary for all, without duplicates and orphans.
//! Never: the network.

mod attributes;
mod dictionary;
mod joining;
mod resources;
mod tables;
#[cfg(test)]
mod tests;

use super::sender::Sender;
use super::value_types::{self, signed};
use super::{Error, Style};
use crate::profile::Profile;
use dictionary::Dictionary;
pub(super) use joining::joined;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use prost::Message as _;
use std::io::Write;
use std::time::Duration;

/// Writes the profile. Fails on one without samples, of which there is nothing to tell.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    write_of(profile, style, None, out)
}

/// Writes the profile as an `ExportProfilesServiceRequest`, which has the same fields: with who sends it, and with IDs by which
/// servers know a request that comes twice.
pub(super) fn write_request(
    profile: &Profile,
    sender: &Sender,
    out: &mut dyn Write,
) -> Result<(), Error> {
    write_of(profile, &Style::default(), Some(sender), out)
}

fn write_of(
    profile: &Profile,
    style: &Style,
    sender: Option<&Sender>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if profile.samples().is_empty() {
        return Err(Error::Empty);
    }
    let mut dictionary = Dictionary::new(profile);
    let head = head(profile, style, sender, &mut dictionary);
    let rows = resources::rows(profile, sender, &mut dictionary);
    // Messages behind each other are one, with the lists of all: only one resource is in memory at a time.
    for resource_profiles in resources::of(profile, &head, rows) {
        let message = wire::ProfilesData {
            resource_profiles: vec![resource_profiles],
            dictionary: None,
        };
        out.write_all(&message.encode_to_vec())?;
    }
    let message = wire::ProfilesData {
        resource_profiles: Vec::new(),
        dictionary: Some(dictionary.tables.into_message()),
    };
    Ok(out.write_all(&message.encode_to_vec())?)
}

/// Parts that all profiles of a file have in common.
struct Head<'a> {
    sender: Option<&'a Sender>,
    /// A profile without samples.
    empty: wire::Profile,
    /// Type of the number of firings.
    count: wire::ValueType,
    /// Type of the weight; none where that is the number of firings.
    weight: Option<wire::ValueType>,
    /// When each window began, in nanoseconds since 1970; none where nobody knows.
    windows: Option<Vec<u64>>,
}

fn head<'a>(
    profile: &Profile,
    style: &Style,
    sender: Option<&'a Sender>,
    dictionary: &mut Dictionary<'_>,
) -> Head<'a> {
    let mut value_type = |(kind, unit): (&str, &str)| wire::ValueType {
        type_strindex: dictionary.tables.text(kind),
        unit_strindex: dictionary.tables.text(unit),
    };
    let weight = value_types::weight(profile);
    let weight = weight.map(|(kind, unit)| value_type((&kind, unit)));
    let count = value_type(value_types::SAMPLES);
    let period = profile.origin.period_ns;
    let started = profile.origin.since_1970();
    let window = profile.window;
    let began =
        |start: Duration, at: Duration| nanoseconds(start + at.saturating_sub(window.start));
    let windows = started
        .filter(|_| !profile.windows.is_empty())
        .map(|start| {
            let windows = profile.windows.iter();
            windows.map(|of| began(start, of.window.start)).collect()
        });
    let empty = wire::Profile {
        time_unix_nano: started.map_or(0, nanoseconds),
        duration_nano: nanoseconds(window.length()),
        period_type: period.map(|_| value_type(value_types::PERIOD)),
        period: period.map_or(0, signed),
        attribute_indices: dictionary.attributes(match sender {
            Some(sender) => attributes::balance(sender),
            None => attributes::comment(style),
        }),
        ..wire::Profile::default()
    };
    Head {
        sender,
        empty,
        count,
        weight,
        windows,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
