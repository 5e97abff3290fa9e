//! Bodies of requests to servers that take profiles.
//!
//! In: the profile of a window, and who sends it. Out: bytes, not compressed beyond what the protocol says, the same for the same
//! window: a request that is sent again is known by its IDs. One profile for each type, window and set of labels, because
//! servers keep one of two that have equal labels and times.
//! Never: the network.

pub use super::sender::Sender;
use super::{Error, Style, otlp, pprof, value_types, without_dots};
use crate::profile::{Profile, Sample};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use indexmap::IndexMap;
use prost::Message as _;
use serde_json::json;
use std::time::Duration;

/// Most samples that Pyroscope takes in one profile (`validation.max-profile-stacktrace-samples`).
const MAX_SAMPLES: usize = 16_000;

/// Distance of the parts of a profile that has more: servers tell times apart by milliseconds.
const PART: Duration = Duration::from_millis(1);

/// Protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// OTLP over HTTP, in protobuf: collectors, and what else takes it.
    Otlp,
    /// Pyroscope's `push.v1.PusherService/Push`.
    Pyroscope,
    /// Parca's `ProfileStoreService/WriteRaw`, in JSON.
    Parca,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Otlp, Self::Pyroscope, Self::Parca];

    /// Its name in sentences, flags and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Otlp => "otlp",
            Self::Pyroscope => "pyroscope",
            Self::Parca => "parca",
        }
    }

    /// Path of requests below the server's address.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Otlp => "/v1development/profiles",
            Self::Pyroscope => "/push.v1.PusherService/Push",
            Self::Parca => "/api/profiles/writeraw",
        }
    }

    /// Content type of requests.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Otlp => "application/x-protobuf",
            Self::Pyroscope => "application/proto",
            Self::Parca => "application/json",
        }
    }

    /// Whether the body is compressed. What is in the others is.
    pub const fn is_compressed(self) -> bool {
        matches!(self, Self::Otlp)
    }

    /// Whether one request may have several windows, which makes it smaller.
    pub const fn joins(self) -> bool {
        matches!(self, Self::Otlp)
    }

    /// The body of one request for those of several; none if they cannot be one.
    pub fn joined(self, bodies: &[Vec<u8>]) -> Option<Vec<u8>> {
        match self {
            Self::Otlp => otlp::joined(bodies),
            Self::Pyroscope | Self::Parca => None,
        }
    }

    /// Whether a content type is one that the server answers with: other servers answer any request with a page.
    pub fn answers(self, content_type: &str) -> bool {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        match self {
            Self::Otlp => matches!(kind, "application/x-protobuf" | "application/json"),
            Self::Pyroscope => matches!(kind, "application/proto" | "application/json"),
            Self::Parca => kind == "application/json",
        }
    }

    /// Profiles that the server did not want, by the answer to a request that it took.
    pub fn rejected(self, content_type: &str, answer: &[u8]) -> Rejected {
        match self {
            Self::Otlp if content_type.contains("json") => {
                let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
                let part = &answer["partialSuccess"];
                let number = &part["rejectedProfiles"];
                let text = number.as_str().and_then(|text| text.parse().ok());
                let why = part["errorMessage"].as_str().unwrap_or_default();
                Rejected::new(number.as_i64().or(text), why.to_owned())
            }
            Self::Otlp => {
                let answer = ExportProfilesServiceResponse::decode(answer).unwrap_or_default();
                let part = answer.partial_success.unwrap_or_default();
                Rejected::new(Some(part.rejected_profiles), part.error_message)
            }
            Self::Pyroscope | Self::Parca => Rejected::default(),
        }
    }

    /// The body of a request with a window of an event, whose processes have no IDs any more.
    ///
    /// # Errors
    /// When there is not one sample.
    pub fn body(self, profile: &Profile, sender: &Sender) -> Result<Vec<u8>, Error> {
        match self {
            Self::Otlp => {
                let mut body = Vec::new();
                otlp::write_request(profile, sender, &mut body)?;
                Ok(body)
            }
            Self::Pyroscope => {
                let series = series(profile, sender)?.into_iter().map(|of| RawSeries {
                    labels: { of.labels.into_iter() }
                        .map(|(name, value)| Label { name, value })
                        .collect(),
                    samples: vec![RawSample {
                        profile: of.pprof,
                        id: of.id,
                    }],
                });
                let series = series.collect();
                Ok(PushRequest { series }.encode_to_vec())
            }
            Self::Parca => {
                let series = series(profile, sender)?.into_iter().map(|of| {
                    let labels = of.labels.into_iter();
                    let labels = labels.map(|(name, value)| json!({"name": name, "value": value}));
                    json!({
                        "labels": {"labels": labels.collect::<Vec<_>>()},
                        "samples": [{"rawProfile": BASE64_STANDARD.encode(of.pprof)}],
                    })
                });
                let body = json!({"series": series.collect::<Vec<_>>()});
                Ok(body.to_string().into_bytes())
            }
        }
    }
}

