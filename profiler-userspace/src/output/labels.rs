//! Labels of processes, by the names of OpenTelemetry's semantic conventions 1.43 where these have one, else under `flame_bpf.`.
//!
//! In: a sample's labels, and which of them have other names or none. Out: names and texts, no name twice. Nothing is said of what is
//! not known. The names: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/>.

use crate::profile::Labels;
use crate::profile::process_context::{ENVIRONMENT, INSTANCE, NAMESPACE, SERVICE, VERSION};
use std::collections::{BTreeMap, BTreeSet};

/// The machine.
pub(super) const HOST: &str = "host.name";

/// Every name that a label of what is sent may have.
pub const LABELS: [&str; 14] = [
    SERVICE,
    HOST,
    "process.title",
    "process.linux.cgroup",
    "container.id",
    "container.name",
    "k8s.pod.uid",
    "k8s.pod.name",
    "k8s.namespace.name",
    "flame_bpf.systemd.unit",
    NAMESPACE,
    INSTANCE,
    VERSION,
    ENVIRONMENT,
];

/// Known facts of a process that is called so, and of its cgroup; and what it says of its service, under names that no fact has.
pub(super) fn of<'a>(labels: &'a Labels, called: Option<&'a str>) -> Vec<(&'static str, String)> {
    let [
        _,
        _,
        title,
        path,
        id,
        name,
        uid,
        pod_name,
        namespace,
        unit,
        ..,
    ] = LABELS;
    let cgroup = labels.cgroup.as_deref();
    let container = cgroup.and_then(|cgroup| cgroup.container.as_ref());
    let pod = cgroup.and_then(|cgroup| cgroup.pod.as_ref());
    let known = [
        (title, called),
        (path, cgroup.map(|cgroup| &*cgroup.path)),
        (id, container.map(|of| &*of.id)),
        (name, container.and_then(|of| of.name.as_deref())),
        (uid, pod.map(|of| &*of.uid)),
        (pod_name, pod.and_then(|of| of.name.as_deref())),
        (namespace, pod.and_then(|of| of.namespace.as_deref())),
        (unit, cgroup.and_then(|cgroup| cgroup.unit.as_deref())),
    ];
    let known = known.into_iter();
    let known = known.filter_map(|(name, text)| Some((name, text?)));
    let published = labels.context.iter().flat_map(|of| of.attributes());
    let all = known.chain(published);
    all.map(|(name, text)| (name, text.to_owned())).collect()
}

/// A label's name as Pyroscope and Parca have it.
pub fn without_dots(name: &str) -> String {
    name.replace('.', "_")
}

/// Labels that are left out, or have another name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelNames {
    /// Those that are left out.
    pub dropped: BTreeSet<String>,
    /// New names, no two of which are equal [without their dots](without_dots). They go before labels that have these names already.
    pub renamed: BTreeMap<String, String>,
}

impl LabelNames {
    /// Labels by the names that they shall have.
    pub(super) fn applied(&self, labels: Vec<(&'static str, String)>) -> Vec<(String, String)> {
        let renamed = labels
            .iter()
            .filter_map(|(name, _)| self.renamed.get(*name));
        let taken: BTreeSet<String> = renamed.map(|name| without_dots(name)).collect();
        let named = labels.into_iter().filter_map(|(name, text)| {
            if self.dropped.contains(name) {
                return None;
            }
            match self.renamed.get(name) {
                Some(new) => Some((new.clone(), text)),
                None => (!taken.contains(&without_dots(name))).then(|| (name.to_owned(), text)),
            }
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::process_context::{ATTRIBUTES, ProcessContext};

    #[test]
    fn whatever_a_process_publishes_is_a_label_and_no_name_is_there_twice() {
        assert!(ATTRIBUTES.iter().all(|name| LABELS.contains(name)));
        let distinct: BTreeSet<_> = LABELS.iter().collect();
        assert_eq!(distinct.len(), LABELS.len());
    }

    #[test]
    fn what_is_known_has_its_names_and_nothing_is_said_of_the_rest() {
        let published = ATTRIBUTES.map(|name| (name, "x"));
        let labels = Labels {
            context: ProcessContext::of(published).map(Into::into),
            ..Labels::default()
        };
        let names = of(&labels, Some("nginx")).into_iter().map(|of| of.0);
        let names: Vec<_> = names.collect();
        assert_eq!(names[0], "process.title");
        assert_eq!(names[1..], ATTRIBUTES);
    }
}
