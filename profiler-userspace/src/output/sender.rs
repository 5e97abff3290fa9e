//! Identity of a recorder that sends its windows.
//!
//! In: a host, a service, a recorder. Out: the labels of a sample, and IDs of profiles by which a server knows those that come twice.

use super::labels::{self, LabelNames};
use crate::profile::Labels;
use crate::profile::cgroup::Cgroup;
use crate::profile::marks::UNKNOWN;
use crate::profile::process_context::SERVICE;
use profiler_common::intern::Hash;

/// The recorder that sends a window, and how much it counted in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// The host's name.
    pub host: String,
    /// The name of the service that all processes are; none for a service for each name of a process.
    pub service: Option<String>,
    /// Labels that are left out, or have another name.
    pub names: LabelNames,
    /// Tells recorders apart: the machine, and when this one began.
    pub recorder: u64,
    /// Firings in the window: recorded, filtered, lost.
    pub firings: [u64; 3],
}

impl Sender {
    /// The service that a sample is of: as said, or as its process says, or its container, or its unit, or its process.
    pub(super) fn service_of(&self, labels: &Labels) -> String {
        let cgroup = labels.cgroup.as_deref();
        let container = || cgroup.and_then(Cgroup::container_name);
        // Scopes are of sessions, and say nothing of what runs there.
        let is_service = |unit: &String| unit.ends_with(".service") && !unit.starts_with("user@");
        let unit = || cgroup.and_then(Cgroup::unit_name).filter(is_service);
        let process = || labels.name().unwrap_or(UNKNOWN).to_owned();
        let published = || Some(labels.context.as_ref()?.service()?.to_owned());
        let said = self.service.clone().or_else(published);
        said.or_else(container)
            .or_else(unit)
            .unwrap_or_else(process)
    }

    /// Labels of a sample, by the names that they are sent with.
    pub(super) fn labels(&self, labels: &Labels) -> Vec<(String, String)> {
        let mut all = vec![
            (SERVICE, self.service_of(labels)),
            (labels::HOST, self.host.clone()),
        ];
        let known = labels::of(labels, labels.name()).into_iter();
        all.extend(known.filter(|(name, _)| *name != SERVICE));
        self.names.applied(all)
    }

    /// The ID of a profile with these labels, told apart from others of these by two numbers. Never zero.
    pub(super) fn id(&self, labels: &[(String, String)], of: [u64; 2]) -> [u8; 16] {
        let texts = labels.iter().flat_map(|(name, text)| [name, text]);
        let bytes = texts.flat_map(|text| text.bytes().chain([0]));
        let words = bytes.map(u64::from).chain(of);
        let half = |seed| {
            let first = Hash::new(seed).with(self.recorder);
            words.clone().fold(first, |hash, word| hash.with(word)).0
        };
        let mut id = [0; 16];
        id[..8].copy_from_slice(&half(1).to_be_bytes());
        id[8..].copy_from_slice(&half(2).to_be_bytes());
        id[15] |= 1;
        id
    }
}