/// Part of a request that a server did not want, though it took the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// How many profiles.
    pub profiles: u64,
    /// The reason, in the server's words: any text.
    pub why: String,
}

impl Rejected {
    fn new(profiles: Option<i64>, why: String) -> Self {
        let profiles = profiles.and_then(|number| u64::try_from(number).ok());
        Self {
            profiles: profiles.unwrap_or(0),
            why,
        }
    }
}

/// One profile in pprof, and its labels.
struct Series {
    labels: Vec<(String, String)>,
    pprof: Vec<u8>,
    id: String,
}

/// A profile for each name of a process; several behind one another where one has more samples than servers take.
fn series(profile: &Profile, sender: &Sender) -> Result<Vec<Series>, Error> {
    if profile.samples().is_empty() {
        return Err(Error::Empty);
    }
    let mut by_labels: IndexMap<_, Vec<Sample>> = IndexMap::new();
    for sample in profile.samples() {
        by_labels.entry(sample.labels).or_default().push(*sample);
    }
    let mut owners: IndexMap<_, Vec<Sample>> = IndexMap::new();
    for (labels, samples) in by_labels {
        let owner = sender.labels(profile.labels_at(labels));
        owners.entry(owner).or_default().extend(samples);
    }
    let kind = match profile.origin.period_ns {
        Some(_) => "process_cpu".to_owned(),
        None => value_types::weight(profile)
            .map_or_else(|| value_types::SAMPLES.0.to_owned(), |(kind, _)| kind),
    };
    let mut part = profile.clone();
    let mut all = Vec::new();
    for (labels, samples) in owners {
        for (number, samples) in samples.chunks(MAX_SAMPLES).enumerate() {
            part.clear();
            samples.iter().for_each(|sample| part.push(*sample));
            let behind = PART * number as u32;
            part.origin.started = profile.origin.started.map(|started| started + behind);
            let mut bytes = Vec::new();
            pprof::write(&part, &Style::default(), &mut bytes)?;
            let id = sender.id(&labels, [since_1970(&part), 0]);
            all.push(Series {
                labels: series_labels(&kind, &labels),
                pprof: bytes,
                id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            });
        }
    }
    Ok(all)
}

/// Labels of a series. Two of one window differ in them. Names have no dots, as these servers write those of OTLP.
fn series_labels(kind: &str, labels: &[(String, String)]) -> Vec<(String, String)> {
    let name = ("__name__".to_owned(), kind.to_owned());
    let labels = labels
        .iter()
        .map(|(name, text)| (without_dots(name), text.clone()));
    std::iter::once(name).chain(labels).collect()
}

/// When a profile began, in nanoseconds since 1970; zero where that is not known.
fn since_1970(profile: &Profile) -> u64 {
    let since = profile.origin.since_1970();
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// OTLP's answer (`opentelemetry/proto/collector/profiles/v1development/profiles_service.proto`).
#[derive(Clone, PartialEq, prost::Message)]
struct ExportProfilesServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<ExportProfilesPartialSuccess>,
}

/// Part of a request that the server did not want.
#[derive(Clone, PartialEq, prost::Message)]
struct ExportProfilesPartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_profiles: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// `push.v1.PushRequest` of Pyroscope (`api/push/v1/push.proto`).
#[derive(Clone, PartialEq, prost::Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<RawSeries>,
}

/// `push.v1.RawProfileSeries`.
#[derive(Clone, PartialEq, prost::Message)]
struct RawSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

/// `types.v1.LabelPair`.
#[derive(Clone, PartialEq, prost::Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `push.v1.RawSample`: a gzipped pprof profile.
#[derive(Clone, PartialEq, prost::Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    profile: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
}

#[cfg(test)]
mod tests;
