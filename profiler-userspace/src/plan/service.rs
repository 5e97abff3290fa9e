//! A recording without end, whose windows are sent as they end.

use crate::output::LabelNames;
use crate::send::{Destination, Limits, Tls};
use crate::store;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where windows go, and what is kept if a server does not take them.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// How long windows are. They begin at multiples of it by the clock.
    pub interval: Duration,
    /// Servers, none twice; not empty unless there is a store.
    pub destinations: Vec<Destination>,
    /// Folder of tables, and how much is kept there; none where nothing is.
    pub store: Option<(PathBuf, store::Limits)>,
    /// Room for what waits for each of them.
    pub limits: Limits,
    /// Certificates.
    pub tls: Tls,
    /// The name of the service that all processes are; none for one for each name of a process.
    pub name: Option<String>,
    /// Labels that are left out of what is sent, or have another name.
    pub labels: LabelNames,
    /// Where `/metrics` and `/healthz` are answered; none for nowhere.
    pub listen: Option<SocketAddr>,
}
