//! Identity of a recorder that sends its windows.
//!
//! In: a host, a service, a recorder. Out: the service of a sample, and IDs of profiles by which a server knows those that come
//! twice.

use crate::profile::Labels;
use crate::profile::cgroup::Cgroup;
use crate::profile::marks::UNKNOWN;
use profiler_common::intern::Hash;

/// The recorder that sends a window, and how much it counted in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// The host's name.
    pub host: String,
    /// The name of the service that all processes are; none for a service for each name of a process.
    pub service: Option<String>,
    /// Tells recorders apart: the machine, and when this one began.
    pub recorder: u64,
    /// Firings in the window: recorded, filtered, lost.
    pub firings: [u64; 3],
}

impl Sender {
    /// The service that a sample is of: as said, or its container, or its unit, or its process.
    pub(super) fn service_of(&self, labels: &Labels) -> String {
        let cgroup = labels.cgroup.as_deref();
        let container = || cgroup.and_then(Cgroup::container_name);
        // Scopes are of sessions, and say nothing of what runs there.
        let is_service = |unit: &String| unit.ends_with(".service") && !unit.starts_with("user@");
        let unit = || cgroup.and_then(Cgroup::unit_name).filter(is_service);
        let process = || labels.name().unwrap_or(UNKNOWN).to_owned();
        let own = self.service.clone();
        own.or_else(container).or_else(unit).unwrap_or_else(process)
    }

    /// The ID of a profile of these labels, told apart from others of these by two numbers. Never zero.
    pub(super) fn id(&self, labels: &Labels, of: [u64; 2]) -> [u8; 16] {
        let name = labels.name().unwrap_or(UNKNOWN);
        let cgroup = labels.cgroup.as_deref().map_or("", |cgroup| &cgroup.path);
        let bytes = name.bytes().chain([0]).chain(cgroup.bytes());
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
