//! A recording without end, whose windows are sent as they end.

use crate::send::{Destination, Limits, Tls};
use std::net::SocketAddr;
use std::time::Duration;

/// Where windows go, and what is kept if a server does not take them.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// How long windows are. They begin at multiples of it by the clock.
    pub interval: Duration,
    /// Servers; never empty, none twice.
    pub destinations: Vec<Destination>,
    /// Room for what waits for each of them.
    pub limits: Limits,
    /// Certificates.
    pub tls: Tls,
    /// The name of the service that all processes are; none for one for each name of a process.
    pub name: Option<String>,
    /// Where `/metrics` and `/healthz` are answered; none for nowhere.
    pub listen: Option<SocketAddr>,
}
