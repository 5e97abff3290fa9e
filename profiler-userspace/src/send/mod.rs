//! Bodies of requests, kept until a server has taken them.
//!
//! In: encoded windows. Out: requests, one at a time for each server, in the order of the windows; what became of each is counted.
//! A server that fails stops no other, and not the recording: what waits is kept in memory or in a folder within a limit, beyond
//! which the oldest goes first. Never: what a body says.

mod board;
mod client;
mod queue;
mod reply;
mod spool;

pub use board::{Board, Standing};
pub use client::{Secret, Tls, compressed};
pub use queue::{Counts, Limits};

use crate::output::request::{Protocol, Rejected};
use crate::text::number::counted;
use anyhow::{Context as _, Result};
use client::Client;
use queue::{Next, Queue};
use reply::Outcome;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a request that failed waits until it is tried again; twice as long each time it fails.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest that is.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long the end waits for what is left to be sent.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A server that takes profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Protocol that it speaks.
    pub protocol: Protocol,
    /// The address of requests, with its path.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// Time from one request to the next, for which windows wait to go in one; zero where each goes as it ends.
    pub every: Duration,
}

/// One window, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Bytes of the request, compressed as the protocol wants it.
    pub bytes: Vec<u8>,
    /// Samples in it.
    pub samples: u64,
}

/// Whether certificates and secrets can be read that are sent along with requests.
///
/// # Errors
/// When one cannot.
pub fn check(destinations: &[Destination], tls: &Tls) -> Result<()> {
    let check = |destination| Client::new(destination, tls)?.check();
    destinations.iter().try_for_each(check)
}

/// A server's sender: a queue, and the thread that empties it.
pub struct Sender {
    protocol: Protocol,
    url: String,
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl Sender {
    /// Starts sending to a server what is put into its queue, first what an earlier run left there. `say` is called with sentences
    /// for whoever runs this.
    ///
    /// # Errors
    /// When the folder cannot be used, or no thread can be started.
    pub fn start(
        destination: &Destination,
        limits: &Limits,
        tls: &Tls,
        say: impl Fn(&str) + Send + 'static,
    ) -> Result<Self> {
        let queue = Arc::new(Queue::open(destination, limits)?);
        let client = Client::new(destination, tls)?;
        let (own, url) = (Arc::clone(&queue), destination.url.clone());
        let protocol = destination.protocol;
        let thread = Builder::new()
            .name("flame-bpf-send".to_owned())
            .spawn(move || send(&own, &client, (protocol, &url), &say))
            .context("cannot start a thread that sends")?;
        Ok(Self {
            protocol,
            url: destination.url.clone(),
            queue,
            thread,
        })
    }

    /// Protocol that the server speaks.
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Keeps a window until the server has taken it. Never waits for the server.
    pub fn put(&self, body: Body) {
        self.queue.put(body);
    }

    /// Windows and samples by what became of them.
    pub fn counts(&self) -> Counts {
        self.queue.counts()
    }

    /// Sends what is left for some seconds more, and then no longer.
    pub fn close(&self) {
        self.queue.close(Instant::now() + LAST_WORDS);
    }

    /// Waits until what is left is sent, or some seconds after [`close`](Self::close) have passed; what a folder keeps is sent by the
    /// next run. Returns the last counts.
    pub fn end(self) -> Counts {
        let left = self.queue.time_left().unwrap_or(LAST_WORDS);
        let gone = Instant::now() + left + Duration::from_secs(1);
        // A server that says nothing is not waited for, even where its requests cannot be broken off.
        while !self.thread.is_finished() && Instant::now() < gone {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.queue.end()
    }
}

/// Empties a queue until it is closed and empty, or until its time is up.
fn send(queue: &Queue, client: &Client, (protocol, url): (Protocol, &str), say: &impl Fn(&str)) {
    let mut pause = FIRST_PAUSE;
    // Trouble is said once, and again after the server has taken something.
    let (mut is_failing, mut is_refusing, mut is_rejecting) = (false, false, false);
    loop {
        let (entries, mut bodies) = match queue.next() {
            Next::Bodies(entries, bodies) => (entries, bodies),
            Next::Unreadable(sentence) => {
                say(&sentence);
                continue;
            }
            Next::End => return,
        };
        let body = match bodies.len() {
            1 => bodies.pop(),
            _ => client::joined(protocol, &bodies),
        };
        let Some(bytes) = body else {
            queue.separate(&entries);
            continue;
        };
        let left = queue.time_left();
        match client.post(&bytes, left) {
            Outcome::Taken(Rejected { profiles, why }) => {
                queue.taken(&entries, profiles);
                is_refusing = false;
                if profiles > 0 && !std::mem::replace(&mut is_rejecting, true) {
                    let profiles = counted(profiles, "profile");
                    let why = if why.is_empty() {
                        "none is given"
                    } else {
                        &why
                    };
                    say(&format!(
                        "{url} took a window without {profiles}, lost for this reason: {why}; more of them are only counted"
                    ));
                }
                if std::mem::take(&mut is_failing) {
                    say(&format!("{url} takes profiles again"));
                }
                pause = FIRST_PAUSE;
            }
            // One of them may be the reason.
            Outcome::Refused(_) if entries.len() > 1 => queue.separate(&entries),
            Outcome::Refused(reason) => {
                entries.iter().for_each(|&entry| queue.refused(entry));
                if !std::mem::replace(&mut is_refusing, true) {
                    say(&format!(
                        "{url} refused a window, which is lost: {reason}; more of them are only counted"
                    ));
                }
            }
            Outcome::Failed { reason, after } => {
                queue.failed();
                if !std::mem::replace(&mut is_failing, true) {
                    let when = match after.map_or(0, |after| after.as_secs()) {
                        0 => String::new(),
                        seconds => format!(" in {seconds} s, as it wants"),
                    };
                    say(&format!(
                        "{url} does not take profiles: {reason}; trying again{when}"
                    ));
                }
                let jitter = pause.mul_f64(fastrand::f64() / 4.0);
                queue.wait(after.unwrap_or(pause) + jitter);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
}
