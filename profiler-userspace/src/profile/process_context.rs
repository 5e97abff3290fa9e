//! Attributes that a program publishes of the service that it is part of, by the names of OpenTelemetry's semantic conventions.
//!
//! In: keys and texts, any at all. Out: a [`ProcessContext`] of those that labels are made of, short and printable.
//! Never: what is measured, such as the container or the host: a program may say anything.

use crate::text::visible::visible;
use std::sync::Arc;

/// Name of the service.
pub const SERVICE: &str = "service.name";
/// Group of services that it belongs to.
pub const NAMESPACE: &str = "service.namespace";
/// One of several processes of the service.
pub const INSTANCE: &str = "service.instance.id";
/// Version of the service.
pub const VERSION: &str = "service.version";
/// Deployment that it is of: staging, production …
pub const ENVIRONMENT: &str = "deployment.environment.name";

/// All that are taken.
pub const ATTRIBUTES: [&str; 5] = [SERVICE, NAMESPACE, INSTANCE, VERSION, ENVIRONMENT];

/// The most of a text that is kept, in bytes.
const MAX_TEXT: usize = 256;

/// Stands for the end of a longer one.
const CUT: &str = "…";

/// Name that libraries give a service that nobody has named; the executable's name may follow.
/// <https://opentelemetry.io/docs/specs/semconv/resource/#service>
const UNNAMED: &str = "unknown_service";

/// The service that a process says it is part of. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessContext {
    /// By the places of [`ATTRIBUTES`].
    texts: [Option<Arc<str>>; ATTRIBUTES.len()],
}

impl ProcessContext {
    /// That of some attributes, the first of those that have one key; none if there is nothing in them.
    pub fn of<'a>(attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut texts = [const { None }; ATTRIBUTES.len()];
        for (key, text) in attributes {
            let place = ATTRIBUTES.iter().position(|name| *name == key);
            if let Some(place) = place.filter(|place| texts[*place].is_none()) {
                texts[place] = shown(text).filter(|text| key != SERVICE || is_name(text));
            }
        }
        texts.iter().any(Option::is_some).then_some(Self { texts })
    }

    /// Name of the service.
    pub fn service(&self) -> Option<&str> {
        self.attributes()
            .find_map(|(name, text)| (name == SERVICE).then_some(text))
    }

    /// All attributes that it has.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = ATTRIBUTES.into_iter().zip(&self.texts);
        all.filter_map(|(name, text)| Some((name, text.as_deref()?)))
    }
}

/// Whether a service's name was given by somebody. What stands for one would hide the container's name.
fn is_name(text: &str) -> bool {
    let rest = text.strip_prefix(UNNAMED);
    rest.is_none_or(|rest| !rest.is_empty() && !rest.starts_with(':'))
}

/// A text as labels have it; none of one without anything to read. What is so already stays as it is.
fn shown(text: &str) -> Option<Arc<str>> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    // Shown text takes no fewer bytes, so of a longer one enough is left to see that it is longer.
    let text = visible(&text[..text.floor_char_boundary(MAX_TEXT + char::MAX_LEN_UTF8)]);
    if text.len() <= MAX_TEXT {
        return Some(Arc::from(&*text));
    }
    let end = text.floor_char_boundary(MAX_TEXT - CUT.len());
    Some(format!("{}{CUT}", &text[..end]).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn context(attributes: &[(&str, &str)]) -> Option<Vec<(&'static str, String)>> {
        let context = ProcessContext::of(attributes.iter().copied())?;
        let all = context.attributes();
        Some(all.map(|(name, text)| (name, text.to_owned())).collect())
    }

    #[test]
    fn only_what_describes_the_service_is_taken() {
        let published = [
            ("host.name", "another"),
            (VERSION, "1.2"),
            ("container.id", "abc"),
            ("service.name.x", "no"),
            (SERVICE, " shop\t"),
            (SERVICE, "later"),
            ("process.pid", "1"),
        ];
        let expected = [(SERVICE, "shop"), (VERSION, "1.2")];
        let expected = expected.map(|(name, text)| (name, text.to_owned()));
        assert_eq!(context(&published), Some(expected.to_vec()));
        assert_eq!(context(&[("host.name", "another"), (SERVICE, " \n")]), None);
    }

    #[test]
    fn a_service_that_nobody_named_has_no_name() {
        for (name, is_one) in [
            ("unknown_service", false),
            ("unknown_service:java", false),
            ("unknown_services", true),
            ("shop", true),
        ] {
            assert_eq!(context(&[(SERVICE, name)]).is_some(), is_one, "{name}");
        }
        let version = context(&[(SERVICE, "unknown_service"), (VERSION, "unknown_service")]);
        assert_eq!(version.unwrap().len(), 1);
    }

    #[test]
    fn texts_are_short_and_printable() {
        let text = |text: &str| context(&[(SERVICE, text)]).unwrap()[0].1.clone();
        assert_eq!(text("a\nb\u{202e}"), "a\\nb\\u{202e}");
        let long = text(&"é".repeat(10_000));
        assert!(long.len() <= MAX_TEXT && long.ends_with("é…"), "{long}");
        assert_eq!(text(&"a".repeat(MAX_TEXT)), "a".repeat(MAX_TEXT));
    }

    proptest! {
        #[test]
        fn what_is_shown_stays_as_it_is(text in any::<String>(), times in 1..200_usize) {
            if let Some(once) = shown(&text.repeat(times)) {
                prop_assert!(once.len() <= MAX_TEXT);
                prop_assert_eq!(shown(&once), Some(once));
            }
        }
    }
}
