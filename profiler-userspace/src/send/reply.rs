//! Answers of servers that take profiles.
//!
//! In: a status, a content type, and the beginning of an answer. Out: what becomes of the request.
//! The rules are those of OTLP (<https://opentelemetry.io/docs/specs/otlp/#failures>): 429, 502, 503 and 504 are tried again, other
//! errors are not. What says that the address, the secret or a setting is wrong is tried again too, since somebody mends it.

use crate::clock;
use crate::output::request::{Protocol, Rejected};
use crate::profile::fold::visible;
use std::time::{Duration, SystemTime};

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server took it, but for some profiles of it.
    Taken(Rejected),
    /// It never will.
    Refused(String),
    /// It did not take it now.
    Failed {
        /// The reason, as the end of a sentence.
        reason: String,
        /// How long the server wants to be left alone.
        after: Option<Duration>,
    },
}

impl Outcome {
    pub(super) fn failed(reason: String) -> Self {
        Self::Failed {
            reason,
            after: None,
        }
    }
}

/// An answer.
pub(super) struct Reply<'a> {
    pub(super) status: u16,
    pub(super) content_type: &'a str,
    pub(super) retry_after: Option<&'a str>,
    /// Where else the server has it.
    pub(super) location: Option<&'a str>,
    /// Its first bytes.
    pub(super) body: &'a [u8],
}

impl Reply<'_> {
    /// Outcome of the request.
    pub(super) fn outcome(&self, protocol: Protocol, now: SystemTime) -> Outcome {
        let Self { status, .. } = *self;
        match status {
            200..=299 => self.taken(protocol),
            429 | 502..=504 => Outcome::Failed {
                reason: format!("it answered {status}{}", self.told()),
                after: self.retry_after.and_then(|text| retry_after(text, now)),
            },
            401 | 403 => Outcome::failed(format!(
                "it answered {status}{}: give the right secret with --{}-header",
                self.told(),
                protocol.name()
            )),
            300..=399 => Outcome::failed(format!(
                "it answered {status}, which leads {}: give that address",
                self.location.map_or_else(
                    || "elsewhere".to_owned(),
                    |location| format!("to {}", words(location.as_bytes()))
                )
            )),
            404 | 405 | 501 => Outcome::failed(format!("it answered {status}: {}", hint(protocol))),
            415 => Outcome::failed(format!(
                "it answered {status}{}: it speaks another protocol, or one that is older",
                self.told()
            )),
            status => Outcome::Refused(format!("it answered {status}{}", self.told())),
        }
    }

    fn taken(&self, protocol: Protocol) -> Outcome {
        if !protocol.answers(self.content_type) {
            let kind = match self.content_type {
                "" => "without a content type".to_owned(),
                kind => format!("as {}", visible(kind)),
            };
            return Outcome::failed(format!(
                "it answered {} {kind}, so it is no server for profiles: {}",
                self.status,
                hint(protocol)
            ));
        }
        let mut rejected = protocol.rejected(self.content_type, self.body);
        rejected.why = words(rejected.why.as_bytes());
        Outcome::Taken(rejected)
    }

    /// Words of the answer, where that is short text.
    fn told(&self) -> String {
        let words = words(self.body);
        let is_page = words.starts_with('<');
        match words.is_empty() || is_page {
            true => String::new(),
            false => format!(" ({words})"),
        }
    }
}

/// The first words of what a server says, on one line.
fn words(text: &[u8]) -> String {
    let letters = String::from_utf8_lossy(text);
    let is_readable = |letter: &char| !letter.is_control() && *letter != '\u{fffd}';
    let words: String = letters
        .chars()
        .map(|letter| match is_readable(&letter) {
            true => letter,
            false => ' ',
        })
        .take(200)
        .collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Likely reason of a server that has no such address.
const fn hint(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Otlp => {
            "the collector takes profiles if it runs with --feature-gates=service.profilesSupport and has a pipeline for them"
        }
        Protocol::Pyroscope => "the address is that of Pyroscope, such as http://localhost:4040",
        Protocol::Parca => "the address is that of Parca, such as http://localhost:7070",
    }
}

/// How long a `Retry-After` means, in seconds or as a date.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_secs(3600);
    let seconds = text.trim().parse().ok().map(Duration::from_secs);
    let pause = seconds.or_else(|| {
        let date = clock::http_date(text)?;
        Some(date.duration_since(now).unwrap_or_default())
    });
    pause.map(|pause| pause.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(protocol: Protocol, status: u16, content_type: &str, body: &[u8]) -> Outcome {
        let reply = Reply {
            status,
            content_type,
            retry_after: Some("7"),
            location: Some("https://other\n.example/"),
            body,
        };
        reply.outcome(protocol, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn only_an_answer_of_the_protocol_is_taken_for_one() {
        let taken = Outcome::Taken(Rejected::default());
        let page = "text/html; charset=utf-8";
        for (protocol, kind) in [
            (Protocol::Otlp, "application/x-protobuf"),
            (Protocol::Pyroscope, "application/proto"),
            (Protocol::Parca, "application/json; charset=utf-8"),
        ] {
            assert_eq!(outcome(protocol, 200, kind, b""), taken);
            for other in [page, "", "text/plain"] {
                let Outcome::Failed { reason, .. } = outcome(protocol, 200, other, b"<html>")
                else {
                    panic!("{protocol:?} {other}");
                };
                assert!(reason.contains("no server for profiles"), "{reason}");
            }
        }
    }

    #[test]
    fn what_may_end_is_tried_again_and_nothing_else() {
        for status in [429, 502, 503, 504] {
            let Outcome::Failed { after, .. } = outcome(Protocol::Otlp, status, "", b"busy") else {
                panic!("{status}");
            };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
        for status in [301, 307, 401, 403, 404, 415] {
            let outcome = outcome(Protocol::Otlp, status, "", b"");
            assert!(
                matches!(outcome, Outcome::Failed { after: None, .. }),
                "{status}"
            );
        }
        let Outcome::Failed { reason, .. } = outcome(Protocol::Otlp, 301, "", b"") else {
            panic!("it is elsewhere");
        };
        assert!(
            reason.contains("leads to https://other .example/:"),
            "{reason}"
        );
        for status in [400, 413, 422, 500] {
            let outcome = outcome(Protocol::Otlp, status, "", b"too old\nfor us\0");
            let reason = format!("it answered {status} (too old for us)");
            assert_eq!(outcome, Outcome::Refused(reason));
        }
    }

    #[test]
    fn a_pause_is_in_seconds_or_up_to_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let seconds = |text| retry_after(text, now).map(|pause| pause.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1993 08:49:37 GMT"), None);
        assert_eq!(seconds("999999999"), Some(3600));
        assert_eq!(seconds("soon"), None);
    }
}
