//! The signals that mean something to a recording.
//!
//! In: SIGINT, SIGTERM, SIGHUP, SIGCHLD. Out: an end of waiting: for the recording's end, for graphs, for the command.

use super::launch::Running;
use super::live::LiveSignals;
use anyhow::{Context as _, Result};
use rustix::process::Signal;
use std::time::Duration;
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::task::JoinHandle;

/// How long an interrupt waits for files that are just being written.
const GRACE: Duration = Duration::from_millis(500);

/// How often a command that is waited for is looked at.
const POLL: Duration = Duration::from_millis(100);

/// The signals that mean something to us, listened to from the start.
pub(super) struct Signals {
    /// Those that ask for the end.
    pub(super) ends: Ends,
    /// The end of a child.
    pub(super) child: Listener,
    /// Signals and requests of the terminal, where there is a live view.
    pub(super) live: LiveSignals,
}

/// Those that ask for the end.
pub(super) struct Ends {
    interrupt: Listener,
    terminate: Listener,
    hangup: Listener,
}

impl Ends {
    /// Which of them comes next.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hangup.recv() => Signal::HUP,
        }
    }
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            ends: Ends {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hangup: listen(SignalKind::hangup())?,
            },
            child: listen(SignalKind::child())?,
            live: LiveSignals::default(),
        })
    }

    /// Result of `work`; none if a signal comes first and the work is not nearly done.
    pub(super) async fn unless_interrupted<T>(
        &mut self,
        mut work: JoinHandle<Result<T>>,
    ) -> Result<Option<T>> {
        tokio::select! {
            done = &mut work => done.context("symbolizing failed unexpectedly")?.map(Some),
            _ = self.ends.next() => match tokio::time::timeout(GRACE, work).await {
                Ok(done) => done.context("symbolizing failed unexpectedly")?.map(Some),
                Err(_) => Ok(None),
            },
        }
    }

    /// Waits for the command to end; false if a signal came first.
    pub(super) async fn wait_for(&mut self, command: &mut Running) -> bool {
        while !command.has_ended() {
            tokio::select! {
                _ = self.child.recv() => {}
                // Two exits may come with one signal.
                () = tokio::time::sleep(POLL) => {}
                signal = self.ends.next() => {
                    command.pass_on(signal);
                    return false;
                }
            }
        }
        true
    }
}
